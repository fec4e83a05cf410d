/* While background threads work, the descriptors are the program's: open() returns the lowest free
 * number, a pipe that is closed has ended, and all descriptors may be closed. */
#include <fcntl.h>
#include <pthread.h>
#include <time.h>

#include "hosts/hosts.h"

enum { BLOCKS = 8000, TURNS = 100000 };

static void *blocks[BLOCKS];

/* Some memory is free, and some is used again, so that background threads have work. */
static void change_memory(unsigned turn) {
    for (int i = 0; i < BLOCKS; i += 2) {
        free(blocks[i]);
        memset(blocks[i] = malloc(turn % 2 ? 4000 : 100), 1, 100);
    }
}

static void open_gives_the_lowest_number(void) {
    for (unsigned turn = 0; turn < TURNS; turn++) {
        close(STDIN_FILENO);
        CHECK(open("/dev/null", O_RDONLY) == STDIN_FILENO);
        if (turn % 10000 == 0) change_memory(turn / 10000);
    }
}

static void a_closed_pipe_has_ended(void) {
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    hungry(20);
    close(ends[1]);
    CHECK(read(ends[0], &byte, 1) == 0);
    close(ends[0]);
}

static void all_may_be_closed(void) {
    for (int fd = 0; fd < 1024; fd++) close(fd);
    change_memory(0);
    hungry(20);
    for (int fd = 0; fd < 20; fd++) CHECK(open("/dev/null", O_RDWR) == fd);
}

int main(void) {
    for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(4000), 1, 4000);
    hungry(20);
    a_closed_pipe_has_ended();
    open_gives_the_lowest_number();
    all_may_be_closed();
    return 0;
}
