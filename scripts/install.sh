#!/usr/bin/env bash
# Installs the tools that a make target needs and this machine lacks, with apt-get. On a system
# without apt-get, it lists the missing tools and fails. If nothing is missing, it does nothing and
# does not use the network. The tools of the documentation site are Python packages, which are
# installed in the virtual environment build/site-venv.
# Usage: scripts/install.sh build|quick|test|check-all|demo|bench|bench-server|bench-programs|bench-threads|look|amalgamation|site|packages
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-build}
rust_needed=$(sed -n 's/^rust-version *= *"\([0-9.]*\)".*/\1/p' rust/Cargo.toml 2>/dev/null)
rust_needed=${rust_needed:-1.85}

have() { command -v "$1" >/dev/null 2>&1; }
has_library() { PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -F "$1" >/dev/null; }
at_least() { # at_least VERSION WANTED
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]
}
runs() { # runs LANGUAGE COMPILER FLAGS...: compiles and links an empty program
    local language=$1
    shift
    echo 'int main(void) { return 0; }' |
        "$@" -x "$language" - -o /dev/null >/dev/null 2>&1
}
has_mingw() { have x86_64-w64-mingw32-gcc || [ "$(uname -m)" != x86_64 ]; }
has_wine() { have wine64 || [ -x /usr/lib/wine/wine64 ] || [ "$(uname -m)" != x86_64 ]; }
has_debootstrap() { PATH=$PATH:/usr/sbin have debootstrap; }
has_boost() { g++ -fsyntax-only -include boost/pool/pool_alloc.hpp -x c++ /dev/null; }
rust_version() { "$1" --version 2>/dev/null | awk '{ print $2 }'; }
rust_is_new() { have cargo && have rustc && at_least "$(rust_version rustc)" "$rust_needed"; }

# Each tool is a line "description | test whether it is installed | Debian packages".
needs_of_build() {
    cat <<END
C compiler | runs c gcc | gcc libc6-dev
C++ compiler | runs c++ g++ | g++
CMake | have cmake | cmake
Ninja | have ninja | ninja-build
pkg-config | have pkg-config | pkg-config
END
}
needs_of_rust() {
    cat <<END
Rust $rust_needed or newer | rust_is_new | RUST
END
}
needs_of_quick() {
    cat <<END
cmocka | pkg-config --exists cmocka | libcmocka-dev
libdw | has_library libdw.so.1 | libdw1
END
}
needs_of_look() {
    cat <<END
Redis | have redis-server && have redis-benchmark | redis-server redis-tools
PostgreSQL | ls /usr/lib/postgresql/*/bin/pgbench | postgresql postgresql-client
Prometheus | [ -x /usr/bin/prometheus ] | prometheus
curl | have curl | curl
Python | have python3 | python3
END
}
needs_of_test() {
    needs_of_quick
    cat <<END
clang | runs c clang | clang
clang's sanitizers | runs c clang -fsanitize=thread && runs c clang -fsanitize=address | CLANG_RT
names in sanitizer reports | have llvm-symbolizer | llvm
clang-format | have clang-format | clang-format
clang-tidy | have clang-tidy | clang-tidy
cppcheck | have cppcheck | cppcheck
Valgrind | have valgrind | valgrind
setarch | have setarch | util-linux
Meson | have meson | meson
Redis' clients | have redis-cli && have redis-benchmark | redis-tools
wine | has_wine | wine64
mingw-w64 | has_mingw | gcc-mingw-w64-x86-64-posix
cargo fmt | have rustfmt && rustfmt --version | RUSTFMT
cargo clippy | have cargo-clippy && cargo-clippy --version | CLIPPY
END
}
needs_of_check_all() {
    cat <<END
musl's C compiler | have musl-gcc | musl-tools
END
}
# The allocators that the server benchmark preloads. It leaves out those that are not installed.
needs_of_bench_server() {
    offered mimalloc libmimalloc.so.2 libmimalloc2.0
    offered jemalloc libjemalloc.so.2 libjemalloc2
    offered TCMalloc libtcmalloc_minimal.so.4 libtcmalloc-minimal4
}
# The programs that the part `programs` of the benchmark runs. It leaves out those that are missing.
needs_of_bench_programs() {
    offered_program "Python 3" python3 python3
    offered_program "the SQLite shell" sqlite3 sqlite3
    offered_program Perl perl perl
    offered_program Lua lua5.4 lua5.4
    offered_program Git git git
    offered_program Z3 z3 z3
    offered_program Ghostscript gs ghostscript
    offered_program "Redis' server and clients" redis-check-rdb redis-tools
}
# What compiles the programs of the part `threads` that are linked with musl.
needs_of_bench_threads() {
    offered_program "musl's C compiler" musl-gcc musl-tools
}
needs_of_python() {
    cat <<END
Python 3 | have python3 | python3
END
}
needs_of_site() {
    needs_of_python
    cat <<END
virtual environments of Python | python3 -c "import ensurepip, venv" | python3-venv
mandoc | have mandoc | mandoc
END
}
needs_of_packages() {
    cat <<END
debhelper | have dh | debhelper
dpkg-buildpackage | have dpkg-buildpackage | dpkg-dev
lintian | have lintian | lintian
debootstrap | has_debootstrap | debootstrap
rpm | have rpmbuild && have rpm2cpio | rpm
cpio | have cpio | cpio
rpmlint | have rpmlint | rpmlint
Meson | have meson | meson
musl's C compiler | have musl-gcc | musl-tools
an emulator for 64-bit Arm | have qemu-aarch64 | qemu-user
busybox | have busybox | busybox-static
END
}
needs_of_bench() {
    cat <<END
Boost's headers | has_boost | libboost-dev
END
}
needs_of_demo() {
    cat <<END
the SQLite shell | have sqlite3 | sqlite3
END
}

needs() {
    needs_of_build
    case $purpose in
    build) ;;
    quick) needs_of_quick ;;
    test) needs_of_rust && needs_of_site && needs_of_test ;;
    check-all) needs_of_rust && needs_of_site && needs_of_test && needs_of_check_all && needs_of_packages ;;
    demo) needs_of_rust && needs_of_demo ;;
    bench) needs_of_rust && needs_of_bench ;;
    bench-server) needs_of_rust && needs_of_bench && needs_of_bench_server ;;
    bench-programs) needs_of_rust && needs_of_bench && needs_of_bench_programs ;;
    bench-threads) needs_of_rust && needs_of_bench && needs_of_bench_threads ;;
    look) needs_of_build && needs_of_look ;;
    amalgamation) needs_of_python ;;
    site) needs_of_site ;;
    packages) needs_of_rust && needs_of_site && needs_of_packages ;;
    *) echo "install.sh: build, quick, test, check-all, demo, bench, bench-server, bench-programs, bench-threads, look, amalgamation, site or packages, not '$purpose'" >&2 && exit 2 ;;
    esac
}

missing() { # prints a line for each tool that is not installed
    needs | while IFS='|' read -r what test packages; do
        eval "$test" >/dev/null 2>&1 || echo "${what% }|${packages# }"
    done
}

candidate() { apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'; }

# Whether apt-get has no package lists yet, as on a fresh machine.
never_updated() { [ "$(id -u)" = 0 ] && ! ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1; }

# offered WHAT LIBRARY PACKAGE: a line of the list of tools, unless apt-get does not offer the
# package.
offered() {
    [ -z "$(candidate "$3")" ] && ! never_updated || echo "$1 | has_library $2 | $3"
}
offered_program() { # the same for WHAT COMMAND PACKAGE
    [ -z "$(candidate "$3")" ] && ! never_updated || echo "$1 | have $2 | $3"
}

# rust_packages NAMES WEB_NAMES: prints the first of these two lists of packages whose compiler is
# new enough. Debian 12 has a newer Rust in packages whose names contain -web.
rust_packages() {
    if at_least "$(candidate rustc)" "$rust_needed"; then
        echo "$1"
    elif at_least "$(candidate rustc-web)" "$rust_needed"; then
        echo "$2"
    fi
}

resolve() { # resolve NAME: names in capitals stand for packages that depend on the Debian release
    case $1 in
    RUST) rust_packages "rustc cargo" "rustc-web cargo-web" ;;
    RUSTFMT) rust_packages rustfmt rustfmt-web ;;
    CLIPPY) rust_packages rust-clippy rust-web-clippy ;;
    CLANG_RT) candidate clang | sed -n 's/^[0-9]*:\([0-9]*\)\..*/libclang-rt-\1-dev/p' ;;
    *) echo "$1" ;;
    esac
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

say_missing() {
    echo "These tools are missing, which 'make' needs:" >&2
    echo "$lacking" | while IFS='|' read -r what packages; do
        case $packages in
        *[A-Z]*) echo "  $what" >&2 ;;
        *) echo "  $what (on Debian: $packages)" >&2 ;;
        esac
    done
    case $lacking in
    *RUST* | *CLIPPY*)
        echo "If the system's Rust is older than $rust_needed, install rustup, then run" >&2
        echo "  rustup toolchain install stable --component rustfmt --component clippy" >&2
        ;;
    esac
}

# Installs the Rust toolchains that scripts/miri.sh, scripts/rust-tsan and tests/install/rust.sh
# use, if rustup is installed. Without them, these scripts leave tests out.
toolchains() {
    local oldest
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' rust/slabyard/Cargo.toml)
    have rustup || return 0
    if ! cargo +nightly miri --version >/dev/null 2>&1 || ! cargo "+$oldest" --version >/dev/null 2>&1; then
        echo "installing: nightly Rust with Miri, Rust $oldest"
        rustup toolchain install nightly --profile minimal --component miri,rust-src >/dev/null 2>&1 &&
            rustup toolchain install "$oldest" --profile minimal >/dev/null 2>&1 ||
            echo "rustup could not install them" >&2
    fi
}

# The tools of packaging/build and packaging/test. A wheel needs maturin; without Conan its recipe is
# not tested.
tools_of_packages() {
    local tools=build/packages/venv log=build/packages/venv.log
    cmp -s packaging/requirements.txt "$tools/installed.txt" && return
    echo "installing: maturin, Conan, zig"
    mkdir -p build/packages
    if python3 -m venv --clear "$tools" >"$log" 2>&1 &&
        "$tools/bin/pip" install --quiet --disable-pip-version-check -r packaging/requirements.txt >>"$log" 2>&1; then
        cp packaging/requirements.txt "$tools/installed.txt"
        return
    fi
    rm -rf "$tools"
    tail -n 3 "$log" >&2
    echo "pip could not install packaging/requirements.txt, so the wheel cannot be built" >&2
}

# Installs the packages of docs/requirements.txt, unless the same list is installed already. If that
# fails, for example without a network, tests still run; scripts/test.sh then leaves out the site.
finish() {
    [ "$purpose" != check-all ] || toolchains
    case $purpose in
    test | check-all) scripts/zig.sh || echo "pip could not install ziglang: no tests for Windows" >&2 ;;
    esac
    case $purpose in
    packages | check-all) tools_of_packages ;;
    esac
    case $purpose in
    test | check-all | site | packages) ;;
    *) exit 0 ;;
    esac
    local tools=build/site-venv log=build/site-venv.log
    cmp -s docs/requirements.txt "$tools/installed.txt" && exit 0
    echo "installing: Sphinx and its extensions"
    mkdir -p build
    if python3 -m venv --clear "$tools" >"$log" 2>&1 &&
        "$tools/bin/pip" install --quiet --disable-pip-version-check -r docs/requirements.txt >>"$log" 2>&1; then
        cp docs/requirements.txt "$tools/installed.txt"
        exit 0
    fi
    rm -rf "$tools"
    tail -n 3 "$log" >&2
    echo "pip could not install docs/requirements.txt, so the documentation site cannot be built" >&2
    [ "$purpose" != site ] && [ "$purpose" != packages ]
    exit
}

lacking=$(missing)
[ -n "$lacking" ] || finish
if ! have apt-get; then
    say_missing
    echo "There is no apt-get on this system: install these tools with its own package manager." >&2
    exit 1
fi
if [ "$(id -u)" != 0 ] && ! have sudo; then
    say_missing
    echo "Installing them needs root or sudo. Run once as root: $0 $purpose" >&2
    exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "installing:" $(echo "$lacking" | cut -d'|' -f1 | paste -sd, | sed "s/,/, /g")
as_root apt-get update >"$log" 2>&1 || { cat "$log" >&2 && exit 1; }
lacking=$(missing) # the new lists may offer more packages
packages=
for name in $(echo "$lacking" | cut -d'|' -f2); do
    packages="$packages $(resolve "$name")"
done
as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends $packages >"$log" 2>&1 ||
    { tail -n 40 "$log" >&2 && exit 1; }

hash -r
lacking=$(missing)
[ -z "$lacking" ] || { say_missing && exit 1; }
finish
