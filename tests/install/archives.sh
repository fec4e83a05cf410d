#!/usr/bin/env bash
# Makes CPack's archive and Debian package of a build, twice, and compares them byte by byte. Then it
# unpacks each into an empty folder, and builds and runs a program with it.
# Usage: tests/install/archives.sh BUILD_DIR
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SOURCE_DATE_EPOCH=1700000000

fail() {
    echo "archives: $*" >&2
    exit 1
}

kinds=TGZ
! command -v dpkg-deb >/dev/null || kinds="TGZ;DEB"
for time in first second; do
    cpack -G "$kinds" --config "$build/CPackConfig.cmake" -B "$work/$time" >"$work/log" 2>&1 ||
        fail "$(cat "$work/log")"
    rm -r "$work/$time/_CPack_Packages"
done
diff -r "$work/first" "$work/second" || fail "two runs give other bytes"

use() { # use NAME PREFIX: builds and runs a program with the tree
    local name
    for name in slabyard slabyard-static; do
        PKG_CONFIG_PATH=$2/lib/pkgconfig
        export PKG_CONFIG_PATH
        # shellcheck disable=SC2046 # several flags
        "${CC:-cc}" -O2 "$here/consumer.c" $(pkg-config --cflags --libs "$name") -o "$work/program" ||
            fail "$1: a program does not build with $name"
        LD_LIBRARY_PATH=$2/lib "$work/program" || fail "$1: the program fails with $name"
    done
    echo "ok $1"
}
mkdir "$work/tree"
tar -xzf "$work"/first/slabyard-*.tar.gz -C "$work/tree" --strip-components=1
use archive "$work/tree"
if [[ $kinds == *DEB* ]]; then
    dpkg-deb -x "$work"/first/*.deb "$work/root"
    use deb "$work/root/usr"
fi
