#!/usr/bin/env bash
# Looks into real servers under load with the tool: redis-server, PostgreSQL, a static one of the
# examples, and one in Rust. While a server runs, an account may differ from the system's figure by
# what the server does meanwhile; while it is stopped, it must be equal to the page. Prometheus
# scrapes the export and is asked for it. On Debian, missing programs are installed first.
#
# Usage: tests/look/run.sh [TOOL]        default: rust/target/release/slabyard
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/programs/common.sh
tool=$(readlink -f "${1:-rust/target/release/slabyard}")
[ -x "$tool" ] || fail "there is no tool $tool: cargo build --release -p slabyard-cli makes it"
scripts/install.sh look
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1):$(dirname "$(command -v cargo)")

work=$(mktemp -d)
chmod 755 "$work"
servers=()
end() {
    local pid
    for pid in "${servers[@]}"; do kill -CONT -- "$pid" 2>/dev/null && kill -KILL -- "$pid" 2>/dev/null; done || true
    rm -rf "$work"
}
trap end EXIT

# figure NAME: a number of the account in $work/account.json; 0: there is none
figure() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]] or 0)' "$work/account.json" "$1"; }
# resident NAME: the resident bytes of a row
resident() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["resident"].get(sys.argv[2], {"rss_bytes": 0})["rss_bytes"])' "$work/account.json" "$1"; }

# account PID: writes $work/account.json, and sets `rss` and `residual`.
account() {
    "$tool" account "$1" --json >"$work/account.json"
    rss=$(figure rss_bytes)
    residual=$(($(figure system_rss_bytes) - rss))
}

# exact NAME LIVE PID...: each process is stopped; then its account is equal to the system's figure.
# At least LIVE bytes of objects are live, nothing is changing, and hardly anything is of unknown use:
# a chunk that was not read would be.
exact() {
    local name=$1 least=$2 live pid tries
    shift 2
    for pid; do
        kill -STOP "$pid"
        for tries in $(seq 50); do
            grep -q '^State:.*T' "/proc/$pid/status" && break
            sleep 0.02
        done
        account "$pid"
        kill -CONT "$pid"
        [ "$residual" = 0 ] || fail "$name ($pid): the account has $rss bytes, the system $residual more"
        [ "$(figure problems)" = 0 ] || fail "$name ($pid): $(figure problems)"
        live=$(($(resident live) + $(resident large)))
        [ "$live" -ge "$least" ] || fail "$name ($pid): $live bytes are live"
        [ "$(resident changing)" = 0 ] || fail "$name ($pid): $(resident changing) bytes are changing"
        [ "$(resident anonymous)" -le $((2 << 20)) ] || fail "$name ($pid): nothing is known of $(resident anonymous) bytes"
    done
    echo "ok $name: $# processes, to the page"
}

# under_load NAME PID COMMAND...: accounts of a process that is under load.
under_load() {
    local name=$1 pid=$2 worst=0 count=0 load what
    shift 2
    "$@" >"$work/load.log" 2>&1 &
    load=$!
    while kill -0 "$load" 2>/dev/null; do
        account "$pid"
        count=$((count + 1))
        [ "${residual#-}" -le "$worst" ] || worst=${residual#-}
        for what in caches threads pins verify; do
            "$tool" "$what" "$pid" >"$work/$what.txt"
        done
        grep 'heap-\|session' "$work/caches.txt" >/dev/null || fail "$name: there are no caches"
        grep "^$pid " "$work/threads.txt" >/dev/null || fail "$name: its first thread is missing"
        grep 'live objects of ' "$work/pins.txt" >/dev/null || fail "$name: nothing is pinned"
    done
    wait "$load" || fail "$name: the load failed: $(tail -n 5 "$work/load.log")"
    [ "$count" -gt 2 ] || fail "$name: the load was over before there were three accounts"
    # What a server touches in the milliseconds of an account.
    [ "$worst" -le $((4 << 20)) ] || fail "$name: an account differs by $worst bytes"
    echo "ok $name: $count accounts under load, which differ by at most $((worst >> 10)) KiB"
}

redis() {
    local port pid
    port=$(free_port)
    (cd "$work" && exec "$tool" run -- redis-server --port "$port" --bind 127.0.0.1 --save '') >"$work/redis.log" &
    servers+=($!)
    wait_for sh -c "redis-cli -p $port ping | grep PONG"
    pid=$(redis-cli -p "$port" info server | sed -n 's/^process_id:\([0-9]*\).*/\1/p')
    servers+=("$pid")
    under_load redis "$pid" redis-benchmark -p "$port" -q -n 200000 -r 50000 -d 200 -t set,lpush,hset,zadd
    # The benchmark has stored 50,000 values of 200 bytes, at least once.
    exact redis $((50000 * 200)) "$pid"
    prometheus "$pid" "$port"
    "$tool" snapshot "$pid" -o "$work/before"
    redis-cli -p "$port" flushall >/dev/null
    "$tool" snapshot "$pid" -o "$work/after"
    "$tool" diff "$work/before" "$work/after" | grep 'live objects .*-' >/dev/null || fail "redis: the difference does not show the flush"
    echo "ok redis: a difference"
}

# prometheus PID PORT: the export is scraped, and Prometheus' sum is the account's.
prometheus() {
    local at sum
    at=$(free_port)
    "$tool" export --listen "127.0.0.1:$at" "$1" 2>"$work/export.log" &
    servers+=($!)
    mkdir -p "$work/prometheus"
    cat >"$work/prometheus.yml" <<END
scrape_configs:
  - job_name: slabyard
    scrape_interval: 1s
    static_configs: [{targets: ["127.0.0.1:$at"]}]
END
    local listen
    listen=$(free_port)
    /usr/bin/prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/prometheus" \
        --web.listen-address="127.0.0.1:$listen" >"$work/prometheus.log" 2>&1 &
    servers+=($!)
    asked() {
        curl -sf --get "http://127.0.0.1:$listen/api/v1/query" --data-urlencode "query=$1" |
            python3 -c 'import json, sys; print(json.load(sys.stdin)["data"]["result"][0]["value"][1])'
    }
    wait_for asked 'sum(slabyard_resident_bytes)'
    account "$1"
    sum=$(asked 'sum(slabyard_resident_bytes)')
    [ $((sum - rss)) -lt $((1 << 20)) ] && [ $((rss - sum)) -lt $((1 << 20)) ] ||
        fail "Prometheus has $sum bytes, the account $rss"
    [ "$(asked 'count(slabyard_cache_objects{state="live"})')" -gt 3 ] || fail "Prometheus has no caches"
    # The queries of the dashboard, for all programs and processes.
    local query queries=0
    while read -r query; do
        curl -sf --get "http://127.0.0.1:$listen/api/v1/query" --data-urlencode "query=$query" >"$work/answer" ||
            fail "Prometheus refuses a query of the dashboard: $query"
        queries=$((queries + 1))
    done < <(python3 -c '
import json, re, sys
for panel in json.load(open(sys.argv[1]))["panels"]:
    print(re.sub(r"[$](program|pid)", ".*", panel["targets"][0]["expr"]))' tools/grafana/slabyard.json)
    [ "$queries" -gt 5 ] || fail "the dashboard has $queries queries"
    echo "ok prometheus: $sum bytes, $queries queries of the dashboard"
}

postgres() {
    local data=$work/data pids
    mkdir "$data" && chown -R nobody "$work"
    as() { setpriv --reuid=nobody --clear-groups env HOME="$work" PATH="$PATH" "$@"; }
    [ "$(id -u)" = 0 ] || as() { "$@"; }
    as initdb -D "$data" -k -A trust -U tester --no-sync >"$work/postgres.log" 2>&1
    as "$tool" run -- "$(command -v postgres)" -D "$data" -h '' -k "$work" -c fsync=off \
        -c jit=off -c max_parallel_workers_per_gather=0 >>"$work/postgres.log" 2>&1 &
    servers+=($!)
    wait_for pg_isready -h "$work"
    pids=$(head -n 1 "$data/postmaster.pid")
    servers+=("$pids")
    ask() { psql -X -q -h "$work" -U tester -d postgres "$@"; }
    ask -c 'create table t as select i, md5(i::text) as m from generate_series(1, 300000) i; create index on t(m)'
    # A session that sorts and joins in memory, and then waits.
    (ask -A -t -c 'select pg_backend_pid()' -c "set work_mem = '64MB'" \
        -c 'select count(*) from t a join t b using (m)' -c 'select pg_sleep(100)' >"$work/session" 2>/dev/null || true) &
    wait_for sh -c "[ \$(wc -l <'$work/session') -ge 2 ]"
    pids=$(head -n 1 "$work/session")
    exact PostgreSQL $((1 << 18)) "$pids" "$(head -n 1 "$data/postmaster.pid")"
    pgbench -i -q -s 2 -h "$work" -U tester postgres >/dev/null 2>&1
    pgbench -c 2 -j 2 -T 12 -h "$work" -U tester postgres >/dev/null 2>&1 &
    backend() { ask -A -t -c "select pid from pg_stat_activity where application_name = 'pgbench' limit 1"; }
    wait_for sh -c "psql -X -q -A -t -h '$work' -U tester -d postgres -c \"select pid from pg_stat_activity where application_name = 'pgbench'\" | grep ."
    under_load PostgreSQL "$(backend)" sleep 5
    as pg_ctl -D "$data" -m immediate stop >/dev/null
}

# A server that is linked statically with the library, and has no symbols.
static_server() {
    local port
    make build >"$work/build.log" 2>&1 || fail "$(tail -n 20 "$work/build.log")"
    cc -O2 -DSY_STATIC -Iinclude examples/kv_server.c build/library/libslabyard.a -lpthread -o "$work/kv_server"
    strip "$work/kv_server"
    port=$(free_port)
    "$work/kv_server" "$port" cache >"$work/kv.log" 2>&1 &
    local pid=$!
    servers+=("$pid")
    wait_for answers "$port"
    under_load kv_server "$pid" redis-benchmark -p "$port" -q -n 300000 -r 50000 -d 100 -t set,get
    exact "kv_server, static and stripped" $((50000 * 100)) "$pid"
}

# A server in Rust whose global allocator is the library: after a spike of requests it waits.
rust_server() {
    local root=$PWD
    mkdir -p "$work/rust/src"
    cat >"$work/rust/Cargo.toml" <<END
[package]
name = "server"
edition = "2021"
[dependencies]
libc = "0.2"
slabyard = { path = "$root/rust/slabyard" }
[workspace]
END
    sed "s|server/serve.rs|$root/rust/bench/examples/server/serve.rs|" rust/bench/examples/server_slabyard.rs >"$work/rust/src/main.rs"
    (cd "$work/rust" && cargo build --release) >"$work/cargo.log" 2>&1 || fail "$(tail -n 20 "$work/cargo.log")"
    "$work/rust/target/release/server" 1 60 >"$work/rust.log" &
    local pid=$!
    servers+=("$pid")
    wait_for grep -q . "$work/rust.log"
    under_load "a server in Rust" "$pid" sleep 3
    exact "a server in Rust" $((1 << 20)) "$pid"
}

redis
postgres
static_server
rust_server
