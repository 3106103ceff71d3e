#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What goes along with a release: the lists of what it is made of (SPDX, CycloneDX), and the protections that the compiler
was asked for. That two builds are the same takes minutes: `make reproducible`. Speaks TAP.

Usage: release.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import BINARY, Skip, run_tests

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", pathlib.Path(BINARY).parents[2]))
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
PURL = re.compile(r"pkg:deb/[a-z0-9.-]+/[a-z0-9.+-]+@[A-Za-z0-9.%~-]+\?arch=\w+&distro=[a-z0-9.-]+")
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def make(folder, **more):
    for program in ("readelf", "ldd"):
        if not shutil.which(program):
            raise Skip(f"there is no {program} here")
    subprocess.run([ROOT / "tools/sbom", BUILD, folder], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000", **more})
    return [pathlib.Path(folder, f"hikyaku.{kind}.json").read_bytes() for kind in ("spdx", "cdx")]


@functools.cache
def documents():
    with tempfile.TemporaryDirectory() as folder:
        return tuple(json.loads(text) for text in make(folder))


def linked():
    text = subprocess.run(["readelf", "-d", BINARY], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", text)) - {"ld-linux-x86-64.so.2"}


@test
def spdx_has_what_its_specification_asks_for():
    document = documents()[0]
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
    assert document["SPDXID"] == "SPDXRef-DOCUMENT" and document["name"]
    assert re.fullmatch(r"https?://\S+[^#]", document["documentNamespace"]) and "#" not in document["documentNamespace"]
    assert DATE.fullmatch(document["creationInfo"]["created"])
    assert all(re.match(r"(Tool|Person|Organization): \S", c) for c in document["creationInfo"]["creators"])
    things = document["packages"] + document["files"]
    ids = [thing["SPDXID"] for thing in things]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", i) for i in ids), ids
    for package in document["packages"]:
        assert package["name"] and package["downloadLocation"] and package["versionInfo"], package
        assert package["filesAnalyzed"] is False and "packageVerificationCode" not in package, package
        for reference in package.get("externalRefs", []):
            assert reference["referenceType"] == "purl" and PURL.fullmatch(reference["referenceLocator"]), reference
    for file in document["files"]:
        sums = {c["algorithm"]: c["checksumValue"] for c in file["checksums"]}
        assert file["fileName"].startswith("./") and len(sums["SHA1"]) == 40 and len(sums["SHA256"]) == 64, file
    known = {*ids, "SPDXRef-DOCUMENT"}
    kinds = set()
    for relation in document["relationships"]:
        assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= known, relation
        kinds.add(relation["relationshipType"])
    assert kinds == {"DESCRIBES", "CONTAINS", "DYNAMIC_LINK"}, kinds


@test
def cyclonedx_has_what_its_specification_asks_for():
    document = documents()[1]
    assert document["bomFormat"] == "CycloneDX" and document["specVersion"] == "1.5" and document["version"] == 1
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
                        document["serialNumber"]), document["serialNumber"]
    assert DATE.fullmatch(document["metadata"]["timestamp"])
    parts = [document["metadata"]["component"], *document["components"]]
    refs = [part["bom-ref"] for part in parts]
    assert len(set(refs)) == len(refs), refs
    for part in parts:
        assert part["type"] in ("application", "library", "file") and part["name"], part
        assert all(re.fullmatch(r"[0-9a-f]{64}", h["content"]) and h["alg"] == "SHA-256" for h in part.get("hashes", []))
        assert PURL.fullmatch(part.get("purl", "pkg:deb/x/x@1?arch=x&distro=x")), part
    assert {edge["ref"] for edge in document["dependencies"]} == set(refs)
    assert all(set(edge["dependsOn"]) <= set(refs) for edge in document["dependencies"])


@test
def every_library_that_is_linked_is_listed_and_none_else():
    spdx, cdx = documents()
    sonames = {p["value"] for c in cdx["components"] for p in c.get("properties", []) if p["name"] == "hikyaku:soname"}
    assert linked() <= sonames, linked() - sonames
    files = {p.get("packageFileName", "") for p in spdx["packages"]}
    assert len(files) == len(spdx["packages"]) == len(sonames) + 1
    direct = next(edge for edge in cdx["dependencies"] if edge["ref"] == "file-hikyaku")
    assert len(direct["dependsOn"]) == len(linked()), direct
    print(f"# {len(sonames)} libraries, {len(linked())} of them linked by the program itself")


@test
def the_same_build_gives_the_same_lists():
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        assert make(one) == make(two, TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
        for text in make(one):
            assert str(ROOT).encode() not in text and one.encode() not in text, "it says where it was made"


# ---- the tarball ----

def dist(folder, **more):
    env = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}
    done = subprocess.run([ROOT / "tools/dist", folder], capture_output=True, text=True, check=False, env={**env, **more})
    if done.returncode != 0 and "cannot be fetched" in done.stderr:
        raise Skip(done.stderr.strip()[-200:])
    assert done.returncode == 0, done.stderr
    made, = pathlib.Path(folder).glob("hikyaku-*.tar.gz")
    return made


@test
def the_tarball_depends_on_the_tree_alone():
    """Made by somebody else, and made again from itself, where there is no git: the same bytes."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        first = dist(one)
        subprocess.run(["tar", "-xf", first, "-C", two], check=True)
        top = pathlib.Path(two, first.name.removesuffix(".tar.gz"))
        assert (top / "web/npm/fetched").exists(), "a build of it would need a network"
        done = subprocess.run([top / "tools/dist", f"{two}/out"], capture_output=True, text=True, check=True, umask=0o077,
                              env={"PATH": os.environ["PATH"], "TZ": "Asia/Tokyo", "HOME": two})
        again = pathlib.Path(two, "out", first.name)
        assert first.read_bytes() == again.read_bytes()
        assert done.stdout.split() == [hashlib.sha256(first.read_bytes()).hexdigest(), first.name]


@test
def every_place_names_the_same_version():
    wanted = re.search(r"^  version: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8"), re.MULTILINE)[1]
    debian = re.match(r"hikyaku \(([^)-]+)-\d+\) ", (ROOT / "packaging/debian/changelog").read_text(encoding="utf-8"))[1]
    said = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout.split()
    assert said[:2] == ["hikyaku", wanted] and debian == wanted, (said, debian, wanted)
    places = {"packaging/rpm/hikyaku.spec": r"^Version: +(\S+)$", "packaging/kubernetes/chart/Chart.yaml": r"^appVersion: (\S+)$",
              "clients/python/pyproject.toml": r'^version = "(.+)"$', "clients/node/package.json": r'^  "version": "(.+)",$',
              "clients/java/pom.xml": r"^  <version>(.+)</version>$"}
    for name, pattern in places.items():
        found = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert found and found[1] == wanted, (name, found and found[1])
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert wanted in sections[:2] and sections[0] in (wanted, "Unreleased"), sections
    schema = max(int(p.name[:4]) for p in (ROOT / "src/store/sqlite/schema").glob("*.sql"))
    assert f"\n| {wanted} | {schema} | " in (ROOT / "docs/upgrade.md").read_text(encoding="utf-8"), "docs/upgrade.md: which versions work together"


# ---- protections ----

def harden_check(*arguments):
    done = subprocess.run([ROOT / "tools/check-hardening", *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@test
def a_release_is_built_with_its_protections():
    """Of the smallest program, or it would take a minute; `make reproducible` looks at all."""
    for program in ("readelf", "objdump", "meson", "ninja"):
        if not shutil.which(program):
            raise Skip(f"there is no {program} here")
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if k not in ("CFLAGS", "LDFLAGS", "DESTDIR")}
        subprocess.run(["meson", "setup", folder, "-Dtests=false", "-Dman=disabled"], cwd=ROOT, env=env, check=True,
                       capture_output=True)
        program = "src/jq/hikyaku-jq"
        made = subprocess.run(["ninja", "-C", folder, program], env=env, capture_output=True, text=True, check=False)
        if "unknown target" in made.stdout + made.stderr:
            raise Skip("hikyaku-jq is not built here")
        assert made.returncode == 0, made.stdout[-3000:]
        code, text = harden_check("--weak", "fortify", f"{folder}/{program}")
        assert code == 0, text
        commands = json.loads(pathlib.Path(folder, "compile_commands.json").read_text(encoding="utf-8"))
        for command in commands:
            for flag in ("-fstack-protector-strong", "-D_FORTIFY_SOURCE=3", "-fstack-clash-protection", "-ffile-prefix-map="):
                assert flag in command["command"], (flag, command["file"])


@test
def the_check_sees_what_is_missing():
    if not shutil.which("cc"):
        raise Skip("no compiler")
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "x.c")
        source.write_text("int main(void) { return 0; }\n", encoding="ascii")
        subprocess.run(["cc", "-no-pie", "-Wl,-z,norelro", "-Wl,-z,lazy", "-Wl,-z,execstack", "-fno-stack-protector",
                        "-fcf-protection=none", "-Wl,-rpath,/tmp", "-o", f"{folder}/x", str(source)], check=True,
                       capture_output=True)
        code, text = harden_check(f"{folder}/x")
        assert code == 1
        for word in ("pie", "relro", "now", "nx", "rpath", "stack", "fortify"):
            assert f"not hardened: {word} " in text, (word, text)


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
