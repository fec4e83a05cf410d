#!/usr/bin/env bash
# Uses the files that scripts/amalgamate writes, with gcc and clang, as far as they are installed:
#   - slabyard.c compiles without a warning and defines no other names than sy_*
#   - programs in C and C++11, the tests of slabyard.hpp, and examples compile and run
#   - a report of misuse names the caller as the first function of the stack
#   - without reports, the library is smaller, and a misuse is told in one line
#   - plug-ins with a copy of their own can be loaded
# Usage: tests/install/amalgamation.sh
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "amalgamation: $*" >&2
    exit 1
}

"$root/scripts/amalgamate" "$work/slabyard"
# The programs include single headers of Slabyard; the amalgamation has one.
for program in "$here"/consumer.* "$here/plugin.c" "$here/types.cpp" "$root"/examples/{timers,order_book,graph}.c \
    "$root/tests/misuse/cache_double_free.c" "$root/tests/misuse/misuse.h" "$root"/tests/cpp/*; do
    sed 's|<slabyard/[a-z]*\.\(hp*\)>|"slabyard/slabyard.\1"|' "$program" >"$work/$(basename "$program")"
done
cd "$work"

warnings="-Wall -Wextra -Werror"
use() { # use NAME COMMAND...: builds ./program and runs it
    local name=$1
    shift
    "$@" -o program || fail "$name does not build: $*"
    ./program >log || fail "$name fails when run: $(tail -n 5 log)"
    echo "ok $name"
}

for pair in gcc:g++ clang:clang++; do
    cc=${pair%:*} cxx=${pair#*:}
    command -v $cc >/dev/null && command -v $cxx >/dev/null || continue
    $cc -std=c11 $warnings -fexceptions -O2 -g -c slabyard/slabyard.c -o slabyard.o || fail "slabyard.c does not compile without warnings with $cc"
    shown=$(nm -g --defined-only slabyard.o | awk '$3 !~ /^(sy_|DW\.ref\.)/ { print $3 }')
    [ -z "$shown" ] || fail "slabyard.c defines" $shown
    use $cc-c $cc -std=c11 $warnings -O2 consumer.c slabyard.o -pthread
    use $cc-called $cc -std=c11 $warnings -O2 -DSY_NO_INLINE consumer.c slabyard.o -pthread
    use $cxx-c++11 $cxx -std=c++11 $warnings -O2 consumer.cpp slabyard.o -pthread
    for program in "$root"/tests/cpp/cpp_*.cpp; do
        name=$(basename "$program" .cpp)
        use $cxx-$name $cxx -std=c++17 $warnings -O2 $name.cpp slabyard.o -pthread
    done
    for example in timers order_book graph; do
        use $cc-$example $cc -std=c11 $warnings -O2 $example.c slabyard.o -pthread
    done
    $cc -std=gnu11 -O2 -g cache_double_free.c slabyard.o -pthread -o misuse
    SLABYARD=tools=off "$root/tests/misuse/run.sh" cache_double_free.c "$work/misuse" ||
        fail "a report differs"
    echo "ok $cc-report"

    $cc -std=c11 $warnings -O2 -DSY_NO_REPORTS -c slabyard/slabyard.c -o without.o ||
        fail "slabyard.c does not compile without reports with $cc"
    ! nm --defined-only without.o | grep -w sy_report_begin >/dev/null || fail "reports are left in"
    use $cc-without $cc -std=c11 $warnings -O2 order_book.c without.o -pthread
    cat >options.c <<'END_OF_PROGRAM'
#include "slabyard/slabyard.h"
#include <errno.h>
#include <stdlib.h>
int main(void) {
    static const char *const refused[] = {"leaks=exit", "report=file", "stats", "symbols=no"};
    for (int i = 0; i < 4; i++)
        if (sy_set_options(refused[i]) != -1 || errno != ENOTSUP) return 1 + i;
    if (sy_set_options("leaks=off,stats=no,check") != 0) return 5;
    return sy_platform_has("reports") == 0 ? 0 : 6;
}
END_OF_PROGRAM
    use $cc-options $cc -std=c11 $warnings -O2 options.c without.o -pthread
    $cc -std=gnu11 -O2 cache_double_free.c without.o -pthread -o misuse
    said=$( (./misuse) 2>&1) && fail "without reports, the process goes on"
    said=${said##*$'\n'} # the program says an address first
    [[ $said == 'slabyard: misuse of kind '*' (slabyard/fault.h): 0x'*' in "'*'"' ]] ||
        fail "without reports, a misuse is told as: $said"
    echo "ok $cc-told"

    $cc -std=c11 $warnings -O2 -fPIC -DSY_DLOPEN -shared plugin.c slabyard/slabyard.c -pthread \
        -Wl,--no-undefined -o plugin.so || fail "$cc cannot build the plug-in"
    shown=$(nm -D --defined-only plugin.so | awk '$3 !~ /^plugin_/ { print $3 }')
    [ -z "$shown" ] || fail "the plug-in exports" $shown
    ! readelf -d plugin.so | grep STATIC_TLS >/dev/null || fail "the plug-in needs the static TLS block"
    $cc -std=c11 -O2 "$here/loader.c" -pthread -ldl -o loader
    ./loader ./plugin.so || fail "the plug-in cannot be loaded: $?"
    echo "ok $cc-plugin"

    $cc -O2 -fPIC -DSY_DLOPEN -c slabyard/slabyard.c -o plugin.o
    $cxx -std=c++17 $warnings -O2 -fPIC -fvisibility=hidden -DSY_DLOPEN -shared types.cpp plugin.o -pthread \
        -o types.so || fail "$cxx cannot build the plug-in"
    $cxx -std=c++17 $warnings -O2 -DHOST types.cpp slabyard.o -rdynamic -pthread -ldl -o types
    ./types ./types.so || fail "program and plug-in share the cache of a C++ type: $?"
    echo "ok $cxx-plugin"
done
