/* Prints whose malloc it uses, allocates, and ends as its arguments say: `exit STATUS` or
 * `signal NUMBER`. With OWN_MALLOC it defines its own malloc; with INSIDE it contains this text, as
 * if an allocator were linked into it; with WAITS it takes a while. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef OWN_MALLOC
void *malloc(size_t size) {
    static char memory[4 << 20];
    static size_t used;
    char *block = memory + used;
    used += (size + 15) / 16 * 16;
    return used <= sizeof memory ? block : NULL;
}
void free(void *block) { (void)block; }
#endif

#ifdef INSIDE
const char *volatile inside = INSIDE;
#endif

int main(int count, char **words) {
    void *slabyard = dlsym(RTLD_DEFAULT, "sy_usable_size");
    char *block = malloc(1 << 20);
    memset(block, 1, 1 << 20);
    printf("%s\n", slabyard ? "slabyard" : "glibc");
    fflush(stdout);
    free(block);
#ifdef WAITS
    usleep(300000);
#endif
    if (count > 2 && !strcmp(words[1], "signal")) raise(atoi(words[2]));
    return count > 2 ? atoi(words[2]) : 0;
}
