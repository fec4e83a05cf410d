/*
 * users.c: the C library's functions that change the user or the groups of the process. To Linux
 * these belong to a thread, so the C library makes each of its threads change them. It does not
 * know the library's background threads if these are hidden (os.h). Here they end before such a
 * change. They start again later, from a thread that has the new user.
 *
 * Only in the shared library: in a program that is linked statically there is no next function of
 * the same name. There the background threads are not hidden.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

#include "os/os.h"
#include "reclaim/reclaim.h"
#include "shim/shim.h"

#define NAME __attribute__((visibility("default")))

bool sy_os_may_hide_threads(void) { return true; }

/* In a child of vfork there is one thread, which uses the memory of its parent; the parent's
 * threads go on. */
typedef struct pause {
    bool own, ran;
} pause_state;

static pause_state end_threads(void) {
    bool own = sy_os_is_own_thread();
    return (pause_state){own, own && sy_maintenance_pause()};
}

static void go_on(pause_state paused) {
    if (paused.own) sy_maintenance_resume(paused.ran);
}

static int no_next(void) {
    errno = ENOSYS;
    return -1;
}

/* Defines the function `name`, which calls the next one of this name with the arguments.
 * NOLINTBEGIN(bugprone-macro-parentheses): these are lists in parentheses. */
#define CHANGE(name, parameters, arguments)                                         \
    NAME int name parameters {                                                      \
        static _Atomic(int(*) parameters) known;                                    \
        int(*next) parameters = atomic_load_explicit(&known, memory_order_relaxed); \
        if (!next) {                                                                \
            next = (int(*) parameters)sy_shim_next(#name);                          \
            atomic_store_explicit(&known, next, memory_order_relaxed);              \
        }                                                                           \
        if (!next) return no_next();                                                \
        pause_state paused = end_threads();                                         \
        int result = next arguments;                                                \
        go_on(paused);                                                              \
        return result;                                                              \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

CHANGE(setuid, (uid_t user), (user))
CHANGE(setgid, (gid_t group), (group))
CHANGE(seteuid, (uid_t user), (user))
CHANGE(setegid, (gid_t group), (group))
CHANGE(setreuid, (uid_t real, uid_t effective), (real, effective))
CHANGE(setregid, (gid_t real, gid_t effective), (real, effective))
CHANGE(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
CHANGE(setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))
CHANGE(setgroups, (size_t count, const gid_t *groups), (count, groups))
CHANGE(initgroups, (const char *user, gid_t group), (user, group))
