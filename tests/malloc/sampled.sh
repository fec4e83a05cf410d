#!/usr/bin/env bash
# Tests the option `sample` of the drop-in malloc, which guards one allocation in N: it finds
# mistakes in programs that were not recompiled, guards the right share of the allocations of each
# function, and guards nothing if it is off. Needs a C compiler.
# Usage: tests/malloc/sampled.sh LIBRARY
set -euo pipefail

library=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset SLABYARD

fail() {
    echo "sampled: $*" >&2
    exit 1
}

# The program: $2 threads allocate $3 objects each, by all functions in turn. Then it makes the
# mistake $1 300 times. It prints how many of the objects of each function were guarded.
cat >"$work/program.c" <<'END'
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile char sink;

static void make_mistake(const char *kind) {
    volatile size_t size = 48;
    char *volatile block = malloc(size);
    if (!strcmp(kind, "read-after-free")) {
        free(block);
        sink = block[5];
    } else if (!strcmp(kind, "write-behind")) {
        block[size] = 1;
        free(block);
    } else if (!strcmp(kind, "write-before")) {
        block[-1] = 1;
        free(block);
    } else if (!strcmp(kind, "double-free")) {
        free(block);
        char *volatile other = malloc(size); /* reuses the block, unless it was guarded */
        free(block);
    } else {
        memset(block, 1, size);
        free(block);
    }
}

enum { WAYS = 6 };
static long each;

static void *allocate(int way, size_t size) {
    void *block = NULL;
    switch (way) {
    case 0: return malloc(size);
    case 1: return calloc(1, size);
    case 2: return realloc(NULL, size);
    case 3: return aligned_alloc(64, size);
    case 4: return realloc(malloc(3 * size), size);
    default: return posix_memalign(&block, 32, size) ? NULL : block;
    }
}

static _Atomic long guarded[WAYS];

/* The kernel reads 8 bytes at the address. If it can, it refuses the operation -1 with EINVAL. */
static int is_readable(uintptr_t address) {
    return syscall(SYS_rt_sigprocmask, -1, address, NULL, 8) != 0 && errno != EFAULT;
}

/* The pages beside a guarded object are inaccessible. */
static int is_guarded(const void *block) {
    uintptr_t page = (uintptr_t)block & ~(uintptr_t)4095;
    return !is_readable(page - 8) && !is_readable(page + 4096);
}

static void *work(void *unused) {
    for (long i = 0; i < each; i++) {
        int way = (int)(i % WAYS);
        char *block = allocate(way, 24 + (size_t)(i % 100));
        guarded[way] += is_guarded(block);
        free(block);
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[16];
    int count = atoi(argv[2]);
    each = atol(argv[3]);
    for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 300; i++) make_mistake(argv[1]);
    for (int way = 0; each && way < WAYS; way++) printf("%ld ", (long)guarded[way]);
    printf("ended\n");
    return argc > 4;
}
END
cc -O1 -g -w -pthread -o "$work/program" "$work/program.c"

run() { # run OPTIONS ARGUMENTS...: runs the program and prints its exit status
    local options=$1 status=0
    shift
    SLABYARD=$options LD_PRELOAD=$library "$work/program" "$@" >"$work/out" 2>"$work/err" || status=$?
    echo $status
}

# Objects that live for ever do not use up the places for others: in a program that keeps 100,000
# blocks a use after free is found, and the statistics show how many objects are guarded.
cat >"$work/keeper.c" <<'END'
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char *volatile kept;
    for (int i = 0; i < 100000; i++) kept = malloc(40);
    malloc_stats();
    for (int i = 0; i < 10000; i++) {
        char *volatile block = malloc(40);
        free(block);
        block[8] = 1;
    }
    puts("ended");
}
END
cc -O1 -g -w -o "$work/keeper" "$work/keeper.c"
for slots in 1024 16384; do
    for kind in sample guard; do
        SLABYARD=$kind=1/50,guard-slots=$slots LD_PRELOAD=$library "$work/keeper" >"$work/out" 2>"$work/err" &&
            fail "keeper, $kind, $slots slots: $(cat "$work/out")"
        grep "slabyard: write after free (guard page)" "$work/err" >/dev/null ||
            fail "keeper, $kind, $slots slots: $(cat "$work/err")"
        left_out=$(sed -n 's/^guarded objects: .* not guarded for want of slots: //p' "$work/err")
        if [ $slots = 1024 ]; then
            [ "$left_out" -gt 800 ] || fail "keeper, $kind: $left_out of some 2,000 left out, not 1,200"
        else
            [ "$left_out" = 0 ] || fail "keeper, $kind: $left_out left out"
        fi
    done
done

# Each kind of mistake is reported, with lines of the source in the stack.
while read -r kind report; do
    [ "$(run sample=1/5 "$kind" 0 0)" -gt 128 ] || fail "$kind: the program was not ended by a signal"
    head -n 1 "$work/err" | grep -E "slabyard: $report: .* in cache \"(malloc|heap-48)\"" >/dev/null ||
        fail "$kind: the report is $(head -n 1 "$work/err")"
    grep "make_mistake at .*program.c:" "$work/err" >/dev/null || fail "$kind: no line: $(cat "$work/err")"
done <<'END'
read-after-free read after free \(guard page\)
write-behind write behind an object \(guard page\)
double-free double free
END
# Objects lie alternately at the end and at the start of their pages, so a write before one is
# found, too.
[ "$(run sample=1/5 write-before 0 0)" -gt 128 ] || fail "write-before: the program was not ended by a signal"

# If the option is off, no mistake is noticed. A program without a mistake runs to its end.
[ "$(run sample=off read-after-free 0 0)" = 0 ] || fail "off: $(cat "$work/err")"
[ "$(run sample=all none 0 0)" = 0 ] || fail "no mistake: $(cat "$work/err")"

# With options that decide where objects lie, or that count allocations, no object is guarded.
for options in dump=no lock tools=malloc fail=1000000000; do
    [ "$(run "sample=all,$options" none 2 3000)" = 0 ] || fail "$options: $(cat "$work/err")"
    [ "$(cat "$work/out")" = "0 0 0 0 0 0 ended" ] || fail "$options: guarded objects: $(cat "$work/out")"
done
[ "$(ulimit -v 8000000 && run sample=all none 2 3000)" = 0 ] || fail "ulimit: $(cat "$work/err")"
[ "$(cat "$work/out")" = "0 0 0 0 0 0 ended" ] || fail "ulimit: guarded objects: $(cat "$work/out")"
# Options that check each object also work with guarded ones.
for options in check,redzone,poison,quarantine zero edges,random limit=100M guard=all; do
    [ "$(run "sample=all,$options" none 2 3000)" = 0 ] || fail "$options: $(cat "$work/err")"
done

# One in 100 objects of each function is guarded, within five standard deviations.
[ "$(run sample=1/100 none 4 120000)" = 0 ] || fail "rate: $(cat "$work/err")"
read -ra shares <"$work/out"
for share in "${shares[@]:0:6}"; do
    [ "$share" -gt 660 ] && [ "$share" -lt 940 ] || fail "rate: ${shares[*]} of 80,000 objects of each function are guarded, not about 800"
done
[ "${shares[6]}" = ended ] || fail "rate: $(cat "$work/out")"
# Threads that allocate few objects do not have a larger share of guarded ones. (Rarer samples lie
# 5 ms apart, which would hide it.)
[ "$(run sample=1/9999 none 16 6)" = 0 ] || fail "short threads: $(cat "$work/err")"
read -ra few <"$work/out"
[ $((few[0] + few[1] + few[2] + few[3] + few[4] + few[5])) -lt 3 ] ||
    fail "short threads: ${few[*]} of 16 objects of each function are guarded with sample=1/9999"
echo "sampled: ok; guarded objects of 80,000 of each function: ${shares[*]:0:6}"
