/*
 * misuse.h: what the programs in this folder share. Each does one thing wrong and is ended for it;
 * its first comment is the report that it has to give on stderr then, line by line, with ADDRESS
 * for the address that it printed before, and words for what else differs from run to run: see
 * run.sh, which compares, and says what else such a comment may ask for.
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

/* The same pointer, as something that compilers know nothing about. */
static inline void *hidden(void *address) {
    __asm__ volatile("" : "+r"(address));
    return address;
}

/* Tells the address that will be misused, and gives it back, hidden. */
static inline void *told(void *address) {
    printf("%p\n", address);
    fflush(stdout);
    return hidden(address);
}

/* Writes where nothing is to be written; by itself, so that who looks at the stack sees no other.
 */
static inline void scribble(void *at, size_t bytes) {
    volatile char *bytes_there = hidden(at);
    for (size_t i = 0; i < bytes; i++) bytes_there[i] = 'B';
}

struct misuse_pointer {
    const volatile char *pointer;
} __attribute__((packed, may_alias));

/* Follows a pointer that lies where nothing is to be read. */
static inline void follow(void *at) {
    const volatile struct misuse_pointer *place = hidden(at);
    (void)*place->pointer;
}

/* Has another thread do something, and waits for its end. */
static inline void elsewhere(void *(*work)(void *), void *arg) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, arg) == 0) pthread_join(thread, NULL);
}

#endif
