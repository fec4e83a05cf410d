#!/usr/bin/env bash
# Tests what the options `stats-on`, `stats-file` and `profile-file` have written: accounts at a
# signal, by the background thread, also in the child of a fork; profiles at exit. And what is said
# if it cannot be: the program has the signal for itself, there is no such thread, the file cannot be
# written. The program goes on in each case. Needs a C compiler and python3.
# Usage: tests/malloc/asked.sh LIBRARY
set -euo pipefail

library=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset SLABYARD

fail() {
    echo "asked: $*" >&2
    cat "$work/said" >&2 || true
    exit 1
}

# The program holds 100 blocks of 5,000 bytes, allocates and frees, and ends with status 3 when its input ends. "handle":
# it has a handler of its own. "fork": a child of it does all this.
cat >"$work/program.c" <<'END'
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept[100], *volatile passing[1000];
static void own(int number) { (void)number; }

static void work(void) {
    for (int i = 0; i < 1000; i++) passing[i] = malloc(100 + i);
    for (int i = 0; i < 1000; i++) free(passing[i]);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "handle") == 0) signal(SIGUSR2, own);
    if (strcmp(how, "fork") == 0) {
        int status;
        pid_t child = fork();
        if (child > 0) return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 1;
    }
    for (int i = 0; i < 100; i++) kept[i] = memset(malloc(5000), 1, 5000);
    work();
    printf("%d\n", (int)getpid());
    fflush(stdout);
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (poll(&input, 1, 20) <= 0) work(); /* a signal may end a wait */
    return 3;
}
END
cc -O1 -w -o "$work/program" "$work/program.c"

# run OPTIONS WAIT [HOW]: the program gets the signal, and ends once the command WAIT succeeds.
run() {
    local pid status=0
    rm -f "$work/input" "$work/pid"
    mkfifo "$work/input"
    LD_PRELOAD=$library SLABYARD=$1 "$work/program" "${3:-}" <"$work/input" >"$work/pid" 2>"$work/said" &
    local program=$!
    exec 9>"$work/input"
    until grep . "$work/pid" >/dev/null 2>&1; do sleep 0.02; done
    pid=$(cat "$work/pid")
    for _ in {1..100}; do
        case $1 in *stats-on*) kill -USR2 "$pid" ;; esac
        sleep 0.1
        ! (eval "$2") || break
    done
    exec 9>&-
    wait "$program" || status=$?
    [ "$status" = 3 ] || fail "with $1 the program ends with $status"
    (eval "$2") || fail "with $1 it did not happen: $2"
}

says() { grep -F -- "$1" "$work/said" >/dev/null; }

run stats-on=SIGUSR2 'says "slabyard: memory of process $(cat "$work/pid")"'
says "heap-5120" || fail "the table lacks a row"
run stats-on=SIGUSR2 'says "slabyard: memory of process $(cat "$work/pid")"' fork
[ "$(grep -c "memory of process" "$work/said")" = "$(grep -c "memory of process $(cat "$work/pid")" "$work/said")" ] ||
    fail "the parent has written"

run "stats-on=SIGUSR2,stats-file=$work/table" '[ -s "$work/table" ]'
[ ! -s "$work/said" ] || fail "the table is on stderr, too"
run "stats-on=SIGUSR2,stats-file=$work/accounts.json" '[ -s "$work/accounts.json" ]'
python3 - "$work/accounts.json" "$(cat "$work/pid")" <<'END' || fail "the JSON is wrong"
import json, sys
for line in open(sys.argv[1]):
    account = json.loads(line)
    assert account["pid"] == int(sys.argv[2])
    assert 100 * 5000 <= account["live_bytes"] < account["resident_bytes"] + account["address_space_bytes"]
    row = next(one for one in account["caches"] if one["name"] == "heap-5120")
    assert row["kind"] == "malloc" and row["object_bytes"] == 5120 and row["live_objects"] == 100
END
[ ! -s "$work/said" ] || fail "something is said beside the JSON"
run "stats,stats-file=$work/at_exit" true
[ ! -s "$work/said" ] || fail "something is said beside the file"
grep "heap-5120" "$work/at_exit" >/dev/null || fail "the table at exit is not in the file"

run stats-on=SIGUSR2,stats-file=/nowhere/table 'says "slabyard: stats-file: cannot write to /nowhere/table"'
run stats-on=SIGUSR2 'says "stats-on=SIGUSR2 writes nothing: the program handles this signal itself"' handle
run stats-on=SIGUSR2,maintenance=no 'says "writes nothing: the background thread, which writes accounts, does not run"'
(trap '' USR2 && run stats-on=SIGUSR2 'says "writes nothing: this signal has a handler already, or is ignored"')

run "profile=4K,profile-file=$work/profile.%p" true
[ -s "$work/profile.$(cat "$work/pid")" ] || fail "there is no profile"
[ ! -s "$work/said" ] || fail "something is said beside the profile"
grep alloc_space "$work/profile.$(cat "$work/pid")" >/dev/null || fail "the profile is none"
run "profile-file=$work/implied" true
grep inuse_space "$work/implied" >/dev/null || fail "the file does not turn the profile on"
run profile-file=/nowhere/profile true
says "slabyard: profile-file: cannot write to /nowhere/profile" || fail "an unwritable file is not told"
echo "asked: ok"
