/*
 * host_ignored_advice.c: a sandbox in which madvise succeeds and does nothing, as in some emulators
 * and under filters of system calls. Memory from calloc is zero all the same.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "hosts.h"

enum { SMALL = 3000, ROUNDS = 160 };

static void ignore_advice(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        exit(SKIPPED);
}

static unsigned char *take_zeros(size_t bytes) {
    unsigned char *block = calloc(1, bytes);
    CHECK(block != NULL);
    for (size_t i = 0; i < bytes; i += 64) CHECK(block[i] == 0);
    memset(block, 255, bytes);
    return block;
}

int main(int count, char **arguments) {
    static unsigned char *small[SMALL];
    if (count == 1) { /* the filter holds from before the start of the program on */
        ignore_advice();
        execl("/proc/self/exe", arguments[0], "filtered", (char *)NULL);
        return 1;
    }
    for (size_t round = 0; round < ROUNDS; round++) {
        free(take_zeros((round % 7 + 1) * 3000000 + round * 777));
        for (size_t i = 0; i < SMALL; i++) small[i] = take_zeros(2000 + i);
        for (size_t i = 0; i < SMALL; i++) free(small[i]);
        if (round % 20 == 19) malloc_trim(0);
    }
    return 0;
}
