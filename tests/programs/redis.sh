commands="redis-server redis-cli redis-benchmark"
packages="redis-server redis-tools"
version="redis-server --version | sed 's/.*\(v=[0-9.]*\).*\(malloc=[^ ]*\).*/\1 \2/'"
checks="DEBUG DIGEST of the data, before and after a save and a restart, under redis-benchmark; replies; INFO memory, MEMORY PURGE"
seconds=240
processes="redis-check-rdb redis-benchmark redis-cli"

start() { # start PORT
    redis-server --port "$1" --bind 127.0.0.1 --save '' --dir . --dbfilename dump.rdb --daemonize no \
        --enable-debug-command yes --io-threads 2 --hash-max-listpack-entries 16 --logfile log &
    # The server accepts connections before it has loaded its data.
    wait_for sh -c "redis-cli -p $1 ping | grep PONG"
}
end() { # end PORT
    redis-cli -p "$1" shutdown nosave || true
    wait
}
figure() { redis-cli -p "$1" info memory | sed -n "s/^$2:\([0-9]*\).*/\1/p"; } # figure PORT NAME
# What Redis asks its malloc by mallctl: 1 if the figures are those of its data, and less later.
figures() { # figures PORT
    local used allocated active resident
    redis-cli -p "$1" eval 'for i = 1, 200000 do redis.call("set", "x" .. i, string.rep("x", i % 300)) end' 0
    sleep 0.3 # Redis asks ten times a second
    read -r used allocated active resident <<<"$(echo $(for name in used_memory allocator_allocated \
        allocator_active allocator_resident; do figure "$1" $name; done))"
    echo $((used <= allocated && allocated < used + (4 << 20) && allocated <= active && active <= resident))
    redis-cli -p "$1" memory malloc-stats | grep -c '^Allocated: '
    redis-cli -p "$1" memory doctor | grep -o -m 1 Sam
    redis-cli -p "$1" flushall
    redis-cli -p "$1" memory purge
    sleep 0.3
    echo $(($(figure "$1" allocator_resident) < resident / 2))
}
data() {
    local port i
    port=$(free_port)
    start "$port"
    # Deletes the random keys of the benchmark, then stores data that are the same in each run.
    redis-benchmark -p "$port" -q -n 30000 -c 30 -r 20000 -d 300 -P 8 --threads 2 \
        -t set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset >/dev/null 2>&1
    redis-cli -p "$port" dbsize | awk '{ print ($1 > 1000) }'
    redis-cli -p "$port" flushall
    awk 'BEGIN {
        for (i = 0; i < 50000; i++) {
            v = sprintf("%0" 1 + (i * 7919) % 200 "d", i)
            if (i % 10 == 9) print "del key" i - 5
            print "set key" i, v; print "hset hash" i % 500, "field" i % 9000, v
            print "rpush list" i % 300, v; print "sadd set" i % 200, v; print "zadd sorted" i % 100, i * 31 % 977, v
            if (i % 50 == 0) print "append key" i, v v v v v; if (i % 70 == 0) print "lpop list" i % 300
            if (i % 90 == 0) print "ltrim list" i % 300, "0 -2"; if (i % 30 == 0) print "xadd stream" i % 20, i + 1 "-1 v", v
        }
    }' | redis-cli -p "$port" >answers
    cksum <answers
    redis-cli -p "$port" eval 'local s = 0; for i = 1, 20000 do local t = {}; for j = 1, 20 do t[j] = "x" .. i * j end
        s = s + #table.concat(t) end return s' 0
    redis-cli -p "$port" dbsize
    redis-cli -p "$port" debug digest
    redis-cli -p "$port" sort list7 alpha limit 0 20
    redis-cli -p "$port" bgsave
    wait_for sh -c "redis-cli -p $port info persistence | grep rdb_bgsave_in_progress:0"
    redis-cli -p "$port" info persistence | grep rdb_last_bgsave_status
    redis-cli -p "$port" bgrewriteaof >/dev/null
    redis-cli -p "$port" memory purge
    redis-cli -p "$port" debug reload
    redis-cli -p "$port" debug digest
    end "$port"
    start "$port"
    redis-cli -p "$port" debug digest
    redis-cli -p "$port" flushall
    figures "$port"
    redis-cli -p "$port" flushall async
    end "$port"
}
program() { both redis data; }
