/*
 * crash.c: a program that loads Slabyard while guard pages are on. Then a thread that has not used
 * Slabyard crashes within the program's malloc. The program has to end with SIGSEGV: Slabyard's
 * handler must not call malloc. (The first use of thread-local storage may call malloc.) If the
 * handler calls malloc, the status is 3.
 *
 * Usage: crash LIBRARY
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* A malloc that frees nothing, and crashes in a thread that has set `crashes`. */
static char memory[64 << 20];
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool crashes, inside;
static char *volatile nowhere;

void *malloc(size_t size) {
    if (inside) _exit(3);
    pthread_mutex_lock(&lock);
    inside = true;
    if (crashes) *nowhere = 1;
    size_t whole = (size + 31) & ~(size_t)15; /* with room for its size before it */
    char *object = used + whole <= sizeof memory ? memory + used + 16 : NULL;
    if (object) memcpy(object - 16, &size, sizeof size);
    if (object) used += whole;
    inside = false;
    pthread_mutex_unlock(&lock);
    return object;
}

void free(void *object) { (void)object; }

void *calloc(size_t count, size_t size) { return malloc(count * size); /* new memory is zero */ }

void *realloc(void *object, size_t size) {
    size_t before = 0;
    if (object) memcpy(&before, (char *)object - 16, sizeof before);
    void *moved = malloc(size);
    if (moved && object) memcpy(moved, object, before < size ? before : size);
    return moved;
}

static void *crash(void *arg) {
    crashes = true;
    return malloc((uintptr_t)arg);
}

int main(int argc, char **argv) {
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) return 1;
    void *(*take)(size_t) = (void *(*)(size_t))(uintptr_t)dlsym(library, "sy_malloc");
    for (int i = 0; i < 1000; i++)
        if (!take(20)) return 2; /* one in ten is guarded; the first one installs the handler */
    pthread_t thread;
    if (pthread_create(&thread, NULL, crash, (void *)100) != 0) return 2;
    pthread_join(thread, NULL);
    return 0;
}
