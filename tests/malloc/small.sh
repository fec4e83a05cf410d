#!/usr/bin/env bash
# Tests how much memory the drop-in malloc needs in a program that allocates little: anonymous
# memory, beyond that of the C library's malloc, at the program's start, with objects of many sizes
# and with sampled objects; the pages of the library's file (cmake/first.ld); and that it brings no
# huge pages, also where the system's setting is `always`. The bounds are for pages of 4 KiB. Needs a
# C compiler.
# Usage: tests/malloc/small.sh LIBRARY FILE_KIB MORE_KIB (what a bound for anonymous memory is raised by)
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

# The program allocates and frees $1 objects, each from one of 1,024 stacks, and an object of each of
# $2 sizes. It prints its anonymous memory, its memory of the library's file, and its memory in huge
# pages, in KiB.
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
    long anonymous = 0, ours = 0, huge = 0;
    int count = atoi(argv[1]), sizes = atoi(argv[2]), file = open("/proc/self/smaps", O_RDONLY);
    for (int i = 0; i < count; i++) odd((unsigned)i, 10);
    for (int i = 0; i < sizes; i++) free(memset(malloc(100 + 300 * i), 1, 16));
    size_t length = 0;
    for (ssize_t got; (got = read(file, text + length, sizeof text - 1 - length)) > 0; length += got) {}
    if (length == sizeof text - 1) return 1;
    for (char *at = text; (at = strstr(at, "\nAnonymous:")); at++) anonymous += atol(at + 11);
    for (char *at = text; (at = strstr(at, "\nAnonHugePages:")); at++) huge += atol(at + 15);
    for (char *at = text; (at = strstr(at, "libslabyard-malloc")); at++)
        ours += atol(strstr(at, "\nRss:") + 5);
    printf("%ld %ld %ld\n", anonymous, ours, huge);
    return argc > 3;
}
END_OF_PROGRAM
cc -O1 -w -fno-builtin -fno-omit-frame-pointer -o "$work/program" "$work/program.c"

# measure OPTIONS OBJECTS SIZES: sets `kib` to what the library adds, and `file_kib`. The median of
# 25 runs: addresses are random, and decide whether two things share a page; so are samples.
measure() {
    local runs="" more
    for _ in {1..25}; do
        read -r more file_kib huge_kib < <(SLABYARD=$1 LD_PRELOAD=$library "$work/program" "$2" "$3")
        read -r before _ huge_before < <("$work/program" "$2" "$3")
        [ "$huge_kib" -le "$huge_before" ] || fail "$huge_kib KiB are in huge pages"
        runs+="$((more - before))"$'\n'
    done
    kib=$(sort -n <<<"${runs%$'\n'}" | sed -n 13p)
    echo "$2 objects, $3 sizes, $1: $kib KiB more, and $file_kib KiB of the library's file"
}

measure sample=off 1 0
[ "$kib" -le $((96 + $3)) ] || fail "a program that allocates one object needs $kib KiB"
[ "$file_kib" -gt 0 ] && [ "$file_kib" -le "$2" ] || fail "it has $file_kib KiB of the file"
measure sample=off 1 16
[ "$kib" -le $((200 + $3)) ] || fail "with 16 sizes, $kib KiB" # the last two are of two classes
measure sample=1/1000 20000 0
[ "$kib" -le $((140 + $3)) ] || fail "with samples, $kib KiB"
