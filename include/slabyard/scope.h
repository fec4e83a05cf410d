/**
 * slabyard/scope.h: what a thread allocates from the heap between two calls, in memory of its own:
 * that of a request, a session, a query, a plug-in.
 *
 * A scope is a place for objects of sy_malloc and its family, and under the drop-in malloc for
 * those of malloc, new and every library that uses them. Nothing else lies there. So when its
 * objects are freed, its memory is free as a whole, however many objects of other scopes survive;
 * and what was not freed when the scope ends is known.
 *
 *     sy_scope *request = sy_scope_create("request");
 *     sy_scope_enter(request);
 *     char *text = sy_malloc(100);               all that the thread allocates lies in the scope
 *     sy_scope_leave(request);
 *     sy_scope_report(request);                  what it has not freed, on stderr
 *     sy_scope_destroy(request);
 *
 * A scope frees nothing. Objects are freed as ever, by any thread, in any scope, before the scope
 * ends or afterwards. There may be any number of scopes, and any number of threads may be in one at
 * a time. Scopes nest: a thread allocates from the innermost one.
 *
 * Objects of more than 8 KiB lie where they always do, and so do samples (the options `sample` and
 * `profile`). If the option `audit`, `check` or `guard` is on, all objects do. With audit, records
 * say to which scope an object belongs, and sy_scope_live, sy_scope_list and sy_scope_report find it
 * by a walk of all records: objects of up to 128 KiB, that no thread has freed.
 *
 * Costs: the fast paths are the same, but more operations take the slow path: the first allocations
 * of each size after sy_scope_enter, and a free, in a scope, of an object that lies in none. To
 * enter and to leave takes some tens of nanoseconds each. A scope takes 4 KiB or more.
 *
 * Threads: any thread, except where a comment says otherwise. A thread that ends leaves its scopes.
 * In the child of a fork the other threads are in no scope.
 */
#ifndef SLABYARD_SCOPE_H
#define SLABYARD_SCOPE_H

#include <slabyard/base.h>
#include <stddef.h>

SY_BEGIN_DECLS

/** Sizes of scopes. */
enum {
    SY_SCOPE_NAME_MAX = 31, /* bytes of the name that are kept */
    SY_SCOPE_DEPTH_MAX = 32 /* scopes that a thread can be in at a time */
};

/** A scope. Its content is private. */
typedef struct sy_scope sy_scope;

/**
 * Creates a scope. The caller owns it until sy_scope_destroy. `name` is copied; NULL: "scope".
 *
 * Returns the scope, or NULL with errno.
 *
 * Errors:
 *     ENOMEM    no memory
 */
SY_API sy_scope *sy_scope_create(const char *name);

/**
 * From now on the calling thread allocates in the scope, until the matching sy_scope_leave. With
 * NULL it allocates in no scope, as outside of all.
 *
 * Returns 0, or -1 with errno: then the thread is where it was.
 *
 * Errors:
 *     EAGAIN    the thread is in SY_SCOPE_DEPTH_MAX scopes already
 *     EBUSY     the call is made in a function of yours that Slabyard calls: a constructor, a
 *               destructor, a handler
 *     ENOMEM    no memory
 */
SY_API int sy_scope_enter(sy_scope *scope);

/**
 * Leaves the innermost scope of the calling thread. Then the thread allocates in the one around it,
 * or in none.
 *
 * Returns 0, or -1 with errno and nothing changed.
 *
 * Errors:
 *     EBUSY     as for sy_scope_enter
 *     EINVAL    `scope` is not the innermost one
 */
SY_API int sy_scope_leave(sy_scope *scope);

/**
 * Finds the scope in which the calling thread allocates.
 *
 * Returns the innermost scope of the calling thread, or NULL.
 */
SY_API sy_scope *sy_scope_current(void);

/**
 * Ends a scope. Its objects stay, and are freed as ever; the free memory between them serves all
 * sizes, and their memory goes back with the last of them. NULL is allowed and does nothing. No
 * other thread may use the scope meanwhile or afterwards.
 *
 * Returns 0, or -1 with errno and nothing changed.
 *
 * Errors:
 *     EBUSY     a thread is in the scope
 */
SY_API int sy_scope_destroy(sy_scope *scope);

/**
 * Counts what lives in the scope, and stores its bytes in *bytes, unless that is NULL. Objects that
 * other threads have freed count until those threads have put them back (sy_thread_flush), and so
 * do up to 64 of each size that threads in the scope have ready. In the child of a fork that came
 * while another thread changed scopes, objects of before count for no scope.
 *
 * Returns the number of objects; 0 for NULL.
 */
SY_API size_t sy_scope_live(sy_scope *scope, size_t *bytes);

/**
 * Writes the addresses of up to `most` objects that live in the scope to `objects`, as
 * sy_scope_live counts.
 *
 * Returns how many were written; 0 for NULL.
 *
 * To free what a plug-in has forgotten, when nothing refers to it any more, no thread is in the
 * scope, and the threads that have freed its objects have called sy_thread_flush or ended. Else
 * the list has objects that are free already.
 *
 *     void *forgotten[100];
 *     size_t count = sy_scope_list(plugin, forgotten, 100);
 *     for (size_t i = 0; i < count; i++) sy_free(forgotten[i]);
 */
SY_API size_t sy_scope_list(sy_scope *scope, void **objects, size_t most);

/**
 * Writes to stderr what lives in the scope, by size, if anything does:
 *
 *     slabyard: scope "request": 3 objects survive (1 KiB): 2 of 64 bytes, 1 of 1024 bytes
 *
 * With the option `audit`, also which code allocated them, by stack.
 *
 * Returns the number of objects, as sy_scope_live; 0 for NULL.
 */
SY_API size_t sy_scope_report(sy_scope *scope);

SY_END_DECLS

#endif
