#!/usr/bin/env bash
# Builds a release twice, with different umask, time zone and locale, and compares the bytes. Then
# unpacks the archives in an empty folder, runs `make install` there, compiles and runs the README's
# examples in C and C++ with the installed library, and compiles a program with the amalgamation.
# Without a git checkout or Sphinx it tests nothing and exits with 77.
# Usage: tests/install/release.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "release: $*" >&2
    exit 1
}

git rev-parse --git-dir >/dev/null 2>&1 || { echo "release: not a git checkout, nothing to test" && exit 77; }
if [ ! -x "${SITE_TOOLS:-$root/build/site-venv}/bin/sphinx-build" ]; then
    echo "release: Sphinx is not installed, so no release can be made" && exit 77
fi
scripts/release "$work/first" >/dev/null
(umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 scripts/release "$work/second" >/dev/null)
diff -r "$work/first" "$work/second" || fail "two releases of the same commit differ"
(cd "$work/first" && sha256sum --quiet -c SHA256SUMS) || fail "the checksums are wrong"
echo "ok same-bytes"

mkdir "$work/empty" && cd "$work/empty"
for archive in "$work"/first/*.tar.gz; do tar -xzf "$archive"; done
source=$(echo "$PWD"/slabyard-*[0-9])
[ ! -e "$source/.git" ] || fail "the archive has a .git"

# From here on, only files of the archives are used.
cd "$source"
make install PREFIX="$work/prefix" >"$work/log" 2>&1 || fail "make install: $(tail -n 20 "$work/log")"
mkdir "$work/examples" && awk -v OUT="$work/examples" -f tests/docs/extract.awk README.md >/dev/null
export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig
cd "$work/examples"
programs=0
for program in *.c *.cpp; do
    [ -e "$program" ] || continue
    compiler=cc && [ "${program##*.}" = c ] || compiler="c++ -std=c++17"
    # shellcheck disable=SC2046 # several flags
    $compiler -DSY_STATIC "$program" $(pkg-config --cflags --libs slabyard-static) -o program ||
        fail "README.md: $program does not build"
    ./program || fail "README.md: $program fails"
    programs=$((programs + 1))
done
[ "$programs" -ge 2 ] || fail "only $programs examples in the README"
echo "ok readme-examples"

cp "$(echo "$work"/empty/slabyard-*-amalgamation)"/slabyard.[ch]* .
cc -O2 -c slabyard.c || fail "the amalgamation does not compile"
echo '#include "slabyard.h"
int main(void) { sy_free(sy_malloc(10)); return 0; }' >taken.c
cc taken.c slabyard.o -pthread -o taken && ./taken || fail "a program with the amalgamation fails"
echo "ok amalgamation"

[ -s "$work/prefix/share/man/man3/sy_cache_alloc.3" ] ||
    fail "make install from the archive installs no man page of sy_cache_alloc"
man=$(echo "$work"/empty/slabyard-*-manual)
[ -s "$man/site/reference/c/cache.html" ] || fail "the manual has no site"
[ -s "$man/man3/sy_cache_alloc.3" ] || fail "the manual has no man page of sy_cache_alloc"
grep -q "\"$(sed -n 's/^project(slabyard VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")\"" \
    "$man"/man3/slabyard_cache.3 || fail "the manual has another version"
echo "ok manual"
cmp -s "$root/LICENSE" "$source/LICENSE" || fail "the LICENSE in the archive differs"
