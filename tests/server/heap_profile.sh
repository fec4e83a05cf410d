#!/usr/bin/env bash
# Tests the server of examples/heap_profile.cpp: the profile that it sends by HTTP has the memory of
# its table, and `go tool pprof`, if it is installed, reads it from the server. Other requests, and
# clients that leave early, do not end the server. Needs python3, readelf and nm.
# Usage: tests/server/heap_profile.sh HEAP_PROFILE
set -euo pipefail

server=$(realpath "$1")
work=$(mktemp -d)
process=
trap '[ -z "$process" ] || kill "$process" 2>/dev/null; rm -rf "$work"' EXIT
export PYTHONPATH=$(dirname "$(realpath "$0")")/../support PYTHONDONTWRITEBYTECODE=1

fail() {
    echo "heap_profile: $*" >&2
    cat "$work/errors" >&2
    exit 1
}

start() { # start [OPTIONS]
    : >"$work/said"
    SLABYARD=tools=off${1:+,$1} "$server" 0 >"$work/said" 2>"$work/errors" &
    process=$!
    port=
    for _ in {1..200}; do
        port=$(sed -n 's/^listening at port //p' "$work/said")
        [ -z "$port" ] || return 0
        sleep 0.1
    done
    fail "does not listen"
}

stop() {
    kill -0 "$process" || fail "the server has ended"
    kill "$process"
    wait "$process" || true
    process=
}

cat >"$work/ask.py" <<'END'
import http.client, socket, sys

from pprof import sums_by_function

port, server, path, has_samples = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] == "yes"

def ask(what, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, what)
    answer = connection.getresponse()
    return answer.status, answer.read()

def leave(request):
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(request)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0") # no farewell

for request in [b"", b"GET /heap", b"GET /heap HTTP/1.1\r\n\r\n", b"GET /" + b"x" * 20000] * 3:
    leave(request)
assert ask("/")[0] == ask("/heaps")[0] == ask("/heap", "POST")[0] == 404
status, content = ask("/heap")
assert status == 200
with open(path, "wb") as file:
    file.write(content)
sums = sums_by_function(path, server)
# A node of the table: 128 bytes, of which 64 KiB, so 512 nodes, have one sample. So there are some
# 195 samples: the window is six standard deviations.
nodes, space, live_nodes, live = sums.get("main", [0] * 4)
assert (nodes, space) == (live_nodes, live), sums
assert abs(nodes - 100000) < 43000 if has_samples else nodes == 0, sums
assert abs(live - 12.8e6) < 5.5e6 if has_samples else live == 0, sums
END

start
python3 "$work/ask.py" "$port" "$server" "$work/profile" yes || fail "the server answers something else"
if command -v go >/dev/null && go tool pprof -h 2>&1 | grep proto >/dev/null; then
    GOCACHE=$(go env GOCACHE) HOME=$work go tool pprof -symbolize=local -sample_index=inuse_space -top \
        "$server" "http://localhost:$port/heap" >"$work/top" 2>>"$work/errors" || fail "pprof does not read the profile"
    # It reads the names of a few functions only, if they are C++'s.
    grep -Eq '100% +(main|\[example_heap_profile\])$' "$work/top" || fail "pprof shows other places: $(cat "$work/top")"
fi
stop

start check # objects that are checked are not sampled
python3 "$work/ask.py" "$port" "$server" "$work/profile" no || fail "with checks the answer differs"
stop

status=0
"$server" >/dev/null 2>"$work/errors" || status=$?
[ "$status" = 2 ] || fail "without a port the server ends with $status"
start
status=0
"$server" "$port" >/dev/null 2>"$work/errors" || status=$?
[ "$status" = 1 ] && grep -q "no port to listen at: " "$work/errors" || fail "a port in use: status $status"
stop
echo "heap_profile: ok"
