# Builds, tests and installs Slabyard. `make help` lists the targets. A target that needs tools
# first installs those that this machine lacks (scripts/install.sh). If none is missing, this takes
# a second and does not use the network.

PREFIX ?= /usr/local
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
export JOBS

.DEFAULT_GOAL := help
.PHONY: help build demo quick test check-all test-programs test-platforms models coverage fuzz bench compat check format install uninstall site manual amalgamation packages release clean

help: ## show this list
	@echo "Slabyard: make TARGET"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

build: ## build the libraries, libslabyard.a and libslabyard.so, in build/library
	@scripts/install.sh build
	@cmake --preset release -B build/library -DSLABYARD_TESTS=OFF --no-warn-unused-cli >/dev/null
	@$(ANNOUNCE)
	@cmake --build build/library -j $(JOBS) $(QUIETLY)

demo: ## record a real program's allocations and compare allocators on them
	@scripts/install.sh demo
	@scripts/demo.sh

quick: ## test a change of a C file: unit tests, misuse and short stress; under a minute
	@scripts/test.sh quick

test: ## run the tests that a change has to pass, with sanitizers; 15 to 25 minutes on two cores
	@scripts/test.sh merge

check-all: ## run all tests, in all builds, at full length; two to three hours on two cores
	@scripts/test.sh everything

test-programs: build ## run real programs under the drop-in malloc (ARGS="redis git": only these; or --checked, --list, --options=LIST)
	@tests/programs/run $(ARGS)

test-platforms: ## run the tests for other processors, emulated; some 15 minutes each (ARGS=riscv64: only this; ARGS=--write: the last runs into docs/platforms.md)
	@scripts/install.sh test
	@scripts/test-platforms $(ARGS)

models: ## check models of the lock-free code in all orders of their threads' steps (ARGS=depot: only these)
	@scripts/install.sh test
	@tests/models/run $(ARGS)

bench: ## measure Slabyard and its peers in one interleaved run (ARGS=--quick, vmem, requests, checks, rust, survivors, cpp, server, truth, programs, service, sessions, threads, littered, seeds, --help)
	@scripts/install.sh $(if $(filter server,$(ARGS)),bench-server,bench)
	@$(if $(filter programs littered,$(ARGS)),scripts/install.sh bench-programs || echo "programs that are missing are left out")
	@$(if $(filter threads,$(ARGS)),scripts/install.sh bench-threads || echo "programs that are missing are left out")
	@$(if $(filter truth programs service threads littered,$(ARGS)),cd rust && cargo build --locked --release -p slabyard-cli -p slabyard-bench --features slabyard-cli/peers --bins --examples)
	@cd rust && cargo run --locked --release -p $(if $(filter seeds,$(ARGS)),slabyard-seeds,slabyard-bench) -- $(ARGS)

compat: ## build and test what is for users of earlier systems: the headers of compat/, the crates of rust/earlier
	@scripts/install.sh test
	@cmake --preset release >/dev/null && cmake --build --preset release --target tests_compat
	@ctest --preset release -L compat --output-on-failure
	@cd rust && cargo test --locked --release -p slabyard-nexus-slab -p slabyard-nexus-slab-2 -p slabyard-seeds

fuzz: ## fuzz the C library and the tool's parsers, guided by coverage, for TIME seconds (TIME=600; default: 60)
	@scripts/install.sh test
	@scripts/fuzz $(or $(TIME),60)

coverage: ## show which lines and branches of src/ the C tests reach, by file
	@scripts/install.sh test
	@scripts/coverage

check: build ## check formatting, include order, ABI and documents; run cppcheck, clang-tidy and clippy
	@scripts/install.sh test
	@scripts/check.sh

format: ## format the sources with clang-format and rustfmt
	@scripts/install.sh test
	@scripts/check-format --fix
	@cd rust && cargo fmt --all

install: QUIETLY = >build/library/log 2>&1 || { cat build/library/log; false; }
install: ANNOUNCE = echo "compiling the libraries: half a minute on two cores the first time"
install: build ## install headers, libraries, manual, guides: make install PREFIX=dir
	@cmake --install build/library --prefix "$(abspath $(PREFIX))"

uninstall: ## remove what make install installed: make uninstall PREFIX=dir
	@scripts/uninstall "$(abspath $(PREFIX))"

site: ## build the documentation site in build/site; with the Rust reference if cargo is installed
	@scripts/install.sh site
	@scripts/site html $$(! command -v cargo >/dev/null || echo --rust) build/site
	@echo "open build/site/index.html"

manual: ## build the man pages of the functions, the tool and the options in build/manual
	@scripts/install.sh site
	@scripts/site man build/manual

amalgamation: ## write the library as slabyard.c, slabyard.h and slabyard.hpp into build/amalgamation
	@scripts/install.sh amalgamation
	@scripts/amalgamate build/amalgamation

packages: ## build the packages (wheel, Debian, archive, crates) into build/packages/out; ARGS="wheel debian": only these
	@scripts/install.sh packages
	@packaging/build $(ARGS)
	@echo "install and try them: packaging/test; docs/install.md says how to use each"

release: ## write the archives of the last commit and their checksums into out/release
	@scripts/install.sh site
	@scripts/release out/release

clean: ## remove everything that was built
	@rm -rf build out rust/target
