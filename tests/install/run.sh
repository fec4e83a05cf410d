#!/usr/bin/env bash
# Installs a build into an empty prefix, moves the prefix, and uses the installation as a user
# would. It checks the exported symbols, the documents and the man pages, and builds and runs
# programs in C and C++: by pkg-config (shared and static), by CMake, with dlopen, as plug-ins, and
# by the commands in docs/install.md. Then it uninstalls Slabyard and checks that only foreign files
# are left.
# Usage: tests/install/run.sh BUILD_DIR
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "install: $*" >&2
    exit 1
}

# A folder and a file of another package, which uninstalling must not remove (see the end).
mkdir -p "$work/first/share/man/man7" "$work/first/lib/pkgconfig"
touch "$work/first/lib/pkgconfig/other.pc"
for time in first second; do
    cmake --install "$build" --prefix "$work/first" >"$work/log" || fail "$(cat "$work/log")"
    [ "$(wc -l <"$work/log")" -le 12 ] || fail "installing prints more than 12 lines: $(cat "$work/log")"
done
grep -q -- "-Wl,-rpath,$work/first/lib" "$work/log" || fail "installing does not say how programs find the shared library: $(cat "$work/log")"
mv "$work/first" "$work/prefix"
prefix=$work/prefix
libdir=$(dirname "$(find "$prefix" -name libslabyard.a)")
export PKG_CONFIG_PATH="$libdir/pkgconfig" LD_LIBRARY_PATH="$libdir"

# The shared library exports only public names, and its soname is that of the installed link.
strangers=$(nm -D --defined-only "$libdir/libslabyard.so" |
    awk '$2 != "A" && $3 !~ /^sy_/ { print $3 }')
[ -z "$strangers" ] || fail "libslabyard.so exports" $strangers
# (The headers declare slow paths as SY_ABI_NAME(name). This macro appends _abi_<number>.)
for name in $(nm -D --defined-only "$libdir/libslabyard.so" |
    awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }'); do
    grep -rqwE "$name|SY_ABI_NAME\(${name%_abi_*}\)" "$prefix/include" ||
        fail "libslabyard.so exports $name, which no header declares"
done
soname=$(objdump -p "$libdir/libslabyard.so" | awk '$1 == "SONAME" { print $2 }')
[ -e "$libdir/$soname" ] || fail "the soname $soname is not installed"

# Licence, guides and examples are installed, and the targets of the links in the guides exist.
documents=$prefix/share/doc/slabyard
for name in LICENSE README.md docs/install.md docs/cpp.md examples/order_book.c examples/entities.cpp; do
    [ -s "$documents/$name" ] || fail "$name is not in share/doc/slabyard"
done
for document in "$documents"/*.md "$documents"/docs/*.md; do
    for link in $(grep -o '](\([^)#: ]*\)[)#]' "$document" | sed 's/](//; s/[)#]$//'); do
        [ -e "$(dirname "$document")/$link" ] || fail "${document#"$prefix/"} links to $link, which is not installed"
    done
done

# Each function has a man page, except those that only inline functions call. Without Sphinx, there
# are no man pages.
if [ -x "${SITE_TOOLS:-$root/build/site-venv}/bin/sphinx-build" ]; then
    for name in $(nm -D --defined-only "$libdir/libslabyard.so" |
        awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' |
        grep -vE '_abi_|_slow$|_(stats|account|end)_sized$|^sy_(each_|vmem_walk)'); do # or former names
        [ -e "$prefix/share/man/man3/$name.3" ] || fail "$name has no man page"
    done
    "$root/tests/docs/manual.sh" "$prefix/share/man" || fail "the manual is wrong"
else
    grep -q "no man pages, because Sphinx is not installed" "$work/log" || fail "make install does not report that there are no man pages"
fi

# The static library defines only global names that begin with sy_, too.
strangers=$(nm --defined-only --extern-only "$libdir/libslabyard.a" |
    awk 'NF == 3 && $3 !~ /^(sy_|DW\.ref\.__gcc_personality)/ { print $3 }')
[ -z "$strangers" ] || fail "libslabyard.a defines" $strangers

use() { # use NAME COMPILER FLAGS...: builds a program and runs it
    local name=$1
    shift
    "$@" -o "$work/$name" || fail "$name does not build: $*"
    "$work/$name" || fail "$name fails when run"
    echo "ok $name"
}
pc() { pkg-config "$@" slabyard; }

cc=${CC:-cc} cxx=${CXX:-c++}
use c-shared "$cc" -std=c11 -O2 $(pc --cflags) "$here/consumer.c" $(pc --libs)
use c-static "$cc" -std=c11 -O2 $(pc --cflags) "$here/consumer.c" "$libdir/libslabyard.a" -pthread
use c-called "$cc" -std=c11 -O2 -DSY_NO_INLINE $(pc --cflags) "$here/consumer.c" $(pc --libs)
use cpp-shared "$cxx" -std=c++17 -O2 $(pc --cflags) "$here/consumer.cpp" $(pc --libs)
use cpp-static "$cxx" -std=c++17 -O2 $(pc --cflags) "$here/consumer.cpp" "$libdir/libslabyard.a" \
    -pthread

# A program with two files for each of the earlier systems' headers, one in C and one in C++.
objects=()
for source in "$here"/../compat/together/*.c*; do
    system=$(basename "${source%.*}" | tr _ -)
    compiler=("$cc" -std=c11) && [ "${source##*.}" = c ] || compiler=("$cxx" -std=c++17)
    objects+=("$work/$(basename "$source").o")
    "${compiler[@]}" -O2 -Wall -Wextra -Wpedantic -Werror -I"$here/.." \
        -I"$prefix/include/slabyard/compat/$system" $(pc --cflags) -c "$source" -o "${objects[-1]}" ||
        fail "compat/$system does not compile in ${source##*.}"
done
use compat "$cxx" "${objects[@]}" $(pc --libs) -pthread

cat >"$work/interface.cpp" <<'END'
#include <slabyard/slabyard.hpp>
int main() {
    slabyard::cache<int> numbers("number");
    return *numbers.make_unique(42) == 42 ? 0 : 1;
}
END
use cpp-interface "$cxx" -std=c++17 -O2 $(pc --cflags) "$work/interface.cpp" $(pc --libs)

# With an older C++, slabyard.hpp gives a single error, which says what it needs.
echo '#include <slabyard/slabyard.hpp>' >"$work/older.cpp"
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    ! said=$($compiler -std=c++14 -fsyntax-only $(pc --cflags) "$work/older.cpp" 2>&1) || fail "slabyard.hpp compiles as C++14"
    [[ $(grep -c ' error: ' <<<"$said") == 1 && $said == *"slabyard.hpp needs C++17: "* ]] ||
        fail "the error of $compiler with C++14 is wrong: $said"
done
echo "ok cpp-older"

# The drop-in malloc: preloaded, linked, and as an object.
cat >"$work/blocks.c" <<'END'
#include <malloc.h>
#include <stdlib.h>
int main(void) {
    void *volatile block = malloc(100);
    return malloc_usable_size(block) == 112 ? 0 : 1;
}
END
"$cc" "$work/blocks.c" -o "$work/blocks"
! "$work/blocks" || fail "a program uses Slabyard's malloc without preloading or linking it"
LD_PRELOAD="$libdir/libslabyard-malloc.so" "$work/blocks" || fail "libslabyard-malloc.so cannot be preloaded"
use malloc-linked "$cc" "$work/blocks.c" $(pkg-config --libs slabyard-malloc)
use malloc-object "$cc" "$work/blocks.c" "$libdir/slabyard-malloc.o" -pthread
use malloc-static-pc "$cc" -static "$work/blocks.c" $(pkg-config --static --libs slabyard-malloc-static)
use malloc-static "$cc" -static "$work/blocks.c" "$libdir/slabyard-malloc.o" -pthread

# The library loaded with dlopen; also by a program that exports a copy of its own.
"$cc" -std=c11 -O2 "$here/loader.c" -pthread -ldl -o "$work/loader"
"$work/loader" "$libdir/libslabyard.so" || fail "libslabyard.so does not work with dlopen: loader returned $?"
"$cc" -std=c11 -O2 -DWITH_OWN $(pc --cflags) "$here/loader.c" "$libdir/libslabyard.a" \
    -rdynamic -pthread -ldl -o "$work/loader-with-own"
"$work/loader-with-own" "$libdir/libslabyard.so" ||
    fail "libslabyard.so does not work in a program that exports the same names: loader returned $?"
echo "ok dlopen"

# dlopen after the surplus of static thread-local storage is used up: libslabyard-dlopen.so and a
# plug-in compiled with SY_DLOPEN can be loaded; libslabyard.so and a plug-in compiled without
# SY_DLOPEN cannot.
mkdir "$work/spent"
"$cc" -std=c11 -O2 -fPIC -shared "$here/spender.c" -o "$work/spent/0.so"
for i in {1..99}; do cp "$work/spent/0.so" "$work/spent/$i.so"; done
late() { "$work/loader" "$1" "$2" "$work/spent" || fail "$1 does not work without static thread-local storage: loader returned $?"; }
late "$libdir/libslabyard-dlopen.so" "$libdir/libslabyard.so"
flags=$(pkg-config --cflags slabyard-dlopen)
for name in plugin-late plugin-early; do
    "$cc" -std=c11 -O2 -fPIC -shared -Wl,--no-undefined $flags "$here/plugin.c" \
        $(pkg-config --libs slabyard-dlopen) -o "$work/$name.so"
    flags=${flags/-DSY_DLOPEN/}
done
late "$work/plugin-late.so" "$work/plugin-early.so"
"$work/loader-with-own" "$libdir/libslabyard-dlopen.so" ||
    fail "libslabyard-dlopen.so does not work in a program that exports the same names: loader returned $?"
# A crash of the program within its own malloc still ends it with SIGSEGV (crash.c).
"$cc" -std=c11 -O2 -fno-builtin "$here/crash.c" -pthread -ldl -o "$work/crash"
for name in libslabyard libslabyard-dlopen; do
    status=0
    SLABYARD=guard=1/10 "$work/crash" "$libdir/$name.so" 2>/dev/null || status=$?
    [ "$status" = 139 ] || fail "with $name.so, a crash within malloc ends with status $status, not 139"
done
use c-dlopen "$cc" -std=c11 -O2 $(pkg-config --cflags slabyard-dlopen) "$here/consumer.c" \
    $(pkg-config --libs slabyard-dlopen)
echo "ok dlopen-late"

# A plug-in with a copy of its own, in a program that uses the shared library.
"$cc" -std=c11 -O2 -fPIC -shared -fvisibility=hidden $(pc --cflags) "$here/plugin.c" \
    "$libdir/libslabyard.a" -Wl,--exclude-libs,ALL -pthread -o "$work/plugin.so"
"$cc" -std=c11 -O2 $(pc --cflags) "$here/host.c" $(pc --libs) -pthread -ldl -o "$work/host"
"$work/host" "$work/plugin.so" || fail "two copies in one process do not work: host returned $?"
hidden='__attribute__((visibility("hidden")))'
"$cxx" -std=c++17 -O2 -fPIC -shared -fvisibility=hidden -DSY_API="$hidden" $(pc --cflags) "$here/types.cpp" \
    "$libdir/libslabyard.a" -Wl,--exclude-libs,ALL -pthread -o "$work/types.so"
"$cxx" -std=c++17 -O2 -DHOST $(pc --cflags) "$here/types.cpp" $(pc --libs) -rdynamic -pthread -ldl -o "$work/types"
"$work/types" "$work/types.so" || fail "two copies share the cache of a C++ type: $?"
echo "ok two-copies"

# Each installed example compiles as its comment says. It then starts without LD_LIBRARY_PATH.
for example in "$documents"/examples/*.c "$documents"/examples/*.cpp; do
    command=$(sed -n 's/^ \* *\(c[c+]* .*\) && \.\/a\.out.*/\1/p' "$example")
    [ -n "$command" ] || fail "$(basename "$example") does not say how to compile it"
    (cd "$documents/examples" && eval "$command -o $work/example") >"$work/log" 2>&1 ||
        fail "$command: $(cat "$work/log")"
    ! env -u LD_LIBRARY_PATH ldd "$work/example" | grep 'not found' || fail "$command: the program does not start"
done
echo "ok examples"

# Runs each `sh run` block of docs/install.md in a folder of its own. The folder has the program,
# the files that the section shows before the block, and links to Slabyard's sources where a project
# has them.
awk -v OUT="$work/page" '
    function begin() { system("mkdir -p " section "/files") }
    BEGIN { section = OUT "/0"; begin() }
    /^## / { section = OUT "/" ++sections; blocks = 0; begin(); next }
    /^```sh run$/ { file = section "/" ++blocks ".sh"; next }
    /^```[a-z]+ [A-Za-z.]+$/ { file = section "/files/" $2; next }
    /^```/ { if (file) close(file); file = ""; next }
    file { print > file }' "$root/docs/install.md"
blocks=0
for block in "$work"/page/*/*.sh; do
    folder=${block%.sh}
    mkdir -p "$folder/subprojects"
    cp "$(dirname "$block")"/files/* "$folder" 2>/dev/null || true
    cp "$here/consumer.c" "$folder/program.c"
    ln -s "$root" "$folder/slabyard"
    ln -s "$root" "$folder/subprojects/slabyard"
    ! grep -q '^meson ' "$block" || command -v meson >/dev/null || continue
    (cd "$folder" && env -u LD_LIBRARY_PATH PREFIX="$prefix" bash -euo pipefail "$block") \
        >"$work/log" 2>&1 || fail "docs/install.md: $(cat "$block" "$work/log")"
    blocks=$((blocks + 1))
done
[ $blocks -ge 6 ] || fail "docs/install.md has $blocks blocks of commands"
echo "ok docs/install.md, $blocks blocks"

cmake -S "$here" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
    cmake --build "$work/cmake" >>"$work/log" 2>&1 || fail "$(cat "$work/log")"
for program in with-shared with-static with-dlopen; do
    "$work/cmake/$program" || fail "CMake's $program fails when run"
    echo "ok cmake-$program"
done

# Uninstalling removes all installed files and no others; with DESTDIR, too.
"$root/scripts/uninstall" "$prefix" >"$work/log" || fail "$(cat "$work/log")"
left=$(cd "$prefix" && find . | sort | paste -sd' ')
[ "$left" = ". ./lib ./lib/pkgconfig ./lib/pkgconfig/other.pc ./share ./share/man ./share/man/man7" ] ||
    fail "uninstalling leaves $left"
DESTDIR=$work/packed cmake --install "$build" --prefix /opt/slabyard >"$work/log" || fail "$(cat "$work/log")"
[ -e "$work/packed/opt/slabyard/include/slabyard/slabyard.h" ] || fail "cmake --install ignores DESTDIR"
DESTDIR=$work/packed "$root/scripts/uninstall" /opt/slabyard >"$work/log" || fail "$(cat "$work/log")"
left=$(find "$work/packed" -mindepth 3)
[ -z "$left" ] || fail "uninstalling leaves $left"
echo "ok uninstall"
