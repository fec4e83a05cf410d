/*
 * misuse.h: what the programs in this folder share. Each does one thing wrong and is ended for it;
 * its first comment is what it has to say on stderr then, with ADDRESS for the address that it
 * printed before. run.sh compares.
 */
#ifndef SLABYARD_TESTS_MISUSE_H
#define SLABYARD_TESTS_MISUSE_H

#include <stdio.h>

#include <slabyard/slabyard.h>

static inline sy_cache *cache_of(const char *name, size_t size, unsigned flags) {
    return sy_cache_create(&(sy_cache_config){.name = name, .size = size, .flags = flags});
}

/* Tells the address that will be misused, and gives it back: as something that compilers know
 * nothing about. */
static inline void *told(void *address) {
    printf("%p\n", address);
    fflush(stdout);
    __asm__ volatile("" : "+r"(address));
    return address;
}

#endif
