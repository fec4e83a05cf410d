#!/usr/bin/env bash
# Builds Slabyard as a guest of other projects: by FetchContent, as a Meson subproject, and from a
# build folder that is not installed. Only what the project links is built, and what the project
# installs is its own, unless it sets SLABYARD_INSTALL.
# Usage: tests/install/guest.sh BUILD_DIR
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "guest: $*" >&2
    exit 1
}
quietly() { "$@" >"$work/log" 2>&1 || fail "$*: $(cat "$work/log")"; }

cp "$here/consumer.c" "$work/program.c"
cat >"$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.21)
project(program C)
include(FetchContent)
FetchContent_Declare(slabyard SOURCE_DIR $root)
FetchContent_MakeAvailable(slabyard)
add_executable(program program.c)
target_link_libraries(program PRIVATE slabyard::static)
install(TARGETS program)
END
cmake_build() { quietly cmake --build "$work/build" -j "${JOBS:-2}"; }
installed() { # installed: prints what the project installs
    rm -rf "$work/to"
    quietly env DESTDIR="$work/to" cmake --install "$work/build" --prefix /
    (cd "$work/to" && find . ! -type d | sort)
}
quietly cmake -S "$work" -B "$work/build" -DCMAKE_BUILD_TYPE=Release
cmake_build
"$work/build/program" || fail "the program fails when run"
built=$(cd "$work/build" && find . -name '*slabyard*.a' -o -name '*slabyard*.so*' -o -name 'slabyard-malloc.o')
[ "$built" = ./_deps/slabyard-build/libslabyard.a ] || fail "more is built than the program links: $built"
files=$(installed)
[ "$files" = ./bin/program ] || fail "the project installs more than its program: $files"
echo "ok guest-cmake"

quietly cmake "$work/build" -DSLABYARD_INSTALL=ON
cmake_build
installed >"$work/files"
for file in include/slabyard/cache.h lib/libslabyard.a lib/cmake/slabyard/slabyard-config.cmake; do
    grep -qx "./$file" "$work/files" || fail "with SLABYARD_INSTALL, $file is not installed"
done
echo "ok guest-install"

quietly cmake -S "$here" -B "$work/neighbour" -Dslabyard_DIR="$build"
quietly cmake --build "$work/neighbour"
for program in with-shared with-static with-dlopen; do
    "$work/neighbour/$program" || fail "$program, linked with a build folder, fails when run"
done
echo "ok guest-build-folder"

command -v meson >/dev/null || exit 0
mkdir -p "$work/meson/subprojects"
cp "$work/program.c" "$work/meson"
ln -s "$root" "$work/meson/subprojects/slabyard"
cat >"$work/meson/meson.build" <<'END'
project('program', 'c', default_options: ['c_std=c11', 'buildtype=release'])
slabyard = import('cmake').subproject('slabyard')
foreach library : ['slabyard', 'slabyard_static']
  executable('with-' + library, 'program.c', dependencies: slabyard.dependency(library))
endforeach
END
quietly meson setup "$work/meson/build" "$work/meson"
quietly ninja -C "$work/meson/build"
for library in slabyard slabyard_static; do
    "$work/meson/build/with-$library" || fail "Meson's program with $library fails when run"
done
echo "ok guest-meson"
