# The front door: `make help` lists the targets. tools/deps installs packages that are missing (Debian 12);
# meson does the building, in build/<kind>/.
PREFIX ?= /usr/local
DESTDIR ?=
SECONDS ?= 60
T ?= $(basename $(notdir $(wildcard fuzz/fuzz_*.c)))

.PHONY: all demo test bench san soak fuzz fmt lint coverage docs sbom reproducible dist deb deb-test rpm image image-test arm64 install clean help

all: ## build the program and the library (the default)
	@tools/deps build
	@tools/build release -Dtests=false "-Dprefix=$(PREFIX)"
	@ln -sf release/src/cli/hikyaku build/hikyaku
	@echo "built build/hikyaku"

demo: all ## a first look
	@tools/demo

test: ## everything that must hold: unit, end-to-end, tree checks, a little fuzzing (ASan, UBSan)
	@tools/deps test
	@tools/test

bench: all ## run the benchmarks
	@tools/deps bench
	@meson test -C build/release --benchmark --verbose
	@bench/relay.py build/hikyaku
	@bench/observe.py build/hikyaku
	@bench/postgres.py build/hikyaku
	@bench/brokers.py build/release/src/cli/hikyaku
	@bench/metrics.py build/hikyaku
	@bench/api.py build/hikyaku
	@bench/dashboard.py build/hikyaku

san: ## gcc and clang x {ASan+UBSan, TSan}, valgrind, -fanalyzer, clang-tidy, cppcheck
	@tools/deps san
	@tools/san

soak: ## twelve minutes of simulation and of real processes under every fault; SCALE=0.1 for less, SEED=… again
	@tools/deps test
	@tools/soak "SCALE=$(SCALE)" "SEED=$(SEED)"

fuzz: ## fuzz all targets, or T=fuzz_<name>, for SECONDS=60 each; found inputs stay in build/found
	@tools/deps fuzz
	@CC=clang tools/build fuzz -Dfuzz=true
	@for t in $(T); do \
		echo "== $$t"; KEEP=build/found/$$t tools/fuzz $$t -max_total_time=$(SECONDS) || exit 1; \
	done

fmt: ## format all C files
	@tools/deps fmt
	@tools/c-files | xargs clang-format -i

lint: ## layers, banned calls, sizes, format, cppcheck, clang-tidy; tsc and eslint over the dashboard
	@tools/deps lint
	@tools/lint

coverage: ## line and branch coverage, by folder, with the goals
	@tools/deps coverage
	@tools/coverage

docs: ## the documentation as a searchable site, in build/site
	@tools/deps docs
	@tools/docs

sbom: all ## what the program is made of, as SPDX and CycloneDX, in build/sbom
	@tools/sbom build/release build/sbom

reproducible: ## build twice, in different places, and compare every installed file; about 3 minutes
	@tools/deps build
	@tools/reproducible

dist: all ## a release: tarball, SPDX and CycloneDX, SHA256SUMS, in build/dist
	@tools/dist build/dist --sbom build/release

deb: ## Debian packages, judged by lintian, in build/deb
	@tools/deps deb
	@tools/deb build/deb

deb-test: deb ## install, start, upgrade with traffic, remove, purge them in a plain Debian (root; some minutes)
	@LINTIAN=no TZ=Asia/Tokyo LC_ALL=C.UTF-8 tools/deb build/deb-again >/dev/null
	@tests/packages/deb.py build/deb build/deb-again

rpm: ## RPM packages, in build/rpm; what is in them, and a relay that runs from them (root)
	@tools/deps rpm
	@tools/rpm build/rpm
	@tests/packages/rpm.py build/rpm

image: all ## a container image (OCI), without a daemon, in build/image
	@tools/deps image
	@tools/image build/release build/image/hikyaku.oci.tar

image-test: image ## what is in it, and a relay that runs in it (root)
	@tests/packages/image.py build/image/hikyaku.oci.tar build/release

arm64: ## build for arm64 in a Debian of its own, and run it under qemu-user (root; some minutes)
	@tools/deps deb
	@tests/packages/arm64.py

install: all ## install to PREFIX=/usr/local, below DESTDIR if given
	@DESTDIR="$(DESTDIR)" meson install -C build/release --no-rebuild
	@[ -n "$(DESTDIR)" ] || ldconfig 2>/dev/null || true

clean: ## remove build/
	rm -rf build

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14
