# Functions for scripts that run real programs under the drop-in malloc: tests/programs/run,
# tests/programs/*.sh and tests/malloc/programs.sh source this file.
#
# The caller sets: library  the drop-in malloc
#                  work     a temporary folder
#                  preload  (if not empty) another library that is loaded before it
#                  options  (if not empty) the value of SLABYARD under the library

# The output of the programs must not depend on the user's configuration.
export LC_ALL=C TZ=UTC PYTHONMALLOC=malloc PYTHONHASHSEED=0 SOURCE_DATE_EPOCH=1577836800
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
unset SLABYARD

fail() {
    echo "$*" >&2
    exit 1
}

# Preloads the library into the commands that this shell starts from now on.
use_library() {
    export LD_PRELOAD=${preload:+$preload }$library
    [ -z "${options:-}" ] || export SLABYARD=$options
}

# both NAME COMMAND...: runs a command, which may be a function, once with the library and once
# without, each time in an empty folder of the same name. Ends the script unless both runs succeed and
# write the same to stdout and stderr, to the byte. The output stays in $work/with.out.
both() {
    local name=$1 side status
    shift
    if ! command -v "$1" >/dev/null; then
        echo "skipped $name: $1 is not installed"
        return
    fi
    for side in with without; do
        rm -rf "$work/folder" && mkdir -p "$work/folder"
        status=0
        (
            set -e
            cd "$work/folder"
            [ $side = without ] || use_library
            "$@" >"$work/$side.out" 2>"$work/$side.err" </dev/null
        ) &
        wait $! || status=$? # in the background, because `set -e` is off in a command before ||
        echo "status $status" >>"$work/$side.out"
    done
    diff -a "$work/without.out" "$work/with.out" >"$work/difference" ||
        { echo "$name: stdout differs (<: without the library):" && head -n 20 "$work/difference" "$work/with.err" && exit 1; } >&2
    diff -a "$work/without.err" "$work/with.err" >"$work/difference" ||
        { echo "$name: stderr differs (<: without the library):" && head -20 "$work/difference" && exit 1; } >&2
    [ "$(tail -n 1 "$work/with.out")" = "status 0" ] ||
        fail "$name ends with $(tail -n 1 "$work/with.out") and $(tail -n 20 "$work/with.out" "$work/with.err")"
    [ "$(wc -l <"$work/with.out")" -gt 1 ] || fail "$name writes nothing"
    echo "ok $name"
}

# ---- servers ----

free_port() {
    local port
    while port=$((20000 + RANDOM % 10000)); (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo $port
}

# wait_for COMMAND...: until the command succeeds; gives up after a minute.
wait_for() {
    local tries
    for tries in $(seq 300); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.2
    done
    fail "waited a minute for: $*"
}

answers() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; } # answers PORT

# sums FILE...: a checksum of each file, under its base name.
sums() {
    local file
    for file in "$@"; do echo "$(cksum <"$file") $(basename "$file")"; done
}

# in_sqlite ROWS: prints commands for the SQLite shell, which make a table with that many rows.
in_sqlite() {
    cat <<END
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < $1)
insert into t select i, printf('%08d-%s', (i * 7919) % 100003, substr('abcdefghijklmnopqrstuvwxyz', 1, i % 26)), i * 0.5 from n;
create index u on t(b); delete from t where a % 3 = 0; vacuum;
select count(*), sum(length(b)), sum(c) from t; select b from t order by b limit 20;
pragma integrity_check;
END
}
