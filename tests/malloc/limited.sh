#!/usr/bin/env bash
# Tests the drop-in malloc under a memory limit of the control group: a program whose live memory
# swings between 50 and 180 MiB (swing.c) ends normally in a group of 256 MiB, and in one of 300 MiB
# if its sizes change; of 320 MiB, if no background thread reads how much memory is resident. Without
# reaction to the limit, the kernel would end it. Needs a control group of version 1 or 2 that this
# user may create; else it exits with 77.
# Usage: tests/malloc/limited.sh LIBRARY PROGRAM
set -euo pipefail

library=$(realpath "$1")
program=$(realpath "$2")
unset SLABYARD

# make_group: creates a group, and prints its directory and the name of the file with its limit.
make_group() {
    local name=slabyard-test-$$ root
    for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
        if mkdir "$root/$name" 2>/dev/null; then
            for file in memory.limit_in_bytes memory.max; do
                [ ! -w "$root/$name/$file" ] || { echo "$root/$name $file" && return; }
            done
            rmdir "$root/$name"
        fi
    done
}
read -r group limit <<<"$(make_group)"
if [ -z "${group:-}" ]; then
    echo "limited: no control group for memory can be created here"
    exit 77
fi
trap 'rmdir "$group"' EXIT

run() { # run MIB WAY OPTIONS
    echo $(($1 << 20)) >"$group/$limit"
    if ! SLABYARD=$3 bash -c 'echo $$ >"$1/cgroup.procs" && LD_PRELOAD=$2 exec "$3" 6 "$4"' \
        run "$group" "$library" "$program" "$2"; then
        echo "limited: with sizes that are '$2', the program did not end in $1 MiB (SLABYARD=$3)" >&2
        exit 1
    fi
}
for _ in 1 2; do
    run 256 same ""
    run 300 changing ""
    run 320 changing maintenance=no
done
