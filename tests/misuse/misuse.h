/*
 * misuse.h: functions that the programs in this folder share. Each program makes one mistake, for
 * which Slabyard ends it. The first comment of the program is the report that must then appear on
 * stderr, line by line. ADDRESS stands for the address that the program printed before. Other words
 * stand for parts that differ from run to run; the first comment of run.sh lists them. run.sh
 * compares the report on stderr with the comment.
 */
#ifndef SLABYARD_TESTS_MISUSE_H
#define SLABYARD_TESTS_MISUSE_H

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <slabyard/slabyard.h>

static inline sy_cache *cache_of(const char *name, size_t size, unsigned flags) {
    return sy_cache_create(&(sy_cache_config){.name = name, .size = size, .flags = flags});
}

static inline sy_pool *pool_of(const char *name, size_t size, unsigned flags) {
    return sy_pool_create(&(sy_pool_config){.name = name, .size = size, .flags = flags});
}

static inline sy_heap *heap_of(const char *name, unsigned flags) {
    return sy_heap_create(&(sy_heap_config){.name = name, .flags = flags});
}

/* Returns the same pointer. The compiler cannot know that it is the same. */
static inline void *hidden(void *address) {
    __asm__ volatile("" : "+r"(address));
    return address;
}

/* Prints the address that will be misused, and returns it, hidden from the compiler. */
static inline void *told(void *address) {
    printf("%p\n", address);
    fflush(stdout);
    return hidden(address);
}

/* Writes to memory that the program must not write to. It is a separate function so that the stack
 * shows it. */
static inline void scribble(void *at, size_t bytes) {
    volatile char *bytes_there = hidden(at);
    for (size_t i = 0; i < bytes; i++) bytes_there[i] = 'B';
}

struct misuse_pointer {
    const volatile char *pointer;
} __attribute__((packed, may_alias));

/* Reads a pointer from memory that the program must not read, and uses this pointer. */
static inline void follow(void *at) {
    const volatile struct misuse_pointer *place = hidden(at);
    (void)*place->pointer;
}

/* Calls `work` in another thread, and waits for its end. */
static inline void elsewhere(void *(*work)(void *), void *arg) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, arg) == 0) pthread_join(thread, NULL);
}

#endif
