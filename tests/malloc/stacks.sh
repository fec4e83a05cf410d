#!/usr/bin/env bash
# Tests the stacks in the reports of the drop-in malloc on samples, which are copied and unwound
# only for a report: they are those that unwinding tables give at once, in programs without frame
# pointers. And until there is a report, no unwinding tables are read. Needs a C++ compiler.
# Usage: tests/malloc/stacks.sh LIBRARY
set -euo pipefail

library=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset SLABYARD

fail() {
    echo "stacks: $*" >&2
    exit 1
}

# The program makes blocks in functions of the kind $1, frees them in others, and reads them after
# the free, until one was guarded. `none`: it makes no mistake, and prints the memory that the
# segment of the library at the offset $2 of its file has.
cat >"$work/program.cpp" <<'END'
#include <alloca.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#define CALLED   __attribute__((noinline))
#define NOT_LAST __asm__ volatile("" : : : "memory")

static char *block;
static volatile char sink;
static const char *kind;

CALLED static void make() { block = static_cast<char *>(std::malloc(40)); NOT_LAST; }
CALLED static void make_zeroed() { block = static_cast<char *>(std::calloc(5, 8)); NOT_LAST; }
CALLED static void make_new() { block = static_cast<char *>(::operator new(40)); NOT_LAST; }
CALLED static void grow() { block = static_cast<char *>(std::realloc(std::malloc(8), 40)); NOT_LAST; }
CALLED static void drop() { std::free(block); NOT_LAST; }

CALLED static void within_array(size_t bytes, void (*body)()) {
    char *array = static_cast<char *>(alloca(bytes));
    std::memset(array, 1, bytes);
    body();
    sink = array[bytes / 2];
}

/* More addresses of objects on the stack than words are copied. */
CALLED static void among_objects(void (*body)()) {
    void *volatile objects[150];
    for (void *volatile &object : objects) object = std::malloc(100);
    body();
    for (void *volatile &object : objects) std::free(object);
}

CALLED static void recurse(int depth, void (*body)()) {
    volatile int here = depth;
    if (depth == 0) body(); else recurse(depth - 1, body);
    sink = static_cast<char>(here);
}

static void (*compared)();

static int compare(const void *, const void *) { compared(); NOT_LAST; return 0; }

CALLED static void sort(void (*body)()) {
    int two[2] = {1, 2};
    compared = body;
    std::qsort(two, 2, sizeof *two, compare);
    NOT_LAST;
}

CALLED static void call(const std::function<void()> &body) { body(); NOT_LAST; }

CALLED static void make_one() {
    if (!std::strcmp(kind, "zeroed")) make_zeroed();
    else if (!std::strcmp(kind, "new")) make_new();
    else if (!std::strcmp(kind, "grown")) grow();
    else if (!std::strcmp(kind, "array")) within_array(700, make);
    else if (!std::strcmp(kind, "large")) within_array(64 << 10, make);
    else if (!std::strcmp(kind, "objects")) among_objects(make);
    else if (!std::strcmp(kind, "deep")) recurse(6, make);
    else if (!std::strcmp(kind, "sorted")) sort(make);
    else if (!std::strcmp(kind, "function")) call(std::function<void()>(make));
    else make();
    NOT_LAST;
}

CALLED static void drop_one() {
    if (!std::strcmp(kind, "array")) within_array(300, drop);
    else if (!std::strcmp(kind, "objects")) among_objects(drop);
    else if (!std::strcmp(kind, "deep")) recurse(3, drop);
    else if (!std::strcmp(kind, "sorted")) sort(drop);
    else drop();
    NOT_LAST;
}

CALLED static void go_on() {
    bool errs = std::strcmp(kind, "none");
    for (int i = 0; i < 100000; i++) {
        make_one();
        drop_one();
        if (errs) sink = block[3];
    }
}

/* Prints the KiB of the library's mapping of this file offset. */
static void print_memory(const char *offset) {
    char line[1000];
    bool found = false;
    std::FILE *maps = std::fopen("/proc/self/smaps", "r");
    unsigned long wanted = std::strtoul(offset, nullptr, 16), start, end, at, rss;
    while (std::fgets(line, sizeof line, maps)) {
        if (std::sscanf(line, "%lx-%lx %*s %lx", &start, &end, &at) == 3)
            found = at == wanted && std::strstr(line, "libslabyard-malloc");
        if (found && std::sscanf(line, "Rss: %lu kB", &rss) == 1) std::printf("%lu\n", rss);
    }
}

int main(int count, char **arguments) {
    kind = arguments[1];
    if (!std::strcmp(kind, "thread")) std::thread(go_on).join(); else go_on();
    if (count > 2) print_memory(arguments[2]);
    NOT_LAST;
}
END
c++ -O2 -g -w -fomit-frame-pointer -pthread -o "$work/program" "$work/program.cpp"

# The lines of the report on the stacks of the allocation and of the free.
stacks() { # stacks OPTIONS KIND
    local status=0
    { # without what the shell says about the program's end
        SLABYARD=$1 LD_PRELOAD=$library "$work/program" "$2" >"$work/out" 2>"$work/err" || status=$?
    } 2>/dev/null
    grep -q "read after free" "$work/err" || fail "$1, $2: status $status, and no report: $(cat "$work/err")"
    sed -n '/^  allocated/,/^  next/p' "$work/err" | grep -E '^ +#[0-9]+ '
}

for kind in plain zeroed new grown array objects deep sorted function thread; do
    stacks sample=1/50,stack-depth=40,unwind=tables "$kind" >"$work/tables"
    stacks sample=1/50,stack-depth=40 "$kind" >"$work/copies"
    cmp -s "$work/tables" "$work/copies" ||
        fail "$kind: other stacks than by tables: $(diff "$work/tables" "$work/copies")"
    for name in make_one drop_one go_on; do
        grep -qF " $name() at " "$work/copies" || fail "$kind: without $name: $(cat "$work/copies")"
    done
done

# A frame that is larger than what is copied of a stack: the stack ends there.
stacks sample=1/50 large >"$work/copies"
grep -qF " make() at " "$work/copies" || fail "large: without make: $(cat "$work/copies")"

# Code that is unloaded before the report: its addresses have no tables any more.
cat >"$work/plug.c" <<'END'
#include <stdlib.h>
#define CALLED __attribute__((noinline))
CALLED static char *inner(void) {
    char *made = malloc(40);
    __asm__ volatile("" : : : "memory");
    return made;
}
CALLED char *make(void) {
    char *made = inner();
    __asm__ volatile("" : : : "memory");
    return made;
}
END
cat >"$work/host.c" <<'END'
#include <dlfcn.h>
#include <stdlib.h>
static char *kept[2000];
static volatile char sink;
int main(int count, char **arguments) {
    void *plug = dlopen(arguments[count - 1], RTLD_NOW);
    char *(*make)(void) = (char *(*)(void))dlsym(plug, "make");
    for (int i = 0; i < 2000; i++) kept[i] = make();
    dlclose(plug);
    for (int i = 0; i < 2000; i++) free(kept[i]);
    for (int i = 0; i < 2000; i++) sink = kept[i][3];
    return 0;
}
END
cc -O2 -g -w -fPIC -shared -o "$work/plug.so" "$work/plug.c"
cc -O2 -g -w -fomit-frame-pointer -o "$work/host" "$work/host.c"
status=0
{
    SLABYARD=sample=1/50 LD_PRELOAD=$library "$work/host" "$work/plug.so" 2>"$work/err" || status=$?
} 2>/dev/null
grep -q "read after free" "$work/err" || fail "unloaded: status $status, no report: $(cat "$work/err")"
grep -qE '^ +#0 ' "$work/err" || fail "unloaded: no frame: $(cat "$work/err")"
grep -qF " main at " "$work/err" || fail "unloaded: no frame of the free: $(cat "$work/err")"

# The segment that begins with .eh_frame_hdr is a segment of its own.
offset=$(readelf -lW "$library" | awk '$1 == "GNU_EH_FRAME" { print $2 }')
for options in sample=1/50 sample=1/50,unwind=tables; do
    SLABYARD=$options LD_PRELOAD=$library "$work/program" none "$offset" >"$work/out"
    read -r kib <"$work/out" || fail "$options: the library has no mapping at $offset"
    case $options in
    *tables) [ "$kib" -gt 0 ] || fail "tables were read, and have no memory" ;;
    *) [ "$kib" -eq 0 ] || fail "$kib KiB of unwinding tables have memory" ;;
    esac
done
