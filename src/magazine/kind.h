/*
 * kind.h: the kinds of clients. The kind of a client says what its slow paths do: a constant table
 * of functions, which the owner of the client chooses.
 *
 *     kind              a cache with           inline code               file
 *     plain             none of these flags    allocates and frees       client.c
 *     seen              SY_ZERO                allocates                 client.c
 *     guarded           SY_GUARD               allocates, up to an item  client.c
 *                                              that is to be guarded
 *     profiled          plain or SY_ZERO,      allocates, up to an item  client.c
 *                       while a profile is     that the profile samples
 *                       taken
 *     one_way           SY_EPOCHS              allocates                 one_way.c
 *     one_way_guarded   SY_EPOCHS, SY_GUARD    as `guarded`              one_way.c
 *
 * The kinds of one file have the same steps. They differ in a few stores to the slot, which
 * sy_slot_rule names (slot.h). Each function of a kind inlines its steps with a constant rule, so
 * no step tests what kind the client is of. (docs/decisions/021-kinds-of-clients.md)
 *
 * A new kind is a rule and a table in one of the two files, or a file with functions of its own.
 *
 * Below: nothing. Above: client.h, which has the contracts of the first functions.
 */
#ifndef SY_MAGAZINE_KIND_H
#define SY_MAGAZINE_KIND_H

#include <slabyard/base.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sy_client;
struct sy_magazine;
struct sy_slot;

/* What has become of an item at sy_client_free_second. */
typedef enum sy_freed {
    SY_FREED_NOT, /* the thread's magazines have no room for it: sy_client_free is to be called */
    SY_FREED,     /* it is in a magazine of the thread */
    SY_FREED_BEFORE, /* this thread freed it last, and still has it: a double free */
} sy_freed;

typedef struct sy_client_kind {
    /* The functions of client.h with these names. */
    bool (*alloc_second)(struct sy_client *client, uintptr_t *item);
    bool (*alloc_rest)(struct sy_client *client, uintptr_t *item);
    size_t (*alloc_loaded)(struct sy_client *client, uintptr_t *items, size_t count);
    sy_freed (*free_second)(struct sy_client *client, uintptr_t item);
    void (*free)(struct sy_client *client, uintptr_t item);
    size_t (*reserve)(struct sy_client *client, size_t count);

    /* Steps on a slot, for the functions that all kinds share: sy_slot_load; and what has to be
     * done before items leave the loaded magazine otherwise than by an allocation. */
    void (*load)(struct sy_slot *slot, struct sy_magazine *magazine);
    void (*count)(struct sy_slot *slot);
} sy_client_kind;

extern SY_HIDDEN const sy_client_kind sy_client_plain, sy_client_seen, sy_client_guarded;
extern SY_HIDDEN const sy_client_kind sy_client_profiled;
extern SY_HIDDEN const sy_client_kind sy_client_one_way, sy_client_one_way_guarded;

#endif
