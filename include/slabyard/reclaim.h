/**
 * slabyard/reclaim.h: return of free memory to the operating system: all of it on request, some of
 * it within a time budget, or automatically if it was unused for a while. Included by
 * slabyard/cache.h.
 *
 *     sy_trim();                            everything that can go, however long it takes
 *     sy_trim_some(16 << 20, 200000);       16 MiB, or as much as 0.2 ms are enough for
 *     sy_set_decay(250);                    the default: memory unused for 0.5 to 1 s goes back
 *     sy_set_slack(50);                     holds at most 1.5 times what was needed lately
 *     sy_maintenance_start();               by a background thread rather than on slow paths
 *
 * Automatic return: now and then a thread that is on a slow path does a step of the work, which
 * takes some tens of microseconds. The steps release, in this order, free objects in unused
 * magazines, empty slabs, unused pages of slabs, and units of chunks. So a program whose threads
 * take slow paths stays small. In a program that does nothing, or that frees and allocates fewer
 * objects in turn than a magazine holds, nothing happens, unless the maintenance thread runs (a
 * background thread, see sy_maintenance_start). When a cache grows, other caches release the
 * free objects in their unused magazines, so that the growing cache can use the memory.
 *
 * Some steps call functions of yours: in caches with a destructor or `relocate`, in caches over
 * your own memory, and in quantum caches of arenas. Slow paths leave these steps to the background
 * thread and to trims, because a thread on a slow path may hold locks of your program.
 *
 * The free objects in the magazines of a running thread are released at its next slow path. A
 * thread that is going to wait for long should call sy_thread_idle first. In the drop-in malloc the
 * background thread takes the objects of a thread that waits, but for one of each size.
 *
 * Memory that sy_cache_reserve has reserved is released by trims alone (sy_trim, sy_trim_some,
 * sy_cache_trim, sy_heap_trim), never automatically.
 *
 * Threads: any thread, except where a comment says otherwise.
 */
#ifndef SLABYARD_RECLAIM_H
#define SLABYARD_RECLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

/**
 * Gives the free memory of all caches, of the heap and of the library itself back to the operating
 * system, as sy_cache_trim does for one cache.
 *
 * Returns the number of bytes.
 */
SY_API size_t sy_trim(void);

/**
 * Gives free memory back to the operating system, as sy_trim, until `bytes` have been returned or
 * `budget_ns` nanoseconds have passed. It stops at the end of a step, and a step takes some tens of
 * microseconds. Each call continues where the last one stopped.
 *
 * Returns the number of bytes. If these are fewer than asked for and the time was not used up, the
 * only free memory left is in magazines of running threads, in quarantines (slabyard/checks.h) and
 * in words of handles (slabyard/handle.h). sy_trim returns the latter two.
 */
SY_API size_t sy_trim_some(size_t bytes, uint64_t budget_ns);

/** Sets the decay time. Free memory that is not used is returned within two to four times
 * `milliseconds`, because it moves in steps from magazines to slabs to the operating system. If the
 * program soon uses much of this memory again, it is kept up to four times as long. While the
 * program's memory falls, it is returned up to four times as soon. 0: never. The default is 250. */
SY_API void sy_set_decay(uint64_t milliseconds);

/**
 * Tells the decay time, as it was set by sy_set_decay or by the option `decay`.
 *
 * Returns milliseconds; 0: free memory is never returned automatically.
 *
 *     uint64_t before = sy_get_decay();
 *     sy_set_decay(0);   keep all memory in this phase
 *     ...
 *     sy_set_decay(before);
 */
SY_API uint64_t sy_get_decay(void);

/**
 * Bounds the memory that Slabyard holds, live and free. The bound is the most that live objects
 * needed at a moment of the last one to two seconds, plus a reserve: `percent` per cent of it, and
 * at least 4 MiB. Free memory beyond the bound goes back to the operating system on the slow path
 * that notices it. Pages that hold a live object cannot go, so where such objects are scattered
 * more may be held. Free objects in magazines of threads count as live. A low bound costs page
 * faults: memory is returned that would have been used again. 0: no bound, the default. A program
 * whose sizes change:
 *
 *     sy_set_slack(25);
 */
SY_API void sy_set_slack(size_t percent);

/**
 * Tells the bound that was set by sy_set_slack or by the option `slack`.
 *
 * Returns per cent; 0: no bound.
 *
 *     if (sy_get_slack() == 0) sy_set_slack(50);   unless the user has set one
 */
SY_API size_t sy_get_slack(void);

/**
 * Moves an object out of a slab that should become empty into the fullest slab, for a program that
 * can change all pointers to the object: copies its bytes and frees the old object. A program that
 * calls this for all of its objects two or three times has hardly more slabs than its objects fill.
 * Free objects in the depot count as in use: passes and trims flush them (sy_trim, sy_cache_trim).
 *
 * These objects stay: objects of caches with a constructor, handles, checks or SY_ZERO, objects in
 * epochs and scopes, objects that a check or a tool watches (SLABYARD=check), and large objects.
 * The choice is a guess, like that of sy_should_move.
 *
 * `object` is a live object, and no other thread uses it during the call. Takes some 60 to 120 ns
 * for a small object, with the cache's lock held, and no slab from the system; pages that a trim
 * has discarded come back, at some 400 ns for 512 bytes. Takes 5 to 10 ns for an object that stays.
 * A slab that becomes empty may be given back to the system at once.
 *
 * Returns the object's new address; NULL: it stays where it is, or it is NULL. errno is kept.
 *
 *     extern struct entry { long key, value; } *entries[1000];
 *     for (size_t i = 0; i < 1000; i++) {
 *         struct entry *moved = sy_try_move(entries[i]);
 *         if (moved) entries[i] = moved;
 *     }
 */
SY_API void *sy_try_move(void *object);

/**
 * Tells a program that moves its objects itself which of them to move: whether this one lies in a
 * slab that should become empty. To move an object, allocate another one, copy it, change all
 * pointers to it, and free the old one; or call sy_try_move. Objects that are allocated anew lie
 * in the fullest slabs, but an object that this thread has freed is allocated again first. So move
 * up to some 100 objects at a time: allocate for all of them, free all, and call sy_thread_flush.
 *
 * The answer is a guess from counts that other threads may be changing. It costs some 5 ns, takes
 * no lock, and changes nothing. For an address in a slab that is no object of yours, the answer is
 * that for the slab. Objects behind handles can be moved by the library itself (SY_MOVABLE).
 *
 * Returns false for an object that should stay, and for any address that lies in no slab of a cache
 * or size class: large objects, pools.
 *
 *     extern struct entry { long key, value; } *entries[1000], *old[100];
 *     size_t count = 0;
 *     for (size_t i = 0; i < 1000 && count < 100; i++) {
 *         struct entry *moved = NULL;
 *         if (sy_should_move(entries[i])) moved = sy_malloc(sizeof *moved);
 *         if (!moved) continue;
 *         *moved = *entries[i];
 *         old[count++] = entries[i];
 *         entries[i] = moved;
 *     }
 *     while (count > 0) sy_free(old[--count]);
 *     sy_thread_flush();
 */
SY_API bool sy_should_move(const void *object);

/**
 * Starts the maintenance thread, a background thread that does the steps in place of the slow
 * paths, once every decay time. A second thread reads the memory limit and the memory in use, which
 * the system tells in files. It has a descriptor table of its own, so your program's descriptors
 * keep their numbers. Both block all signals and use no real-time scheduling. They end when your
 * program's threads have ended, and the process then ends too. In the child of a fork they do not
 * run until the child starts them.
 *
 * Returns 0, also if it is running already; or -1 with errno.
 *
 * Errors:
 *     EAGAIN     the system gives no thread
 *     ENOMEM     no memory
 *     ENOTSUP    the platform has no background threads (sy_platform_has)
 *     EPERM      the process is in a sandbox (sy_enter_sandbox), or another thread is in a call
 *                that needs a process with one thread
 */
SY_API int sy_maintenance_start(void);

/** Stops the background thread and waits until it has done its last step (the thread itself may end
 * a moment later). With the option `maintenance=auto`, it does not start again by itself. Do not
 * call it in a callback of Slabyard or while a thread ends. If a callback calls it on the
 * background thread itself, it does not wait. */
SY_API void sy_maintenance_stop(void);

/**
 * Prepares for a sandbox: call it before the process forbids itself system calls (seccomp). It
 * reads the files of the system once more and ends the background threads. From then on, the
 * library asks the system for nothing but memory (mmap, munmap, mremap, mprotect, madvise, and
 * mlock for locked memory), the time, random numbers (getrandom), and to wait and wake (futex); a
 * report of misuse is written without file names and lines. There is no way back. The drop-in
 * malloc calls it for programs that set a filter with the C library's prctl or syscall. A second
 * call does nothing. An example:
 *
 *     sy_enter_sandbox();
 *     // prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
 */
SY_API void sy_enter_sandbox(void);

SY_END_DECLS

#endif
