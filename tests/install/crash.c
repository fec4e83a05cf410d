/*
 * A program that loads the library LIBRARY with guards on, and of which a thread that has not used
 * it yet crashes within malloc. It has to end of SIGSEGV: what looks at the access for the library
 * must not call malloc, as a first use of thread-local storage may. Status 3: it did.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* A malloc that frees nothing, and crashes if an environment variable says so. */
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
    size_t whole = (size + 31) & ~(size_t)15; /* and a word before it */
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
        if (!take(20)) return 2; /* one of some has a guard, and with it comes the handler */
    pthread_t thread;
    if (pthread_create(&thread, NULL, crash, (void *)100) != 0) return 2;
    pthread_join(thread, NULL);
    return 0;
}
