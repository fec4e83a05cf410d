#!/usr/bin/env bash
# Drives the key-value server with Redis' own clients: answers, a crowd, memory after a flush, and an
# end with nothing left behind.
# Usage: tests/server/run.sh KV_SERVER [malloc]
set -euo pipefail

server=$1 kind=${2:-slabyard}
work=$(mktemp -d)
process=
trap '[ -z "$process" ] || kill "$process" 2>/dev/null; rm -rf "$work"' EXIT
fail() {
    echo "kv_server: $*" >&2
    exit 1
}

command -v redis-cli >/dev/null && command -v redis-benchmark >/dev/null ||
    fail "redis-cli and redis-benchmark are missing (Debian: redis-tools)"

: >"$work/said"
"$server" 0 "$kind" >"$work/said" 2>"$work/errors" &
process=$!
port=
for _ in $(seq 100); do
    port=$(sed -n 's/^listening at port //p' "$work/said")
    [ -z "$port" ] || break
    sleep 0.1
done
[ -n "$port" ] || fail "does not listen: $(cat "$work/errors")"

ask() { redis-cli -p "$port" "$@"; }
expect() { # expect ANSWER WORDS...
    local wanted=$1 got
    shift
    got=$(ask "$@") || fail "redis-cli $* fails: $got"
    [ "$got" = "$wanted" ] || fail "$*: '$got', not '$wanted'"
}
resident() { ask info | tr -d '\r' | sed -n 's/^used_memory_rss://p'; }

expect PONG ping
expect "" get greeting
expect OK set greeting "hello, world"
expect "hello, world" get greeting
expect OK set greeting ""
expect "" get greeting
expect 1 exists greeting
expect 1 del greeting other
expect 0 del greeting
large=$(head -c 100000 /dev/zero | tr '\0' x)
expect OK set large "$large"
expect "$large" get large
expect 1 dbsize
ask nonsense 2>&1 | grep -q "ERR unknown command" || fail "nonsense is understood"
printf '*1\r\n$9999999999\r\n' | timeout 10 bash -c "cat >&3; head -c 3 <&3" 3<>"/dev/tcp/127.0.0.1/$port" |
    grep -q -- -ER || fail "a length that is too large is not refused"

# A client that asks for 100 MB and reads nothing holds up itself, not the server's memory.
exec 3<>"/dev/tcp/127.0.0.1/$port"
before=$(resident)
for _ in $(seq 1000); do printf '*2\r\n$3\r\nGET\r\n$5\r\nlarge\r\n'; done >"$work/requests"
cat "$work/requests" >&3
sleep 1 # for it to take them all, if it would
waiting=$(resident)
[ "$waiting" -lt $((before + (16 << 20))) ] || fail "$waiting bytes resident for who does not read"
answer=$((${#large} + 11)) # and its heading and end
got=$(head -c $((1000 * answer)) <&3 | wc -c)
[ "$got" = $((1000 * answer)) ] || fail "of its answers $got bytes come"
exec 3>&-

# More keys than the table has places at first.
seq 5000 | sed 's/.*/set key:& value:&/' | ask >/dev/null
seq 5000 | sed 's/.*/get key:&/' | ask >"$work/values"
seq 5000 | sed 's/.*/value:&/' | cmp "$work/values" - || fail "a key has lost its value"
expect 5001 dbsize

# Fifty clients at once write and read 100,000 keys.
crowd() { redis-benchmark -p "$port" -t set,get -n 200000 -r 100000 -d 200 -c 50 -P 16 -q; }
crowd >"$work/crowd" 2>&1 || fail "$(cat "$work/crowd")"
keys=$(ask dbsize) full=$(resident)
[ "$keys" -gt 50000 ] || fail "$keys keys after the crowd"
expect OK flushall
expect 0 dbsize
flushed=$(resident)
echo "$kind: $keys keys, $((full >> 20)) MiB, $((flushed >> 20)) MiB after a flush"
tr '\r' '\n' <"$work/crowd" | grep "requests per second" || true
[ "$flushed" -lt $((full / 2)) ] || fail "$full bytes resident before a flush, $flushed after"

expect OK set last one
expect OK shutdown
status=0
wait "$process" || status=$?
process=
[ "$status" = 0 ] || fail "ends with $status: $(cat "$work/errors")"
