/*
 * scopes.c: tests scopes (slabyard/scope.h) in a program that is linked with the drop-in malloc:
 * what malloc, its relatives and functions of the C library allocate lies in the scope.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>

#include <slabyard/scope.h>

#include "malloc/malloc.h"

/* What the C library allocates for a stream, with its buffer, and frees with it. */
static void use_stream(void) {
    FILE *stream = fopen("/dev/null", "w");
    must(stream != NULL && fputs("text", stream) >= 0);
    must(fclose(stream) == 0);
}

static void *free_in_thread(void *block) {
    free(block);
    return NULL;
}

int main(void) {
    must_be_slabyard();
    sy_scope *scope = sy_scope_create("request");
    must(scope != NULL);
    free(opaque(malloc(100)));
    must(sy_scope_enter(scope) == 0);
    void *blocks[] = {opaque(malloc(8)),          opaque(calloc(10, 100)),
                      opaque(strdup("in scope")), opaque(aligned_alloc(256, 512)),
                      opaque(realloc(NULL, 50)),  opaque(memalign(4096, 100))};
    use_stream();
    char *grown = opaque(malloc(20));
    strcpy(grown, "grown in place of");
    grown = opaque(realloc(grown, 5000));
    must(sy_scope_leave(scope) == 0);
    void *outside = opaque(malloc(64));

    size_t count = sizeof blocks / sizeof *blocks, bytes;
    must(sy_scope_live(scope, &bytes) == count + 1 && bytes >= 5000 + 4096 + 1000);
    must(strcmp(grown, "grown in place of") == 0 && strcmp(blocks[2], "in scope") == 0);
    must((uintptr_t)blocks[3] % 256 == 0 && (uintptr_t)blocks[5] % 4096 == 0);
    pthread_t thread;
    must(pthread_create(&thread, NULL, free_in_thread, grown) == 0);
    must(pthread_join(thread, NULL) == 0);
    for (size_t i = 0; i < count; i++) free(blocks[i]);
    free(outside);
    must(sy_scope_live(scope, NULL) == 0 && sy_scope_report(scope) == 0);
    return sy_scope_destroy(scope);
}
