#!/usr/bin/env bash
# Drives the key-value server with Redis' own clients: answers, what it refuses, a crowd, memory after a
# flush, too few descriptors, and an end with nothing left behind.
# Usage: tests/server/run.sh KV_SERVER [slabyard|malloc [sanitized]]
# Resident memory is not judged in a sanitized server: sanitizers keep freed memory.
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

start() { # start [DESCRIPTORS]
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
refuses() { # refuses REQUEST: at once, with the client still there
    local got
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf "$1" >"$work/request"
    cat "$work/request" >&3 # in one write: printf's would be one a line
    IFS= read -r -t 10 got <&3 || true
    exec 3>&-
    [ "$got" = $'-ERR Protocol error\r' ] || fail "'$1' is not refused, but answered with '$got'"
}
sleeps() { # whether it comes to rest; who is woken again and again is never seen asleep for long
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
ask nonsense 2>&1 | grep "ERR unknown command" >/dev/null || fail "nonsense is understood"

# A number is digits alone, to the end of its line, and what all words may be at most.
for number in '' + - +1 -1 ' 1' '\t1' '\n1' '1 ' 1x 1\\n 65 00000000000 -18446744073709551615 18446744073709551617; do
    refuses "*$number\r\n\$4\r\nPING\r\n"
done
refuses '*1\r\n$9999999999\r\n'
refuses '*2\r\n$3\r\nSET\r\n$67108864\r\n'

# A client that asks for 100 MB and reads nothing holds up itself, not the server's memory.
exec 3<>"/dev/tcp/127.0.0.1/$port"
before=$(resident)
for _ in $(seq 1000); do printf '*2\r\n$3\r\nGET\r\n$5\r\nlarge\r\n'; done >"$work/requests"
cat "$work/requests" >&3
sleep 1 # for it to take them all, if it would
waiting=$(resident)
below "$waiting" $((before + (16 << 20))) || fail "$waiting bytes resident for who does not read"
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
below "$flushed" $((full / 2)) || fail "$full bytes resident before a flush, $flushed after"

# A client that once sent much does not hold the memory for it from then on: the next client gets it.
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
    [ "$got" = 20000013 ] || fail "of an echo $got bytes come"
done
held=$(resident)
echo "$kind: $(((held - before) >> 20)) MiB more when eight have sent 20 MB each"
below "$held" $((before + (128 << 20))) || fail "$held bytes resident for who sent much before"
for client in "${clients[@]}"; do
    printf '$4\r\nPING\r\n' >&"$client"
    IFS= read -r -t 10 got <&"$client" || true
    [ "$got" = $'+PONG\r' ] || fail "PING behind an echo: '$got'"
    exec {client}>&-
done

# After SHUTDOWN the connected clients are served to the end, and no other client gets in.
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
! comes_in || fail "connections are taken after a shutdown"
sleeps || fail "spins after a shutdown"
printf '*1\r\n$4\r\nPING\r\n' >&3
IFS= read -r -t 10 got <&3 || true
[ "$got" = $'+PONG\r' ] || fail "PING after a shutdown: '$got'"
exec 3>&-
ends_well

# More clients than descriptors: the rest wait until others go, and the server does not spin.
start 12
clients=()
for _ in $(seq 12); do
    exec {client}<>"/dev/tcp/127.0.0.1/$port"
    clients+=("$client")
done
printf '*1\r\n$4\r\nPING\r\n' >&"$client"
sleeps || fail "spins for want of descriptors"
! IFS= read -r -t 0.1 got <&"$client" || fail "there are descriptors for all"
for other in "${clients[@]:0:11}"; do exec {other}>&-; done
IFS= read -r -t 10 got <&"$client" || fail "who waited for a descriptor is not served"
exec {client}>&-
expect OK shutdown
ends_well

# A line of white space alone fills the first buffer: a read past its end hits a guard.
SLABYARD=guard=1 start
refuses "*$(printf '%16383s' | sed 's/ /\\n/g')"
expect OK shutdown
ends_well
