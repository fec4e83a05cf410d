#!/usr/bin/env bash
# Builds the library, the drop-in malloc and the tests for 64-bit Arm, with a cross compiler, and
# runs them under qemu's user mode: unit tests, fuzz programs, stress tests, reports of misuse, C++,
# examples, programs for earlier systems, the tests of the drop-in malloc, and some real programs
# under it. Exits with 77 if the compiler or a package is missing, and if this machine is itself one
# with such a processor.
#
# It works in build/aarch64. The emulator, and the libraries and programs for Arm, are Debian's
# packages. They are unpacked there and not installed, so the system stays as it is:
#     root   what the programs under the emulator see in place of the system's folders
#     host   the emulator, which runs on this machine
#     tests  the CMake build
# Usage: tests/install/aarch64.sh [SECONDS_OF_STRESS]
set -euo pipefail
cd "$(dirname "$0")/../.."

leave_out() {
    echo "aarch64: $*"
    exit 77
}
[ "$(uname -m)" != aarch64 ] || leave_out "this machine has such a processor: the other tests are for it"
for tool in aarch64-linux-gnu-gcc aarch64-linux-gnu-g++; do
    command -v $tool >/dev/null || leave_out "$tool is missing (Debian: g++-aarch64-linux-gnu)"
done
seconds=${1:-1} jobs=${JOBS:-2}
folder=$PWD/build/aarch64 arch=arm64
root=$folder/root
packages="libc6 libstdc++6 libcmocka-dev lua5.4 sqlite3 jq"

# ---- the emulator, libraries and programs ----

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

fetch_root() {
    rm -rf "$root" && mkdir -p "$root"
    # shellcheck disable=SC2086 # several packages
    apt_get install -y --no-install-recommends --download-only $packages &&
        unpack_all "$root" "$folder"/apt/archives/*_{arm64,all}.deb && touch "$root/complete"
}

fetch_qemu() {
    mkdir -p "$folder/host"
    (cd "$folder/host" && apt_get download -t "$release-backports" "qemu-user:$(dpkg --print-architecture)") &&
        unpack_all "$folder/host" "$folder"/host/qemu-user_*.deb
}

qemu=$(command -v qemu-aarch64 || true)
is_new "${qemu:-none}" || qemu=$folder/host/usr/bin/qemu-aarch64
if [ ! -e "$root/complete" ] || ! is_new "$qemu"; then
    prepare_apt || leave_out "there is no apt-get that has Debian's packages"
    [ -e "$root/complete" ] || fetch_root || leave_out "the packages $packages for 64-bit Arm cannot be had"
    is_new "$qemu" || fetch_qemu || true
    is_new "$qemu" || leave_out "qemu's user mode, version 8 or newer, cannot be had"
fi

# ---- the tests ----

# Some tests skip a part under the emulator (tests/support/emulated.h). For example, the children of
# stress_fork start no thread, since the emulator may hang there.

# Left out because the emulator cannot do what they need:
omit='unit\.test_fork_steps.*' # single steps by the trap flag, which only x86 has
# clone without SIGCHLD: the library asks a child for names and for unreachable objects
omit+='|unit\.test_(leaks|os_child|symbols)|misuse\.leak_unreachable.*'
omit+='|unit\.test_start_hooks' # a process that starts a program for this processor
omit+='|unit\.test_address_space' # limits on address space and data
omit+='|soak|stress\.stress_soak' # resident memory, in which the emulator's own is
omit+='|misuse\.explain_.*' # the address of an access beyond the address space
# Left out because they start programs of this machine's processor, or compile some.
omit+='|misuse\.reports|malloc\.(programs|programs_run|process|loaded|messages|sampled|mistakes|small|limited)|examples\.kv_server\..*'
# Left out because they take minutes, and the release build has them.
omit+='|unit\.test_.*failures|examples\.(checked|malloc)\..*'

cmake -G Ninja -S . -B "$folder/tests" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.cmake" \
    -DSLABYARD_ROOT="$root" -DSLABYARD_QEMU="$qemu" -DCMAKE_BUILD_TYPE=Release \
    -DSLABYARD_STRESS_SECONDS="$seconds" -DSLABYARD_FUZZ_RUNS=100 -DSLABYARD_FUZZ_CHECKED_RUNS=20
labels="unit fuzz stress checked misuse cpp compat examples malloc"
# shellcheck disable=SC2086 # several labels
cmake --build "$folder/tests" -j "$jobs" --target $(printf 'tests_%s ' $labels)
ctest --test-dir "$folder/tests" -j "$jobs" --output-on-failure --no-tests=error \
    -L "^(${labels// /|})\$" -E "^($omit)\$"

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
