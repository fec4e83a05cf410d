/*
 * test_scope_audit.c: scopes (slabyard/scope.h) while the option `audit` records all objects of the
 * heap. These do not lie in the scope, but what survives it is known just as well, with the stacks
 * that allocated it.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <slabyard/cache.h>
#include <slabyard/checks.h>
#include <slabyard/heap.h>
#include <slabyard/heaps.h>
#include <slabyard/options.h>
#include <slabyard/scope.h>

#include "debug/watch.h"
#include "support/child.h"
#include "support/services.h"

static sy_scope *make_scope(void) {
    sy_scope *scope = sy_scope_create("audited");
    must(scope != NULL);
    return scope;
}

static __attribute__((noinline)) void *in_scope(sy_scope *scope, size_t size) {
    must(sy_scope_enter(scope) == 0);
    void *object = sy_malloc(size);
    must(object != NULL && sy_scope_leave(scope) == 0);
    return object;
}

static size_t live(sy_scope *scope) { return sy_scope_live(scope, NULL); }

static void what_survives_is_counted_and_listed(void **state) {
    (void)state;
    sy_scope *one = make_scope(), *other = make_scope();
    size_t bytes = 1;
    void *objects[] = {in_scope(one, 50), in_scope(one, 5000), in_scope(other, 50), sy_malloc(50)};
    must(sy_scope_live(one, &bytes) == 2 && bytes == 64 + 5120);
    must(sy_scope_live(other, &bytes) == 1 && bytes == 64);
    void *found[3] = {0};
    must(sy_scope_list(one, found, 3) == 2 && !found[2]);
    must((found[0] == objects[0] && found[1] == objects[1]) ||
         (found[0] == objects[1] && found[1] == objects[0]));
    must(sy_scope_list(one, found, 1) == 1);
    for (size_t i = 0; i < 4; i++) sy_free(objects[i]);
    must(sy_scope_live(one, &bytes) == 0 && bytes == 0 && live(other) == 0);
    must(sy_scope_destroy(one) == 0 && sy_scope_destroy(other) == 0);
}

static void the_innermost_scope_has_an_object(void **state) {
    (void)state;
    sy_scope *outer = make_scope(), *inner = make_scope();
    must(sy_scope_enter(outer) == 0);
    void *objects[3] = {sy_malloc(100)};
    objects[1] = in_scope(inner, 100);
    must(sy_scope_enter(NULL) == 0);
    objects[2] = sy_malloc(100);
    must(sy_scope_leave(NULL) == 0);
    sy_free(sy_malloc(100));
    must(sy_scope_leave(outer) == 0);
    must(live(outer) == 1 && live(inner) == 1);
    for (size_t i = 0; i < 3; i++) sy_free(objects[i]);
    must(live(outer) == 0 && live(inner) == 0);
    must(sy_scope_destroy(outer) == 0 && sy_scope_destroy(inner) == 0);
}

static void objects_of_caches_do_not_count(void **state) {
    (void)state;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 64, .flags = SY_AUDIT});
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "other", .flags = SY_AUDIT});
    sy_scope *scope = make_scope();
    must(cache != NULL && heap != NULL && sy_scope_enter(scope) == 0);
    void *object = sy_cache_alloc(cache), *of_heap = sy_heap_alloc(heap, 64);
    must(object != NULL && of_heap != NULL && sy_scope_leave(scope) == 0);
    must(live(scope) == 0 && sy_scope_report(scope) == 0);
    sy_cache_free(cache, object);
    sy_heap_free(heap, of_heap);
    must(sy_cache_destroy(cache) == 0 && sy_heap_destroy(heap) == 0);
    must(sy_scope_destroy(scope) == 0);
}

/* ---- threads ---- */

enum { THREADS = 4, EACH = 500 };
static void *of_threads[THREADS][EACH];

typedef struct job {
    sy_scope *scope;
    void **objects;
} job;

static void *allocate_some(void *arg) {
    const job *mine = arg;
    must(sy_scope_enter(mine->scope) == 0);
    for (size_t i = 0; i < EACH; i++) must((mine->objects[i] = sy_malloc(16 + i)) != NULL);
    return NULL; /* a thread that ends leaves its scopes */
}

static void threads_share_a_scope(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    pthread_t threads[THREADS];
    job jobs[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        jobs[i] = (job){scope, of_threads[i]};
        must(pthread_create(&threads[i], NULL, allocate_some, &jobs[i]) == 0);
    }
    void *some[10];
    for (size_t i = 0; i < 50; i++) /* meanwhile */
        must(live(scope) <= (size_t)THREADS * EACH && sy_scope_list(scope, some, 10) <= 10);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    must(live(scope) == (size_t)THREADS * EACH);
    for (size_t i = 0; i < THREADS; i++)
        for (size_t j = i; j < EACH; j++) sy_free(of_threads[i][j]);
    must(live(scope) == 0 + 1 + 2 + 3);
    for (size_t i = 0; i < THREADS; i++)
        for (size_t j = 0; j < i; j++) sy_free(of_threads[i][j]);
    must(live(scope) == 0 && sy_scope_destroy(scope) == 0);
}

/* ---- the report ---- */

static volatile size_t sessions = 3; /* not known to the compiler: there is one call */

static __attribute__((noinline)) void forget_sessions(sy_scope *scope, void **objects) {
    size_t count = sessions;
    for (size_t i = 0; i < count; i++) objects[i] = in_scope(scope, 40 + 10 * i);
}

static size_t report(sy_scope *scope, char *text, size_t size) {
    int ends[2], stderr_before = dup(2);
    must(pipe(ends) == 0 && dup2(ends[1], 2) == 2);
    size_t count = sy_scope_report(scope);
    dup2(stderr_before, 2);
    close(ends[1]);
    close(stderr_before);
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], text + length, size - 1 - length)) > 0) length += (size_t)got;
    text[length] = 0;
    close(ends[0]);
    return count;
}

static void a_report_names_who_allocated(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    static char text[16384];
    sy_scope *scope = make_scope();
    void *objects[4];
    forget_sessions(scope, objects);
    objects[3] = in_scope(scope, 1000);
    void *outside = sy_malloc(777);
    must(report(scope, text, sizeof text) == 4);
    const char *head = "slabyard: scope \"audited\": 4 objects survive (2 KiB): 1 of 48 bytes, "
                       "2 of 64 bytes, 1 of 1024 bytes\n";
    must(strncmp(text, head, strlen(head)) == 0);
    const char *big = strstr(text, "\n  1 object: 1000 bytes, allocated ");
    const char *small = strstr(text, "\n  3 objects of 40 to 60 bytes: 150 bytes, allocated ");
    must(big != NULL && small != NULL && big < small); /* the most bytes first */
    const char *name = strstr(text, "forget_sessions");
    must(name != NULL && name > small);
    must(!strstr(text, "leaked") && !strstr(text, "777 bytes"));
    sy_free(outside);
    for (size_t i = 0; i < 4; i++) sy_free(objects[i]);
    must(report(scope, text, sizeof text) == 0 && !text[0]);
    must(sy_scope_destroy(scope) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_survives_is_counted_and_listed),
        cmocka_unit_test(the_innermost_scope_has_an_object),
        cmocka_unit_test(objects_of_caches_do_not_count),
        cmocka_unit_test(threads_share_a_scope),
        cmocka_unit_test(a_report_names_who_allocated),
    };
    if (sy_set_options("audit") != 0) abort(); /* before the first object */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
