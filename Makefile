# The front door. `make help` lists what there is; each target does its own set-up.
.DEFAULT_GOAL := help
.PHONY: help build run test check sanitize bench bench-peers bench-gss bench-mount perf-guard fuzz attack mutants interop exercise ceph soak soak-short format tidy deb deb-test systemd-test container-test bare nightly clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

build: ## build/release/bin/stag, the library and xdrgen; `cmake --install build/release` installs them
	@tools/setup build
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target product

run: ## the demo: serve a folder on loopback, copy a tree in and out over RPC-over-RDMA, compare
	@tools/setup build
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target stag
	@tools/demo build/release/bin/stag

test: ## all tests, a minute of attacks on the server, and which requirements are proven
	@tools/setup build test
	@tools/test test

sanitize: ## all tests and the attack under address+undefined sanitizers, the thread sanitizer, fuzz targets
	@tools/setup build test
	@tools/test sanitize

check: ## the fast loop while working: release tree, unit tests, 1,000 seeds under faults
	@tools/setup build test
	@tools/test check

bench: ## round trips, rates and bandwidth next to the raw TCP reference of the same run
	@tools/setup build
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target stag
	@build/release/bin/stag bench --self

bench-peers: ## the same loads by nfs-ganesha with libnfs, and by libtirpc (root; installs them from Debian)
	@tools/setup build peers
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target stag
	@bench/peers/run build/release/bin/stag

bench-gss: ## what Kerberos costs, next to sec=sys and to MIT's library by itself (with a KDC of its own)
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target stag
	@bench/gss/run build/release/bin/stag

bench-mount: ## stag mount next to libfuse's passthrough_ll over tmpfs (root; installs fio)
	@tools/setup build mount
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target stag
	@bench/mount/run build/release/bin/stag

perf-guard: ## instructions of a call, counted by callgrind, against bench/guard/instructions.json
	@tools/setup build guard
	@cmake --preset release -DSTAG_BENCH=ON >/dev/null
	@cmake --build --preset release --target stag_guard
	@bench/guard/run build/release/bin/stag_guard

fuzz: ## every fuzz target, FUZZ_SECONDS (default 600) each
	@tools/setup build test
	@tools/fuzz $${FUZZ_SECONDS:-600}

attack: ## mutated messages, floods and hostile servers against address+undefined sanitizers, ATTACK_SECONDS (default 600), ATTACK_SERVERS at once (default 1)
	@tools/setup build test
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target xdrgen stag
	@cmake --preset asan -DSTAG_XDRGEN=$(CURDIR)/build/release/bin/xdrgen >/dev/null
	@cmake --build --preset asan --target stag
	@tests/attack/run --seconds $${ATTACK_SECONDS:-600} --servers $${ATTACK_SERVERS:-1}

mutants: ## do the tests hold what they claim? each must fail for a product that breaks its rule (MUTANTS="R8166-4.5-b ...")
	@tools/setup build test
	@tools/mutants $(MUTANTS)

exercise: ## Debian's exercisers of file systems, and git, rsync, sqlite3, a compile, on `stag mount` (root; installs them)
	@tools/setup build exercise
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target stag
	@tests/exercise/run build/release/bin/stag

ceph: ## CephFS with a cluster of this machine: the contract of stores, two gateways of which one is lost, an address that moves, and records of clients (installs Debian's Ceph)
	@tools/setup build test ceph
	@cmake --preset release -DSTAG_CEPH=ON >/dev/null
	@cmake --build --preset release --target stag vfs_ceph_test
	@ctest --test-dir build/release --label-regex '^ceph$$' --no-tests=error --output-on-failure

interop: ## an unmodified Linux kernel as client and as server (QEMU guest; root, Debian's packages); INTEROP=full for more
	@tools/setup build test
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target stag fabric_verbs_test rpc_rdma_test nfs3_fabrics_test nfs4_fabrics_test
	@tests/interop/run build/release/bin/stag

soak-short: ## four minutes of it without a guest: cut connections, servers that take over from one another (SOAK_SECONDS=240)
	@tools/setup build
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target stag
	@SOAK_SECONDS=$${SOAK_SECONDS:-240} python3 tests/cli/soak_test.py build/release/bin/stag

soak: ## an hour of load, cut connections, killed, reloaded and followed servers; memory, descriptors and latency stay flat (SOAK_SECONDS=3600)
	@tools/setup build test
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target stag
	@tests/interop/soak build/release/bin/stag $${SOAK_SECONDS:-3600}

format: ## clang-format over the sources
	@git ls-files '*.h' '*.cc' | xargs clang-format-14 -i

tidy: ## clang-tidy over the sources; every header compiles alone
	@cmake --preset release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
	@git ls-files 'src/*.cc' 'xdrgen/*.cc' | xargs -P 2 -n 8 clang-tidy-14 -quiet -p build/release
	@cmake --build --preset release --target stag_nfs_proto >/dev/null
	@tests/arch/self_contained_headers.sh g++ build/release all

deb: ## Debian packages of HEAD in build/deb: stag, libstag0, libstag-dev, stag-doc (five minutes and more; no part of make test)
	@tools/setup build deb
	@tools/deb

deb-test: ## make deb's packages installed in a clean Debian 12 and used, by docs/guide.md among others (root)
	@tools/setup build deb
	@tools/deb-test

systemd-test: ## make deb's service run by systemd, in a container: start, reload, restart under load, crash, watchdog (root)
	@tools/setup build deb
	@tools/systemd-test

container-test: ## the container of packaging/container, with make deb's packages: built by podman, served and copied from without rights (root)
	@tools/setup build deb container
	@tools/container-test

bare: ## README's two commands on a bare Debian 12, with no more rights than a container has (root, debootstrap)
	@tools/bare

nightly: ## what no CI has time for, one after the other, and at the end what passed, failed and was skipped (NIGHTLY="deb ceph" for some)
	@tools/nightly $(NIGHTLY)

clean: ## remove build/
	@rm -rf build
