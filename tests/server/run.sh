#!/usr/bin/env bash
# Tests the key-value server of examples/ with Redis' clients: answers, malformed requests, many
# clients at once, resident memory, too few descriptors, and shutdown. Needs redis-cli and
# redis-benchmark.
# Usage: tests/server/run.sh KV_SERVER [slabyard|malloc [sanitized]]
#   sanitized   does not check resident memory, because sanitizers keep freed memory
set -euo pipefail

server=$1 kind=${2:-slabyard} build=${3:-plain}
work=$(mktemp -d)
process=
trap '[ -z "$process" ] || kill "$process" 2>/dev/null; rm -rf "$work"' EXIT
fail() {
    echo "kv_server: $*" >&2
    exit 1
}

command -v redis-cli >/dev/null && command -v redis-benchmark >/dev/null ||
    fail "redis-cli and redis-benchmark are missing (Debian: redis-tools)"

start() { # start [DESCRIPTORS]: starts the server, with a limit of open files
    : >"$work/said"
    (ulimit -n "${1:-1024}" && exec "$server" 0 "$kind") >"$work/said" 2>"$work/errors" &
    process=$!
    port=
    for _ in $(seq 100); do
        port=$(sed -n 's/^listening at port //p' "$work/said")
        [ -z "$port" ] || break
        sleep 0.1
    done
    [ -n "$port" ] || fail "does not listen: $(cat "$work/errors")"
}
ends_well() {
    local status=0
    wait "$process" || status=$?
    process=
    [ "$status" = 0 ] || fail "ends with $status: $(cat "$work/errors")"
}

ask() { redis-cli -p "$port" "$@"; }
expect() { # expect ANSWER WORDS...
    local wanted=$1 got
    shift
    got=$(ask "$@") || fail "redis-cli $* fails: $got"
    [ "$got" = "$wanted" ] || fail "$*: '$got', not '$wanted'"
}
refuses() { # refuses REQUEST: the answer is an error, while the client is still connected
    local got
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf "$1" >"$work/request"
    cat "$work/request" >&3 # in one write: printf writes each line by itself
    IFS= read -r -t 10 got <&3 || true
    exec 3>&-
    [ "$got" = $'-ERR Protocol error\r' ] || fail "the answer to '$1' is '$got', not an error"
}
sleeps() { # whether the server sleeps, in 20 successive looks within five seconds
    local seen=0
    for _ in $(seq 500); do
        [ "$(sed 's/.*) \(.\).*/\1/' "/proc/$process/stat")" = S ] && seen=$((seen + 1)) || seen=0
        [ "$seen" -lt 20 ] || return 0
        sleep 0.01
    done
    return 1
}
below() { [ "$build" = sanitized ] || [ "$1" -lt "$2" ]; } # below BYTES LIMIT
resident() { ask info | tr -d '\r' | sed -n 's/^used_memory_rss://p'; }

start
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
ask nonsense 2>&1 | grep "ERR unknown command" >/dev/null || fail "the command nonsense is not refused"

# A number with other characters than digits, or larger than the limit, is refused; so is a request
# whose words are too long together.
for number in '' + - +1 -1 ' 1' '\t1' '\n1' '1 ' 1x 1\\n 65 00000000000 -18446744073709551615 18446744073709551617; do
    refuses "*$number\r\n\$4\r\nPING\r\n"
done
refuses '*1\r\n$9999999999\r\n'
refuses '*2\r\n$3\r\nSET\r\n$67108864\r\n'

# If a client requests 100 MB and reads nothing, the server stops reading its requests, so its
# memory does not grow.
exec 3<>"/dev/tcp/127.0.0.1/$port"
before=$(resident)
for _ in $(seq 1000); do printf '*2\r\n$3\r\nGET\r\n$5\r\nlarge\r\n'; done >"$work/requests"
cat "$work/requests" >&3
sleep 1 # time to read all requests, if the server did so
waiting=$(resident)
below "$waiting" $((before + (16 << 20))) || fail "$waiting bytes resident for a client that does not read"
answer=$((${#large} + 11)) # with its first line and its end
got=$(head -c $((1000 * answer)) <&3 | wc -c)
[ "$got" = $((1000 * answer)) ] || fail "the answers have $got bytes, not $((1000 * answer))"
exec 3>&-

# More keys than the table has room for at first, so that it grows.
seq 5000 | sed 's/.*/set key:& value:&/' | ask >/dev/null
seq 5000 | sed 's/.*/get key:&/' | ask >"$work/values"
seq 5000 | sed 's/.*/value:&/' | cmp "$work/values" - || fail "a key has lost its value"
expect 5001 dbsize

# When most keys were deleted at random places, the other entries move together, and keep their
# values.
before=$(resident)
value=$(head -c 300 /dev/zero | tr '\0' v)
seq 40000 | sed "s/.*/set walk:& &$value/" | ask >/dev/null
full=$(resident)
seq 40000 | awk '$1 % 7' | sed 's/.*/del walk:&/' | ask >/dev/null
goal=$((before + (full - before) / 2))
for _ in $(seq 100); do # only Slabyard knows which entries should move
    [ "$kind" = slabyard ] && ! below "$(resident)" "$goal" || break
    sleep 0.1
done
left=$(resident)
echo "$kind: $(((full - before) >> 10)) KiB for 40,000 entries, $(((left - before) >> 10)) KiB with a seventh of them"
[ "$kind" != slabyard ] || below "$left" "$goal" || fail "$left bytes resident with few entries left, $full before"
seq 7 7 40000 | sed 's/.*/get walk:&/' | ask >"$work/values"
seq 7 7 40000 | sed "s/.*/&$value/" | cmp "$work/values" - || fail "an entry that was moved has another value"
seq 7 7 40000 | sed 's/.*/del walk:&/' | ask >/dev/null
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
below "$flushed" $((full / 2)) || fail "$full bytes resident before a flush, $flushed after"

# After a large request, the memory for it does not stay with the client: the next client's uses it.
{
    printf '*2\r\n$4\r\nECHO\r\n$20000000\r\n'
    head -c 20000000 /dev/zero
    printf '\r\n*1\r\n' # and the beginning of another request
} >"$work/requests"
before=$(resident)
clients=()
for _ in $(seq 8); do
    exec {client}<>"/dev/tcp/127.0.0.1/$port"
    clients+=("$client")
    cat "$work/requests" >&"$client"
    got=$(head -c 20000013 <&"$client" | wc -c)
    [ "$got" = 20000013 ] || fail "the answer to ECHO has $got bytes, not 20000013"
done
held=$(resident)
echo "$kind: $(((held - before) >> 20)) MiB more after eight clients have sent 20 MB each"
below "$held" $((before + (128 << 20))) || fail "$held bytes resident for clients with large earlier requests"
for client in "${clients[@]}"; do
    printf '$4\r\nPING\r\n' >&"$client"
    IFS= read -r -t 10 got <&"$client" || true
    [ "$got" = $'+PONG\r' ] || fail "the answer to PING after ECHO is '$got'"
    exec {client}>&-
done

# After SHUTDOWN, the server still serves the connected clients, and accepts no other ones.
expect OK set last one
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf '*1\r\n$4\r\nPING\r\n' >&3
IFS= read -r -t 10 got <&3 || true
expect OK shutdown
comes_in() { (exec 4<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
for _ in $(seq 100); do
    comes_in || break
    sleep 0.1
done
! comes_in || fail "the server accepts connections after SHUTDOWN"
sleeps || fail "the server does not sleep after SHUTDOWN"
printf '*1\r\n$4\r\nPING\r\n' >&3
IFS= read -r -t 10 got <&3 || true
[ "$got" = $'+PONG\r' ] || fail "the answer to PING after SHUTDOWN is '$got'"
exec 3>&-
ends_well

# More clients than descriptors: the other clients wait until some disconnect. Meanwhile, the server
# sleeps.
start 12
clients=()
for _ in $(seq 12); do
    exec {client}<>"/dev/tcp/127.0.0.1/$port"
    clients+=("$client")
done
printf '*1\r\n$4\r\nPING\r\n' >&"$client"
sleeps || fail "the server does not sleep while it has no free descriptor"
! IFS= read -r -t 0.1 got <&"$client" || fail "the server has descriptors for all clients"
for other in "${clients[@]:0:11}"; do exec {other}>&-; done
IFS= read -r -t 10 got <&"$client" || fail "a client that waited for a descriptor gets no answer"
exec {client}>&-
expect OK shutdown
ends_well

# A line of white space that fills the first buffer. A read past the buffer's end would hit a guard
# page.
SLABYARD=guard=1 start
refuses "*$(printf '%16383s' | sed 's/ /\\n/g')"
expect OK shutdown
ends_well
