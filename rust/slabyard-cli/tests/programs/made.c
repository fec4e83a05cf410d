/* Makes two functions at run time that call others, and writes their names to the map for perf. The
 * argument says how they look: "plain", as CPython's trampolines, or "pointers". Without one they
 * have frame pointers, and the program waits. The first line that it prints is its number. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OBJECTS = 1000, APART = 64 };

void *kept[OBJECTS];
static int count;

/* sub $8, %rsp; call *%rdi; add $8, %rsp; ret */
static const unsigned char plain[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};
/* push %rbp; mov %rsp, %rbp; call *%rdi; nop; pop %rbp; ret */
static const unsigned char pointers[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x90, 0x5d, 0xc3};

typedef void (*made)(void (*)(void));
static made outer, inner;

__attribute__((noinline)) void keep(void) { kept[count++] = malloc(1000); }

__attribute__((noinline)) void call_inner(void) {
    inner(keep);
    __asm__ volatile("" ::: "memory"); /* so that it is no jump */
}

static made make(char *memory, const unsigned char *code, size_t bytes, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "a");
    fprintf(map, "%lx %zx %s\n", (unsigned long)memory, bytes, name);
    fclose(map);
    memcpy(memory, code, bytes);
    return (made)(void *)memory;
}

int main(int words, char **arguments) {
    int is_plain = words > 1 && strcmp(arguments[1], "plain") == 0;
    const unsigned char *code = is_plain ? plain : pointers;
    size_t bytes = is_plain ? sizeof plain : sizeof pointers;
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    outer = make(memory, code, bytes, "py::outer:/src/made.py");
    inner = make(memory + APART, code, bytes, "inner of made.js");
    mprotect(memory, 4096, PROT_READ | PROT_EXEC);
    while (count < OBJECTS) outer(call_inner);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    if (words == 1) getchar();
    return 0;
}
