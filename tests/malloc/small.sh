#!/usr/bin/env bash
# Tests how much anonymous memory the drop-in malloc needs in a program that allocates little, beyond
# that of the C library's malloc: at the program's start, and with sampled objects. The bounds are
# for pages of 4 KiB. Needs a C compiler.
# Usage: tests/malloc/small.sh LIBRARY
set -euo pipefail

[ "$(getconf PAGESIZE)" = 4096 ] || { echo "small: only for pages of 4 KiB" && exit 77; }
library=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset SLABYARD

fail() {
    echo "small: $*" >&2
    exit 1
}

# The program allocates and frees $1 objects, each from one of 1,024 stacks. It prints its anonymous
# memory in KiB.
cat >"$work/program.c" <<'END_OF_PROGRAM'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void even(unsigned way, unsigned depth);

static void odd(unsigned way, unsigned depth) {
    if (depth == 0)
        free(memset(malloc(100), 1, 100));
    else
        (way & 1 ? odd : even)(way >> 1, depth - 1);
    __asm__ volatile("");
}

static void even(unsigned way, unsigned depth) {
    if (depth == 0)
        free(memset(malloc(50), 1, 50));
    else
        (way & 1 ? odd : even)(way >> 1, depth - 1);
    __asm__ volatile("");
}

static char text[1 << 16];

int main(int argc, char **argv) {
    long kib = 0;
    int count = atoi(argv[1]), file = open("/proc/self/smaps", O_RDONLY);
    for (int i = 0; i < count; i++) odd((unsigned)i, 10);
    size_t length = 0;
    for (ssize_t got; (got = read(file, text + length, sizeof text - 1 - length)) > 0; length += got) {}
    if (length == sizeof text - 1) return 1;
    for (char *at = text; (at = strstr(at, "\nAnonymous:")); at++) kib += atol(at + 11);
    printf("%ld\n", kib);
    return argc > 2;
}
END_OF_PROGRAM
cc -O1 -w -fno-builtin -fno-omit-frame-pointer -o "$work/program" "$work/program.c"

measure() { # measure OPTIONS OBJECTS: sets `kib` to what the library adds
    kib=$(SLABYARD=$1 LD_PRELOAD=$library "$work/program" "$2")
    kib=$((kib - $("$work/program" "$2")))
    echo "$2 objects, $1: $kib KiB more"
}

measure sample=off 1
[ "$kib" -le 128 ] || fail "a program that allocates one object needs $kib KiB"
measure sample=1/1000 20000
[ "$kib" -le 200 ] || fail "with samples, $kib KiB"
