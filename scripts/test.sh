#!/usr/bin/env bash
# Runs the tests, in one of three sizes. The times are for an idle machine with two cores:
#   quick        make quick: after a change of a C file; under a minute
#   merge        make test: the tests that a change has to pass; 25 to 50 minutes
#   everything   make check-all: all tests, in all builds, at full length; two to three hours
# Fast stages run first. Each stage writes a log into build/log/. If a stage fails, the output of the
# tests that failed is printed (scripts/show-failure), and the run ends. The last line has the number of tests that passed and failed:
# those of ctest and cargo; each check counts as one test.
# Usage: [FROM=N] [KEEP_GOING=1] scripts/test.sh [quick|merge|everything]
#   FROM        begins at stage N: after what stopped a long run was mended
#   KEEP_GOING  after a stage that fails the run goes on
set -uo pipefail
cd "$(dirname "$0")/.."

size=${1:-merge}

jobs=${JOBS:-$(nproc)}
logs=build/log
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
passed=0 failed=0 number=0 began=$SECONDS

count() { # count LOG: adds the numbers in the closing lines of ctest and cargo test
    local sums
    sums=$(awk '
        /tests passed, [0-9]+ tests? failed out of [0-9]+/ {
            for (i = 1; i <= NF; i++) {
                if ($i == "failed") bad = $(i - 2)
                if ($i == "of") all = $(i + 1)
            }
            ok += all - bad; wrong += bad
        }
        /^test result: / {
            for (i = 1; i <= NF; i++) {
                if ($i ~ /^passed;/) ok += $(i - 1)
                if ($i ~ /^failed;/) wrong += $(i - 1)
            }
        }
        END { print ok + 0, wrong + 0 }' "$1")
    passed=$((passed + ${sums% *}))
    failed=$((failed + ${sums#* }))
}

finish() { # finish STATUS
    echo "$((SECONDS - began)) s in all; logs in $logs"
    echo "$passed passed, $failed failed"
    exit "$1"
}

# stage NAME COMMAND...: runs a build step, or tests of ctest or cargo, which `count` counts. A command
# that cannot run on this machine exits with 77, and its last line says what is missing.
stage() {
    local name=$1 start=$SECONDS before=$passed log status=0
    shift
    number=$((number + 1))
    [ $number -ge "${FROM:-1}" ] || return 1
    log=$logs/$(printf '%02d-%s.log' $number "${name//[^a-z0-9]/-}")
    printf '[%2d] %-34s' $number "$name"
    "$@" >"$log" 2>&1 </dev/null || status=$?
    count "$log"
    if [ $status = 77 ]; then
        echo "left out: $(tail -n 1 "$log")"
        return 1
    fi
    if [ $status != 0 ]; then
        echo "FAILED after $((SECONDS - start)) s"
        scripts/show-failure "$log"
        echo "the whole log: $log"
        [ "$failed" != 0 ] || failed=1
        [ -n "${KEEP_GOING:-}" ] || finish 1
        return 1
    fi
    printf '%4d s' $((SECONDS - start))
    [ "$passed" = "$before" ] || printf '   %d passed' $((passed - before))
    echo
}

# check NAME COMMAND...: runs a stage that counts as one test, unless it is left out.
check() {
    stage "$@" && passed=$((passed + 1))
}

build() { # build PRESET "CMAKE_OPTIONS" TARGET...
    local name=$1 options=$2
    shift 2
    # shellcheck disable=SC2086 # several options
    cmake --preset "$name" $options && cmake --build --preset "$name" -j "$jobs" --target "${@:-all}"
}

# preset NAME "CMAKE_OPTIONS" "LABELS" CTEST_OPTIONS...: builds and runs the tests with these labels; with
# no labels, all tests.
preset() {
    local name=$1 options=$2 labels
    read -ra labels <<<"$3"
    shift 3
    stage "$name: build" build "$name" "$options" "${labels[@]/#/tests_}"
    if [ ${#labels[@]} != 0 ]; then set -- -L "^($(IFS="|" && echo "${labels[*]}"))\$" "$@"; fi
    stage "$name: test" ctest --preset "$name" -j "$jobs" "$@"
}

in_rust() { (cd rust && "$@"); }

# All features of the crates for users that stable Rust compiles.
full=slabyard/full,slabyard-nexus-slab/checked,slabyard-nexus-slab-2/checked,slabyard-nexus-slab-2/rc

forms() {
    check "shell scripts" scripts/check-scripts
    check "failures are shown" tests/scripts/show-failure.sh
    check "include order" scripts/check-layers
    check "formatting" scripts/check-format
    check "headers and sources alone" scripts/check-headers
    check "words of the documents" scripts/check-prose
    check "table of platforms" scripts/platform-table --check
    check "mistakes that tests see" scripts/mutate --check
    check "rustfmt" in_rust cargo fmt --all --check
}

binaries() {
    check "calls point down" scripts/check-layers --calls build/release
    check "what programs rely on" scripts/check-abi build/release/libslabyard.so
    if [ "$(uname -m)" = x86_64 ]; then check "32 bits compile" scripts/check-32-bits build/release; fi
}

documents() { # documents quick|all: with fewer or all of the tests of Rust
    local quick= all=
    if [ "$1" = quick ]; then quick=--quick; else all=--all; fi
    check "cargo: documents" in_rust env RUSTDOCFLAGS="-D warnings" \
        cargo doc --locked --release --no-deps -p slabyard-sys -p slabyard -p slabyard-nexus-slab \
        -p slabyard-nexus-slab-2 --features "$full"
    check "cargo: a user's project" tests/install/rust.sh $quick
    check "clippy" scripts/clippy.sh $all
    check "the document test itself" tests/docs/self-test.sh build/release
    check "documents" tests/docs/check.sh --build build/release
    if [ -x build/site-venv/bin/sphinx-build ]; then
        check "man pages" man_pages
        check "documentation site" scripts/site html build/site-test
    else
        echo "     man pages, documentation site: left out, because pip could not install Sphinx"
    fi
}

man_pages() { scripts/site man build/manual && tests/docs/manual.sh build/manual; }

# Leaves out three tests, which would take half of the time: reports with each compiler, forks at
# single instructions, and all failures of system calls.
quick() {
    preset release "-DSLABYARD_STRESS_SECONDS=0.5 -DSLABYARD_FUZZ_RUNS=" \
        "unit misuse compat cpp stress" -LE long \
        -E '^(misuse\.reports|unit\.test_fork_steps|unit\.test_failures)$'
}

# All code of the library runs under a sanitizer. ThreadSanitizer runs only tests that have threads.
# The other allocators are not built, and the tool is compiled without optimization, because both
# would take minutes.
merge() {
    local failures='^unit\.test_.*failures$' large='test_(heap|large)$'
    local crates=(slabyard-cli slabyard-sys slabyard slabyard-nexus-slab slabyard-nexus-slab-2
        slabyard-golden slabyard-models slabyard-certainty)
    forms
    preset release \
        "-DSLABYARD_STRESS_SECONDS=1 -DSLABYARD_FUZZ_RUNS=300 -DSLABYARD_FUZZ_CHECKED_RUNS=100" \
        "" -LE long -E "$failures"
    binaries
    # The C library alone. What takes longer than a second is left to check-all.
    preset portable "-DSLABYARD_STRESS_SECONDS=0.2 -DSLABYARD_FUZZ_RUNS=20" \
        "unit fuzz examples" -LE long -E "$failures|_(far|mixed|exhaustive|corpus)|$large"
    preset asan "-DSLABYARD_STRESS_SECONDS=1 -DSLABYARD_FUZZ_RUNS=300" \
        "unit fuzz cpp compat examples" -LE long -E '^examples\.(checked|malloc)\.'
    preset tsan "-DSLABYARD_STRESS_SECONDS=1" \
        "threads stress checked cpp" -LE long -E "$failures|^checked\.fuzz"
    check "big endian, some unit tests" tests/install/emulated.sh s390x quick
    # One command, so that crates which others depend on are compiled once.
    stage "cargo: the tool and the crates" in_rust cargo test --locked --release \
        --config 'profile.release.package.slabyard-cli.opt-level=0' \
        --no-default-features "${crates[@]/#/--package=}" \
        --features slabyard/std,slabyard-nexus-slab-2/std,slabyard-nexus-slab-2/rc \
        -- --skip holes_are_closed
    documents quick
}

everything() {
    local whole="-DSLABYARD_STRESS_SECONDS=3 -DSLABYARD_FUZZ_CHECKED_RUNS=300 -DSLABYARD_FUZZ_RUNS="
    forms
    preset release "$whole" ""
    check "cppcheck and clang-tidy" scripts/check-bugs
    binaries
    # The long tests with forks at single instructions take minutes. Other compilers need not repeat
    # them.
    preset portable "-DSLABYARD_STRESS_SECONDS=3 -DSLABYARD_FUZZ_RUNS=300" \
        "unit fuzz stress examples" -LE long
    preset posix "" "unit" -E '^unit\.test_fork_steps'
    preset release-clang "$whole" "" -E '^unit\.test_fork_steps\.'
    preset debug "$whole" "" -E '^unit\.test_fork_steps\.'
    preset asan "$whole" ""
    # The fuzz programs make few runs under ThreadSanitizer, because each has one thread.
    preset tsan "${whole}100" ""
    # With all features the functions of pools are not inlined, so the crate is tested with its
    # default features, too. --skip: the test that some code does not compile runs once, with all
    # features.
    stage "cargo: test" in_rust cargo test --locked --release --workspace \
        --features slabyard-cli/peers,slabyard-nexus-slab-2/rc -- --skip holes_are_closed
    stage "cargo: test, all features" in_rust cargo test --locked --release -p slabyard \
        -p slabyard-nexus-slab -p slabyard-nexus-slab-2 --features "$full"
    stage "the tool: release build" in_rust cargo build --locked --release -p slabyard-cli --features peers
    check "accounts of real servers" tests/look/run.sh
    check "other processors, emulated" scripts/test-platforms aarch64 s390x i386
    check "cargo: other targets" scripts/check-rust-targets
    check "cargo: Windows, under wine" tests/install/rust-windows.sh
    stage "miri: test" scripts/miri.sh
    stage "threads of Rust under tsan" scripts/rust-tsan
    check "cargo: without std" in_rust cargo check --locked --release -p slabyard --no-default-features
    check "cargo: nexus-slab without std" in_rust cargo check --locked --release \
        -p slabyard-nexus-slab-2 --no-default-features --features alloc,rc
    documents all
    if [ -x build/packages/venv/bin/maturin ]; then
        check "packages" packaging/build
        check "packages, used and built again" packaging/test --again
    else
        echo "     packages: left out, because pip could not install maturin"
    fi
}

case $size in
quick | merge | everything) ;;
*) echo "test.sh: quick, merge or everything, not '$size'" >&2 && exit 2 ;;
esac
case $size in
quick) purpose=quick ;;
merge) purpose=test ;;
everything) purpose=check-all ;;
esac
scripts/install.sh $purpose || exit 1
mkdir -p $logs
rm -f $logs/*.log
$size
finish $((failed > 0))
