/*
 * kv_server.c: a key-value server that speaks RESP, the protocol of Redis. Sessions come from a
 * cache. Entries and buffers come from two separate heaps. FLUSHALL destroys the heap of the
 * entries as a whole.
 *
 *     cc -DSY_STATIC kv_server.c $(pkg-config --cflags --libs slabyard-static) && ./a.out 6380 &
 *     redis-cli -p 6380 set greeting hello
 *     redis-benchmark -p 6380 -t set,get -n 1000000 -r 100000 -d 200 -P 16
 *
 * When many entries were deleted or replaced, the others move together, a few at a time between
 * requests, so that the memory between them goes back.
 *
 * `kv_server PORT malloc` takes all memory from malloc, for comparison. The server knows PING,
 * ECHO, SET, GET, DEL, EXISTS, DBSIZE, FLUSHALL, INFO and SHUTDOWN. After SHUTDOWN it ends with
 * status 0 if no object is left in the cache and the heaps.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <slabyard/cache.h>
#include <slabyard/heaps.h>
#include <slabyard/reclaim.h>

enum {
    WORDS_MAX = 64,         /* in a request */
    REQUEST_MAX = 64 << 20, /* bytes of all words of a request */
    DIGITS_MAX = 10,        /* in a number */
    READ_BYTES = 16 << 10,  /* least room for a read */
    UNSENT_MAX = 1 << 20,   /* bytes: with more unread answers, a client's requests wait */
    ROOM_KEPT = 1 << 20,    /* bytes: a larger buffer shrinks to this when little is in it */
    EVENTS = 256,           /* taken at a time */
    SEGMENT = 1 << 10,      /* buckets, allocated together */
    SEGMENTS_MAX = 1 << 14,
    SLICE_BUCKETS = 128, /* that a slice of the walk looks at, until it has moved */
    SLICE_MOVES = 16,    /* so many entries, */
    SLICE_MOVES_US = 40, /* or has moved for so long: then it ends */
    SLICE_TRIM_NS = 10000,
    SLICE_PERIOD_US = 1000,
};

/* ---- memory ---- */

static bool plain;       /* use malloc instead */
static sy_cache *cache;  /* of sessions */
static sy_heap *entries; /* keys, values, and the buckets of the table */
static sy_heap *buffers; /* bytes received by sessions, and bytes that they still have to send */
static size_t sessions_open;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void *need(void *memory) {
    if (!memory) die("kv_server: memory");
    return memory;
}

static void *take(sy_heap *heap, size_t bytes) {
    return need(plain ? malloc(bytes) : sy_heap_alloc(heap, bytes));
}

static void give(sy_heap *heap, void *memory) {
    if (plain)
        free(memory);
    else
        sy_heap_free(heap, memory);
}

static void *resize(sy_heap *heap, void *memory, size_t bytes) {
    return need(plain ? realloc(memory, bytes) : sy_heap_realloc(heap, memory, bytes));
}

/* Returns the bytes of this process that are in RAM. */
static size_t resident(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*s %zu", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- text that grows ---- */

typedef struct text {
    char *bytes;
    size_t used, room;
} text;

/* Makes room for `more` bytes. A small buffer doubles. A large one grows by a quarter, because it
 * holds one long word. */
static char *reserve(text *it, size_t more) {
    if (it->room - it->used < more) {
        size_t room = it->room + (it->room < ROOM_KEPT ? it->room : it->room / 4);
        it->room = room > it->used + more ? room : it->used + more;
        it->bytes = resize(buffers, it->bytes, it->room);
    }
    return it->bytes + it->used;
}

static void add(text *to, const void *bytes, size_t count) {
    memcpy(reserve(to, count), bytes, count);
    to->used += count;
}

__attribute__((format(printf, 2, 3))) static void say(text *to, const char *format, ...) {
    char line[128];
    va_list arguments;
    va_start(arguments, format);
    int count = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    add(to, line, (size_t)count);
}

static void drop_front(text *from, size_t count) {
    if (count == 0) return;
    memmove(from->bytes, from->bytes + count, from->used - count);
    from->used -= count;
    if (from->room > ROOM_KEPT && from->used < ROOM_KEPT / 2) {
        from->room = ROOM_KEPT;
        from->bytes = resize(buffers, from->bytes, from->room);
    }
}

/* ---- the table: a linear hash table, which grows by one bucket with each new entry ---- */

typedef struct word {
    const char *bytes;
    size_t count;
} word;

typedef struct entry {
    struct entry *next;
    uint64_t hash;
    size_t key_bytes, value_bytes;
    char bytes[]; /* key, value */
} entry;

static entry **segments[SEGMENTS_MAX];
static size_t bucket_count, entry_count;
static size_t freed; /* entries, since the last walk began */
static size_t half;  /* the largest power of two that is not above bucket_count */

static uint64_t hash_of(word key) {
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < key.count; i++)
        hash = (hash ^ (unsigned char)key.bytes[i]) * 1099511628211u;
    return hash ^ hash >> 29;
}

static entry **bucket_of(uint64_t hash) {
    size_t index = (size_t)hash & (2 * half - 1);
    if (index >= bucket_count) index -= half; /* the bucket of that number does not exist yet */
    return &segments[index / SEGMENT][index % SEGMENT];
}

static void add_segment(void) {
    entry ***segment = &segments[bucket_count / SEGMENT];
    *segment = take(entries, SEGMENT * sizeof **segment);
    memset(*segment, 0, SEGMENT * sizeof **segment);
}

static void make_table(void) {
    bucket_count = entry_count = 0;
    add_segment();
    bucket_count = half = SEGMENT;
}

/* Adds a bucket, and moves its entries there. Until now they were in the bucket `half` before
 * it. */
static void add_bucket(void) {
    if (bucket_count == (size_t)SEGMENT * SEGMENTS_MAX) return;
    if (bucket_count % SEGMENT == 0) add_segment();
    entry **shared = bucket_of(bucket_count), *it = *shared;
    *shared = NULL;
    if (++bucket_count == 2 * half) half = bucket_count;
    for (entry *next; it; it = next) {
        entry **bucket = bucket_of(it->hash);
        next = it->next;
        it->next = *bucket;
        *bucket = it;
    }
}

/* Returns the link that leads to the key's entry; or the end of its list, if there is none. */
static entry **find(word key, uint64_t hash) {
    entry **link = bucket_of(hash);
    while (*link && !((*link)->hash == hash && (*link)->key_bytes == key.count &&
                      memcmp((*link)->bytes, key.bytes, key.count) == 0))
        link = &(*link)->next;
    return link;
}

static bool erase(word key) {
    entry **link = find(key, hash_of(key)), *it = *link;
    if (!it) return false;
    *link = it->next;
    give(entries, it);
    entry_count--;
    freed++;
    return true;
}

static void set(word key, word value) {
    uint64_t hash = hash_of(key);
    entry **link = find(key, hash), *old = *link;
    entry *it = take(entries, sizeof *it + key.count + value.count);
    *it = (entry){old ? old->next : NULL, hash, key.count, value.count};
    memcpy(it->bytes, key.bytes, key.count);
    memcpy(it->bytes + key.count, value.bytes, value.count);
    *link = it;
    if (old) {
        give(entries, old);
        freed++;
    } else if (++entry_count > bucket_count) {
        add_bucket();
    }
}

/* With malloc each entry is freed; a heap is destroyed as a whole. */
static void drop_table(void) {
    if (!plain) {
        sy_heap_destroy_all(entries);
        return;
    }
    for (size_t i = 0; i < bucket_count; i++)
        for (entry *it = segments[i / SEGMENT][i % SEGMENT], *next; it; it = next) {
            next = it->next;
            free(it);
        }
    for (size_t i = 0; i < bucket_count; i += SEGMENT) free(segments[i / SEGMENT]);
}

/* Empties the table, and gives its memory back to the system. */
static void clear_table(void) {
    drop_table();
    if (plain) {
        malloc_trim(0);
    } else {
        entries = need(sy_heap_create(&(sy_heap_config){.name = "entries"}));
        sy_trim();
    }
    make_table();
}

/* ---- the walk: moves entries out of sparse slabs, a slice at a time ---- */

static bool walking;
static size_t walk_at, walk_moves; /* the next bucket; entries that were moved */

/* A walk begins when an eighth of the entries was freed. Another one follows if it has moved one in
 * 64. */
static bool wants_slice(void) {
    if (plain) return false;
    if (walking && walk_at >= bucket_count) {
        walking = walk_moves > entry_count / 64;
        walk_at = walk_moves = 0;
    }
    if (!walking && freed > entry_count / 8) {
        walking = true;
        freed = walk_at = walk_moves = 0;
    }
    return walking;
}

/* Moves entries of a chain; returns how many. */
static unsigned move_chain(entry **link) {
    unsigned moves = 0;
    for (; *link; link = &(*link)->next) {
        entry *moved = sy_try_move(*link);
        if (!moved) continue; /* it lies well */
        *link = moved;
        moves++;
    }
    return moves;
}

static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* Gives slabs that became empty back to the system, too. */
static void move_slice(void) {
    int64_t end = now_us() + SLICE_MOVES_US;
    unsigned moves = 0;
    for (int i = 0; i < SLICE_BUCKETS && moves < SLICE_MOVES && walk_at < bucket_count; i++) {
        unsigned more = move_chain(&segments[walk_at / SEGMENT][walk_at % SEGMENT]);
        moves += more;
        walk_at++;
        if (more && now_us() >= end) break;
    }
    walk_moves += moves;
    sy_trim_some(SIZE_MAX, SLICE_TRIM_NS);
}

/* Returns how many milliseconds epoll may wait. */
static int do_slice(void) {
    static int64_t next;
    if (!wants_slice()) return -1;
    if (now_us() >= next) {
        move_slice();
        next = now_us() + SLICE_PERIOD_US;
    }
    return SLICE_PERIOD_US / 1000;
}

/* ---- requests ---- */

typedef struct session {
    int socket;
    uint32_t waits_for; /* events that epoll waits for */
    bool ends;          /* close it when all is sent */
    text in, out;
} session;

static bool running = true;
static bool full; /* no descriptor is left for another session, until one closes */

static bool is(word it, const char *name) {
    return it.count == strlen(name) && strncasecmp(it.bytes, name, it.count) == 0;
}

static void bulk(text *to, const char *bytes, size_t count) {
    say(to, "$%zu\r\n", count);
    add(to, bytes, count);
    add(to, "\r\n", 2);
}

static void tell_info(text *to) {
    char line[200];
    int count = snprintf(line, sizeof line, "allocator:%s\r\nkeys:%zu\r\nused_memory_rss:%zu\r\n",
                         plain ? "malloc" : "slabyard", entry_count, resident());
    bulk(to, line, (size_t)count);
}

static void answer(session *to, const word *words, size_t count) {
    text *out = &to->out;
    word name = words[0];
    size_t done = 0;
    if (is(name, "GET") && count == 2) {
        const entry *it = *find(words[1], hash_of(words[1]));
        if (it)
            bulk(out, it->bytes + it->key_bytes, it->value_bytes);
        else
            add(out, "$-1\r\n", 5);
    } else if (is(name, "SET") && count == 3) {
        set(words[1], words[2]);
        add(out, "+OK\r\n", 5);
    } else if (is(name, "DEL") && count >= 2) {
        for (size_t i = 1; i < count; i++) done += erase(words[i]);
        say(out, ":%zu\r\n", done);
    } else if (is(name, "EXISTS") && count >= 2) {
        for (size_t i = 1; i < count; i++) done += *find(words[i], hash_of(words[i])) != NULL;
        say(out, ":%zu\r\n", done);
    } else if (is(name, "PING")) {
        add(out, "+PONG\r\n", 7);
    } else if (is(name, "ECHO") && count == 2) {
        bulk(out, words[1].bytes, words[1].count);
    } else if (is(name, "DBSIZE")) {
        say(out, ":%zu\r\n", entry_count);
    } else if (is(name, "FLUSHALL")) {
        clear_table();
        add(out, "+OK\r\n", 5);
    } else if (is(name, "INFO")) {
        tell_info(out);
    } else if (is(name, "COMMAND") || is(name, "CONFIG")) { /* need no real answer */
        add(out, "*0\r\n", 4);
    } else if (is(name, "SHUTDOWN")) {
        running = false;
        add(out, "+OK\r\n", 5);
    } else {
        say(out, "-ERR unknown command or wrong number of words: '%.*s'\r\n",
            (int)(name.count < 32 ? name.count : 32), name.bytes);
    }
}

/* Reads a line "<mark>digits" at *at. Returns 1 if it is read; 0 if it is not complete yet; -1 if
 * it is no such line. */
static int read_number(const text *from, size_t *at, char mark, size_t most, size_t *number) {
    const char *it = from->bytes + *at, *end = from->bytes + from->used;
    if (it == end) return 0;
    if (*it++ != mark) return -1;
    const char *digits = it;
    size_t value = 0;
    for (; it < end && *it >= '0' && *it <= '9'; it++) {
        value = value * 10 + (size_t)(*it - '0');
        if (value > most || it - digits == DIGITS_MAX) return -1;
    }
    if (it == end) return 0;
    if (it == digits || *it++ != '\r') return -1;
    if (it == end) return 0;
    if (*it++ != '\n') return -1;
    *number = value;
    *at = (size_t)(it - from->bytes);
    return 1;
}

/* Answers the request at *at and moves *at behind it. Returns as read_number. */
static int serve_request(session *from, size_t *at) {
    word words[WORDS_MAX];
    size_t count, next = *at, left = REQUEST_MAX;
    int result = read_number(&from->in, &next, '*', WORDS_MAX, &count);
    for (size_t i = 0; result == 1 && i < count; i++) {
        size_t bytes;
        result = read_number(&from->in, &next, '$', left, &bytes);
        if (result != 1) break;
        left -= bytes;
        if (from->in.used - next < bytes + 2) return 0;
        words[i] = (word){from->in.bytes + next, bytes};
        next += bytes + 2;
    }
    if (result != 1) return result;
    if (count > 0) answer(from, words, count);
    *at = next;
    return 1;
}

/* ---- sessions ---- */

static void open_session(int poll, int listener) {
    int one = 1, client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) {
        full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (full && sessions_open == 0) die("kv_server: accept4");
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    session *it = need(plain ? malloc(sizeof *it) : sy_cache_alloc(cache));
    *it = (session){.socket = client, .waits_for = EPOLLIN};
    sessions_open++;
    struct epoll_event event = {.events = it->waits_for, .data.ptr = it};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, client, &event) != 0) die("kv_server: epoll_ctl");
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): epoll has the pointer, until close_session. */
}

static void close_session(session *it) {
    close(it->socket);
    give(buffers, it->in.bytes);
    give(buffers, it->out.bytes);
    if (plain)
        free(it);
    else
        sy_cache_free(cache, it);
    sessions_open--;
    full = false;
}

static void receive(session *it) {
    char *to = reserve(&it->in, READ_BYTES);
    ssize_t got = recv(it->socket, to, it->in.room - it->in.used, 0);
    if (got > 0) it->in.used += (size_t)got;
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) it->ends = true;
}

/* Answers the complete requests, until the answers fill UNSENT_MAX bytes. Returns whether they do,
 * so that requests may be left. */
static bool serve_requests(session *it) {
    size_t at = 0;
    int result = 1;
    while (result == 1 && at < it->in.used && it->out.used < UNSENT_MAX)
        result = serve_request(it, &at);
    if (result < 0) {
        add(&it->out, "-ERR Protocol error\r\n", 21);
        it->ends = true;
        at = it->in.used;
    }
    drop_front(&it->in, at);
    return it->out.used >= UNSENT_MAX;
}

/* Sends the answers. Bytes that the socket does not take now wait until it can. */
static void flush(session *it) {
    size_t done = 0;
    while (done < it->out.used) {
        ssize_t sent = send(it->socket, it->out.bytes + done, it->out.used - done, MSG_NOSIGNAL);
        if (sent >= 0) {
            done += (size_t)sent;
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) { /* the client is gone: it will not read the rest */
            it->ends = true;
            done = it->out.used;
        }
    }
    drop_front(&it->out, done);
}

static void wait_for(int poll, session *it) {
    uint32_t reads = !it->ends && it->out.used < UNSENT_MAX ? EPOLLIN : 0;
    uint32_t wanted = reads | (it->out.used > 0 ? EPOLLOUT : 0);
    if (wanted == it->waits_for) return;
    it->waits_for = wanted;
    struct epoll_event event = {.events = wanted, .data.ptr = it};
    if (epoll_ctl(poll, EPOLL_CTL_MOD, it->socket, &event) != 0) die("kv_server: epoll_ctl");
}

static void attend(int poll, session *it, uint32_t events) {
    bool more;
    if (!it->ends && events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(it);
    do {
        more = serve_requests(it);
        flush(it);
    } while (more && it->out.used == 0);
    if (it->ends && it->out.used == 0)
        close_session(it);
    else
        wait_for(poll, it);
}

/* ---- the server ---- */

static int listen_at(const char *port) {
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (listener < 0) die("kv_server: socket");
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, size) != 0) die("kv_server: bind");
    if (listen(listener, 512) != 0) die("kv_server: listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("listening at port %d\n", ntohs(address.sin_port)); /* for 0 the system chose one */
    fflush(stdout);
    return listener;
}

/* A waiting connection that is not accepted makes epoll_wait return again and again. So while no
 * connection can be accepted (`full`), epoll does not watch the listener. After SHUTDOWN the
 * listener is closed, which refuses the waiting connections. */
static void mind_listener(int poll, int *listener, struct epoll_event *accepts) {
    uint32_t wanted = full ? 0 : EPOLLIN;
    if (*listener < 0) return;
    if (!running) {
        close(*listener); /* this also removes it from `poll` */
        *listener = -1;
    } else if (accepts->events != wanted) {
        accepts->events = wanted;
        if (epoll_ctl(poll, EPOLL_CTL_MOD, *listener, accepts) != 0) die("kv_server: epoll_ctl");
    }
}

static void serve(const char *port) {
    int listener = listen_at(port), poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[EVENTS], accepts = {.events = EPOLLIN};
    if (poll < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, listener, &accepts) != 0)
        die("kv_server: epoll");
    while (running || sessions_open > 0) {
        int count = epoll_wait(poll, events, EVENTS, do_slice());
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr)
                attend(poll, events[i].data.ptr, events[i].events);
            else if (running)
                open_session(poll, listener);
        }
        mind_listener(poll, &listener, &accepts);
    }
    close(poll);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: kv_server PORT [malloc]\n");
        return 2;
    }
    plain = argc > 2 && strcmp(argv[2], "malloc") == 0;
    if (!plain) {
        cache =
            need(sy_cache_create(&(sy_cache_config){.name = "session", .size = sizeof(session)}));
        entries = need(sy_heap_create(&(sy_heap_config){.name = "entries"}));
        buffers = need(sy_heap_create(&(sy_heap_config){.name = "buffers"}));
    }
    make_table();
    serve(argv[1]);
    drop_table();
    bool left = !plain && (sy_heap_destroy(buffers) || sy_cache_destroy(cache));
    return left || sessions_open ? 1 : 0;
}
