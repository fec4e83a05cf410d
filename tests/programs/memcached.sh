commands="memcached python3"
packages="memcached python3"
version="memcached --version"
checks="8 clients set, append, delete and read back 120,000 values through 4 threads"
seconds=180
processes="memcached"

client='
import random, socket, sys, threading
port, wrong = int(sys.argv[1]), []
def value(key, turn):
    return (f"{key}-{turn}-" * 400)[: 1 + hash((key, turn)) % 3000].encode()
def work(number):
    file = socket.create_connection(("127.0.0.1", port)).makefile("rwb", buffering=1 << 16)
    held, random_ = {}, random.Random(number)
    def ask(line, *body):
        file.write(line.encode() + b"\r\n" + b"".join(b + b"\r\n" for b in body)); file.flush()
        return file.readline().strip()
    for turn in range(15000):
        key = f"k{number}-{random_.randrange(1500)}"
        deed = random_.randrange(10)
        if deed < 5:
            held[key] = value(key, turn)
            if ask(f"set {key} 0 0 {len(held[key])}", held[key]) != b"STORED": wrong.append(key)
        elif deed < 6 and key in held:
            held[key] += b"more"
            if ask(f"append {key} 0 0 4", b"more") != b"STORED": wrong.append(key)
        elif deed < 7:
            if ask(f"delete {key}") != (b"DELETED" if key in held else b"NOT_FOUND"): wrong.append(key)
            held.pop(key, None)
        else:
            reply = ask(f"get {key}")
            if reply != b"END":
                got = file.read(int(reply.split()[3]) + 2)[:-2]
                if file.readline() != b"END\r\n" or got != held.get(key): wrong.append(key)
            elif key in held: wrong.append(key)
    for key in held:
        reply = ask(f"get {key}").split()
        if len(reply) < 4 or file.read(int(reply[3]) + 2)[:-2] != held[key] or file.readline() != b"END\r\n": wrong.append(key)
    print(number, "held at the end", len(held))
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for t in threads: t.start()
for t in threads: t.join()
sys.exit(f"wrong: {wrong[:20]}" if wrong else 0)
'
program() {
    local port server
    port=$(free_port)
    (use_library && exec memcached -l 127.0.0.1 -p "$port" -u "$(id -un)" -t 4 -m 256 -L) &
    server=$!
    wait_for answers "$port"
    python3 -c "$client" "$port" | sort >counts
    cat counts
    [ "$(wc -l <counts)" = 8 ]
    kill "$server"
    wait "$server" || true
}
