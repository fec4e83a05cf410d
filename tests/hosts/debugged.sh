#!/usr/bin/env bash
# A program with the drop-in malloc under debuggers: gdb attaches, calls malloc and free in it, and
# detaches; gdb runs it from the start; strace and Valgrind run it. It ends as without them.
# Usage: tests/hosts/debugged.sh PROGRAM LIBRARY
set -euo pipefail
program=$1 library=$2
if ! command -v gdb >/dev/null; then
    echo "debugged.sh: gdb is missing"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "debugged.sh: $1"
    cat ./*.log
    exit 1
}

# The program lives as long as this script holds the pipe open.
mkfifo input
LD_PRELOAD=$library "$program" <input >output &
pid=$!
exec 3>input
for _ in $(seq 200); do
    if grep -q ready output || ! kill -0 $pid; then break; fi
    sleep 0.05
done
grep -q ready output || fail "the program did not start"

gdb=(timeout 60 gdb -batch -nx -ex "set debuginfod enabled off")
call='print ((void *(*)(unsigned long))malloc)(100)'
large='print ((void *(*)(unsigned long))malloc)(3000000)'
for round in 1 2 3; do
    "${gdb[@]}" -p $pid -ex "$call" -ex 'call ((void (*)(void *))free)($)' \
        -ex "$large" -ex 'call ((void (*)(void *))free)($)' \
        -ex "info threads" -ex detach >"attach$round.log" 2>&1 ||
        fail "gdb could not call malloc"
    if grep -q "ptrace: Operation not permitted" "attach$round.log"; then
        kill -KILL $pid
        echo "debugged.sh: this machine forbids debuggers"
        exit 77
    fi
    [ "$(grep -c '^\$[0-9]* = (void \*) 0x[0-9a-f]*[1-9a-f]' "attach$round.log")" = 2 ] ||
        fail "malloc in a call by gdb returned nothing"
done
# In the first round the thread may not have its name yet.
grep -q '"slabyard' attach3.log || fail "gdb does not show the background threads by name"
exec 3>&-
wait $pid || fail "the program did not end well after gdb had detached"

"${gdb[@]}" -ex "set environment LD_PRELOAD $library" -ex run -ex quit "$program" \
    </dev/null >run.log 2>&1 || fail "gdb could not run the program"
grep -q "exited normally" run.log || fail "the program did not end well in gdb"

if command -v strace >/dev/null; then
    strace -f -o /dev/null -E LD_PRELOAD="$library" "$program" </dev/null >strace.log 2>&1 ||
        fail "the program did not end well under strace"
fi
if command -v valgrind >/dev/null; then
    LD_PRELOAD=$library valgrind -q --error-exitcode=9 "$program" </dev/null >valgrind.log 2>&1 ||
        fail "the program did not end well under Valgrind"
fi
