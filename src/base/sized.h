/*
 * sized.h: filling a struct for a caller that tells how large the struct is in its headers, such as
 * sy_cache_stats for sy_cache_get_stats_sized. Such structs grow at their ends from version to
 * version. The headers pass sizeof, so a program gets as many bytes as it was compiled for:
 *
 *     caller's struct   | first version | later fields |           older: this many bytes
 *     this library's    | first version | later fields | newer |
 *     caller's struct   | first version | later fields | newer | 0 |     newer: zeros behind
 *
 * Below: nothing. May be called: by functions of the public interface, without locks.
 */
#ifndef SY_BASE_SIZED_H
#define SY_BASE_SIZED_H

#include <stddef.h>

enum { SY_SIZED_MAX = 512 }; /* bytes; the structs are smaller, and lie on the stack */

/* A struct that can grow: the bytes of its first version and of this one, and what fills it. */
typedef struct sy_sized {
    size_t first, bytes;
    void (*fill)(const void *about, void *to);
} sy_sized;

/* The bytes of a struct up to and with a field. */
#define SY_SIZED_TO(type, field) (offsetof(type, field) + sizeof(((type *)NULL)->field))

/* The description of a struct. `last`: the last field of its first version, whatever is added
 * later. (A struct above SY_SIZED_MAX does not compile: it divides by 0.) */
#define SY_SIZED(type, last, function)                                                            \
    {                                                                                             \
        .first = SY_SIZED_TO(type, last), .bytes = sizeof(type) / (sizeof(type) <= SY_SIZED_MAX), \
        .fill = (function),                                                                       \
    }

/* Fills `to`, which has `size` bytes in the caller's headers, with figures about `about`. Returns
 * 0, or -1 with EINVAL if one of them is NULL or `size` is less than the first version has. */
int sy_sized_fill(const sy_sized *sized, const void *about, void *to, size_t size);

#endif
