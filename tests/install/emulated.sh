#!/usr/bin/env bash
# Builds the library, the drop-in malloc and the tests for another processor, and runs them: unit
# tests, fuzz programs, stress tests, reports of misuse, C++, examples, programs for earlier systems,
# the tests of the drop-in malloc and, on 64-bit Arm, some real programs under it. They run under
# qemu's user mode; those for i386 run as they are, if this machine's processor is x86-64. Exits with
# 77 if a package cannot be had, and if this machine is itself one with such a processor.
#
# It works in build/emulated/PROCESSOR. The compiler, the emulator, and the libraries and programs for
# the processor are Debian's packages. They are unpacked there and not installed, so the system stays as
# it is, and the compilers do not conflict with others:
#     host   the compiler, and what it links with; it runs on this machine
#     root   what the programs under the emulator see in place of the system's folders
#     tests  the CMake build
# The emulator lies in build/emulated/qemu, for all of them.
#
# Usage: tests/install/emulated.sh PROCESSOR [SECONDS_OF_STRESS]   all tests
#        tests/install/emulated.sh PROCESSOR quick                 unit tests of some layers, if the
#                                                                  packages are there already
#        tests/install/emulated.sh PROCESSOR only TESTS            the tests with these names, a regular
#                                                                  expression
#        tests/install/emulated.sh --list                          the names of processors
# Pages have 4 KiB: the emulator has those of this machine. tests/pages emulates larger ones.
# ctest's results are written to build/emulated/NAME.xml; with `quick` or `only`, to NAME.quick.xml or NAME.only.xml.
set -euo pipefail
cd "$(dirname "$0")/../.."

# name | Debian's name | the compiler's prefix | folder of libraries | Debian's release | loader, if
# programs run without an emulator
processors="
aarch64 | arm64 | aarch64-linux-gnu | aarch64-linux-gnu | bookworm |
riscv64 | riscv64 | riscv64-linux-gnu | riscv64-linux-gnu | trixie |
ppc64le | ppc64el | powerpc64le-linux-gnu | powerpc64le-linux-gnu | bookworm |
s390x | s390x | s390x-linux-gnu | s390x-linux-gnu | bookworm |
armhf | armhf | arm-linux-gnueabihf | arm-linux-gnueabihf | bookworm |
i386 | i386 | i686-linux-gnu | i386-linux-gnu | bookworm | lib/ld-linux.so.2
"

name=${1:?a processor, or --list} mode=${2:-1} only=${3:-} results=$1.xml seconds=1
case $mode in quick | only) results=$1.$mode.xml ;; *) seconds=$mode ;; esac
if [ "$name" = --list ]; then
    awk -F ' *[|]' 'NF > 1 { print $1 }' <<<"$processors"
    exit
fi
leave_out() {
    echo "$name: $*"
    exit 77
}
row=$(awk -F ' *[|] *' -v name="$name" '$1 == name { print $2, $3, $4, $5, $6 }' <<<"$processors")
[ -n "$row" ] || { echo "$name is none of: $("$0" --list | xargs)" && exit 2; }
read -r debian_name triple multiarch libraries_of loader <<<"$row"

jobs=${JOBS:-2} machine=$(uname -m)
[ "$machine" != "$name" ] || leave_out "this machine has such a processor: the other tests are for it"
[ "$machine" = x86_64 ] || loader=
folder=$PWD/build/emulated/$name
root=$folder/root host=$folder/host qemus=$PWD/build/emulated/qemu
case $name in ppc64le | i386 | aarch64 | riscv64 | s390x) emulator=qemu-$name ;; *) emulator=qemu-arm ;; esac

# ---- the compiler, the emulator, libraries and programs ----

packages="libc6 libstdc++6 libatomic1 libcmocka-dev"
[ $name != aarch64 ] || packages+=" lua5.4 sqlite3 jq"
[ -z "$loader" ] || packages+=" libdw1" # reports name functions by it, in a child that no emulator allows
packages_of_compiler="g++-12-$triple gcc-12-$triple gcc-12-$triple-base cpp-12-$triple binutils-$triple
    libmpc3 libmpfr6 libgmp10 libisl23 libjansson4"
for library in libgcc-12-dev libstdc++-12-dev libc6-dev libc6 linux-libc-dev libgcc-s1 libstdc++6 libatomic1; do
    packages_of_compiler+=" $library-$debian_name-cross"
done

# Before version 8, the emulator keeps a record of each page of address space. Slabyard reserves
# gigabytes, so a test may take minutes and all of the machine's memory. Old versions also abort in
# children of processes that have threads.
is_new() { # is_new PROGRAM
    local version
    version=$("$1" --version 2>/dev/null | sed -n 's/.* version \([0-9]*\).*/\1/p')
    [ "${version:-0}" -ge 8 ]
}

. tests/install/debian.sh

unpack_all() { # unpack_all INTO PACKAGE_FILE...
    local file
    for file in "${@:2}"; do dpkg-deb -x "$file" "$1" || return 1; done
}

# Links that packages leave to others or that lead out of the folder: /lib is /usr/lib from Debian 13 on,
# and the loader of POWER has an absolute link.
complete_links() {
    local folder link
    for folder in lib lib64; do
        [ ! -d "$root/usr/$folder" ] || [ -e "$root/$folder" ] || ln -s "usr/$folder" "$root/$folder"
    done
    find "$root" -lname '/*' | while read -r link; do
        ln -sfn "$root$(readlink "$link")" "$link"
    done
}

fetch_root() {
    rm -rf "$root" && mkdir -p "$root"
    # shellcheck disable=SC2086 # several packages
    arch=$debian_name apt_get install -y --no-install-recommends --download-only $packages &&
        unpack_all "$root" "$folder"/apt/archives/*.deb && complete_links && touch "$root/complete"
}

fetch_into() { # fetch_into FOLDER PACKAGE...: packages for this machine
    rm -rf "$1" && mkdir -p "$1/packages"
    (cd "$1/packages" && arch=$(dpkg --print-architecture) apt_get download "${@:2}") &&
        unpack_all "$1" "$1"/packages/*.deb && rm -r "$1/packages" && touch "$1/complete"
}

qemu=
if [ -z "$loader" ]; then
    qemu=$(command -v "$emulator" || true)
    is_new "${qemu:-none}" || qemu=$qemus/usr/bin/$emulator
fi
has_qemu() { [ -z "$qemu" ] || is_new "$qemu"; }
if [ ! -e "$root/complete" ] || [ ! -e "$host/complete" ] || ! has_qemu; then
    [ "$mode" != quick ] || leave_out "the packages are not there: make test-platforms ARGS=$name"
    arch=$debian_name
    prepare_apt "$libraries_of" || leave_out "there is no apt-get that has Debian's packages"
    [ -e "$root/complete" ] || fetch_root || leave_out "the packages $packages cannot be had"
    arch=$(dpkg --print-architecture)
    prepare_apt || true
    # shellcheck disable=SC2086 # several packages
    [ -e "$host/complete" ] || fetch_into "$host" $packages_of_compiler || leave_out "the compiler $triple-g++-12 cannot be had"
    has_qemu || fetch_into "$qemus" -t "$release-backports" qemu-user || true
    has_qemu || leave_out "qemu's user mode, version 8 or newer, cannot be had"
fi

# ---- the tests ----

# Some tests skip a part under the emulator (tests/support/emulated.h). For example, the children of
# stress_fork start no thread, since the emulator may hang there. tests/install/left-out.txt lists what
# is left out here.
omit=$(awk -F ' +: +' -v name="$name" '/^[^#]/ && name ~ "^(" $1 ")$" { print $2 }' tests/install/left-out.txt | paste -sd '|')

with_compiler() { LD_LIBRARY_PATH=$host/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo x86_64-linux-gnu) "$@"; }
with_compiler cmake -G Ninja -S . -B "$folder/tests" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/cross.cmake" \
    -DSLABYARD_PROCESSOR="$name" -DSLABYARD_TRIPLE="$triple" -DSLABYARD_MULTIARCH="$multiarch" \
    -DSLABYARD_HOST="$host" -DSLABYARD_ROOT="$root" -DSLABYARD_LOADER="$loader" -DSLABYARD_QEMU="$qemu" \
    -DCMAKE_BUILD_TYPE=Release \
    -DSLABYARD_STRESS_SECONDS="$seconds" -DSLABYARD_FUZZ_RUNS=100 -DSLABYARD_FUZZ_CHECKED_RUNS=20
labels="unit fuzz stress checked misuse cpp compat examples malloc" targets=
if [ "$mode" = quick ]; then
    labels=unit targets="test_map test_chunk test_slab test_cache test_handle test_heap test_vmem test_pool"
    only="unit\\.(${targets// /|})"
else
    # shellcheck disable=SC2086 # several labels
    targets=$(printf 'tests_%s ' $labels)
fi
# shellcheck disable=SC2086 # several labels
with_compiler cmake --build "$folder/tests" -j "$jobs" --target $targets
ctest --test-dir "$folder/tests" -j "$jobs" --output-on-failure --no-tests=error \
    --output-junit "$PWD/build/emulated/$results" ${only:+-R "^($only)\$"} \
    -L "^(${labels// /|})\$" -E "^($omit)\$"
[ "$name" = aarch64 ] && [ -z "$only" ] || exit 0

# ---- instructions of the fast paths, without and with the atomic instructions of Armv8.1 ----

compiler=("$host/usr/bin/$triple-gcc-12" "--sysroot=$host")
with_compiler tests/golden/check.sh --emulator "$qemu" "${compiler[@]}"
with_compiler tests/golden/check.sh --emulator "$qemu" --variant lse:-march=armv8.1-a "${compiler[@]}"

# ---- real programs under the drop-in malloc ----

library=$folder/tests/libslabyard-malloc.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/programs/common.sh
. tests/programs/scripts.sh # in_lua
emulated() { "$qemu" -L "$root" "$root/usr/bin/$1" "${@:2}"; }

help=$(LD_PRELOAD=$library SLABYARD=help emulated lua5.4 -e '' 2>&1)
[[ $help == *"options of SLABYARD"* ]] || fail "the library does not answer SLABYARD=help: $help"
for options in "" check,redzone,poison,sample=1/50; do
    both "sqlite3 $options" emulated sqlite3 database "$(in_sqlite 20000)"
    both "lua5.4 $options" emulated lua5.4 -e "$in_lua"
    both "jq $options" emulated jq -n '[range(20000) | {key: tostring, value: [., . * 2]}] | map(select(.value[0] % 3 == 0)) | from_entries | keys | length, (tojson | length)'
done
