#!/usr/bin/env bash
# Installs hikyaku as a user would and builds somebody else's program against it. A plain build of its own is
# used, for a sanitized library cannot be loaded into a plain program. It is also the build whose warnings of -O2 are errors.
set -u
here=$SOURCE_DIR/tests/e2e
plain=$BUILD_DIR/installed.build
prefix=$BUILD_DIR/installed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0

# check NAME COMMAND...: one TAP line; the command's output follows as comments when it fails
check()
{
    n=$((n + 1))
    if "${@:2}" >"$work/log" 2>&1; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        sed 's/^/# /' "$work/log"
    fi
}

install_hikyaku()
{
    [ -f "$plain/build.ninja" ] ||
        meson setup "$plain" "$SOURCE_DIR" --prefix="$prefix" --libdir=lib -Dtests=false -Ddebug=false \
            -Dwerror=true || return
    rm -rf "$prefix"
    # only what is installed: benches and the like take as long again
    installed_targets >"$work/targets" || return
    xargs ninja -C "$plain" -j "$(nproc)" <"$work/targets" && meson install -C "$plain" --no-rebuild
}

# The files of all targets that are installed, as ninja calls them.
installed_targets()
{
    meson introspect --targets "$plain" | python3 -c '
import json, os, sys
for target in json.load(sys.stdin):
    if target["installed"]:
        print(*(os.path.relpath(name, sys.argv[1]) for name in target["filename"]), sep="\n")
' "$plain"
}

compile()
{
    cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$here/installed_main.c" \
        $(pkg-config --cflags --libs hikyaku) -o "$work/main"
}

# The answer 503 comes without Retry-After, so that the waits are the policy's own.
same_waits() # PRESET SEED FAILURES
{
    "$work/main" "$1" "$2" "$3" >"$work/waits" || return
    "$prefix/bin/hikyaku" policy plan "$1" --seed "$2" --json >"$work/plan.json" || return
    python3 -c '
import json, sys
waits = [a["wait_ms"] for a in json.load(sys.stdin)["attempts"] if a["wait_ms"] is not None]
assert len(waits) >= int(sys.argv[1]), "the plan ends before the function succeeds"
print(*waits[:int(sys.argv[1])], sep="\n")
' "$3" <"$work/plan.json" >"$work/planned" || return
    diff -u --label planned "$work/planned" --label executed "$work/waits"
}

# Every preset with several seeds: a function that fails a few times, and one that works at the last attempt only.
all_same_waits()
{
    while read -r preset most; do
        for seed in 0 1 42 18446744073709551615; do
            for failures in 1 4 "$most"; do
                same_waits "$preset" "$seed" "$failures" || { echo "$preset, seed $seed, $failures"; return 1; }
            done
        done
    done <<'END'
standard 29
sync-pipeline 9
azure-exponential 10
azure-linear 10
cloud-tasks 99
standard-webhooks 9
END
}

service_and_completions()
{
    grep -qx "ExecStart=$prefix/bin/hikyaku --config /etc/hikyaku/hikyaku.yaml run" "$prefix/lib/systemd/system/hikyaku.service" &&
        bash -n "$prefix/share/bash-completion/completions/hikyaku" &&
        grep -q '^#compdef hikyaku' "$prefix/share/zsh/site-functions/_hikyaku" &&
        grep -q '^complete -c hikyaku' "$prefix/share/fish/vendor_completions.d/hikyaku.fish" &&
        grep -q '^u hikyaku ' "$prefix/lib/sysusers.d/hikyaku.conf" &&
        grep -q '^d /var/lib/hikyaku 0750 hikyaku hikyaku' "$prefix/lib/tmpfiles.d/hikyaku.conf" &&
        "$prefix/bin/hikyaku" config check "$prefix/share/doc/hikyaku/examples/hikyaku.yaml"
}

# It is asked of a broker that is not there, and says so itself.
kafka_module()
{
    [ -e "$prefix/lib/hikyaku/sink-kafka.so" ] || { echo "built without librdkafka"; return 0; }
    ! ldd "$prefix/bin/hikyaku" | grep rdkafka || return
    echo 'destinations: { o: { kafka: { brokers: "127.0.0.1:1", topic: t }, allow: [127.0.0.0/8] } }' >"$work/kafka.yaml"
    "$prefix/bin/hikyaku" --config "$work/kafka.yaml" doctor >"$work/doctor"
    cat "$work/doctor"
    grep "'o': _TRANSPORT: .*refused" "$work/doctor"
}

only_our_symbols()
{
    ! nm -D --defined-only --format=just-symbols "$prefix/lib/libhikyaku.so" | grep -v '^hk_'
}

echo 1..8
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
check "installs" install_hikyaku
check "a C program compiles with pkg-config's flags" compile
echo '#include <hikyaku/hikyaku.h>' >"$work/all.cc"
check "the headers are C++, too" \
    g++ -fsyntax-only -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags hikyaku) "$work/all.cc"
check "the library shows only hk_ symbols" only_our_symbols
check "hk_execute waits as policy plan says, until a flaky function succeeds" all_same_waits
check "the program runs from where it was installed" "$prefix/bin/hikyaku" --version
check "service, completions and examples come along" service_and_completions
check "the module for Kafka is loaded from where it was installed, and the program needs no librdkafka" kafka_module
