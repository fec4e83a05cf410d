/*
 * 5_production.c: the server of docs/tutorial.md as it would run for months: it returns memory
 * while it waits, and tells its figures.
 *
 *     cc -g -DSY_STATIC 5_production.c $(pkg-config --cflags --libs slabyard-static) && ./a.out
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

enum { SESSIONS_MAX = 1000 };

struct session {
    unsigned long id;
    char user[48];
};

static sy_cache *cache;                            /* of sessions */
static struct session *sessions[SESSIONS_MAX + 1]; /* by number; NULL: closed */
static unsigned long last_id;

static struct session *open_session(const char *user) {
    if (last_id == SESSIONS_MAX) return NULL;
    struct session *session = sy_cache_alloc(cache);
    if (!session) return NULL;
    session->id = ++last_id;
    snprintf(session->user, sizeof session->user, "%s", user);
    sessions[session->id] = session;
    return session;
}

static int close_session(unsigned long id) {
    if (id > SESSIONS_MAX || !sessions[id]) return -1;
    sy_cache_free(cache, sessions[id]);
    sessions[id] = NULL;
    return 0;
}

/* Answers a line: "open USER" with the number of a new session, "close NUMBER" with "ok". */
static void answer(const char *line, char *reply, size_t size) {
    char user[48];
    unsigned long id;
    if (sscanf(line, "open %47s", user) == 1) {
        struct session *session = open_session(user);
        if (session)
            snprintf(reply, size, "%lu", session->id);
        else
            snprintf(reply, size, "refused: %s", sy_refusal_text(sy_last_refusal()));
    } else if (sscanf(line, "close %lu", &id) == 1) {
        snprintf(reply, size, close_session(id) == 0 ? "ok" : "no such session");
    } else if (strncmp(line, "stats", 5) == 0) {
        sy_cache_stats stats;
        sy_cache_get_stats(cache, &stats);
        snprintf(reply, size, "in_use %zu, mapped %zu KiB, limits_hit %lu", stats.in_use,
                 stats.mapped >> 10, (unsigned long)stats.limits_hit);
    } else {
        snprintf(reply, size, "open USER, close NUMBER or stats");
    }
}

static void *serve(void *client) {
    char line[80], reply[80];
    while (fgets(line, sizeof line, client)) {
        answer(line, reply, sizeof reply);
        dprintf(fileno(client), "%s\n", reply);
        sy_thread_idle(); /* the next line may take hours */
    }
    fclose(client);
    return NULL;
}

/* The client's part: sends a line, and reads the answer into `reply`. */
static int ask(int server, const char *line, char *reply, size_t size) {
    size_t length = 0;
    dprintf(server, "%s\n", line);
    while (length + 1 < size && read(server, reply + length, 1) == 1 && reply[length] != '\n')
        length++;
    reply[length] = '\0';
    return printf("%s: %s\n", line, reply);
}

int main(void) {
    char line[100], reply[80];
    int pair[2];
    pthread_t server;
    cache = sy_cache_create(&(sy_cache_config){
        .name = "session", .size = sizeof(struct session), .limit = 2, .flags = SY_LIMIT_EXACT});
    if (!cache || sy_maintenance_start() != 0) return 1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
    if (pthread_create(&server, NULL, serve, fdopen(pair[1], "r")) != 0) return 1;
    ask(pair[0], "open alice", reply, sizeof reply);
    ask(pair[0], "open bob", reply, sizeof reply);
    ask(pair[0], "open carol", line, sizeof line);
    if (strncmp(line, "refused: ", 9) != 0) return 1;
    ask(pair[0], "close 1", reply, sizeof reply);
    ask(pair[0], "open carol", reply, sizeof reply);
    ask(pair[0], "stats", line, sizeof line);
    if (strncmp(line, "in_use 2, ", 10) != 0) return 1;
    close(pair[0]);
    pthread_join(server, NULL);
    if (strcmp(reply, "3") != 0) return 1;
    sy_cache_destroy_all(cache); /* with the two sessions that are open */
    return 0;
}
