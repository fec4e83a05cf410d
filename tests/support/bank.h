/*
 * bank.h: a bank of words, 0, 1, 2 ..., that takes the place of a client's slabs in the tests of
 * the magazine layer. The bank notices a word that is taken or put back twice. Each word is in the
 * bank, in a magazine, or with the test.
 */
#ifndef SLABYARD_TESTS_BANK_H
#define SLABYARD_TESTS_BANK_H

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/cache.h>

#include "magazine/client.h"
#include "magazine/store.h"
#include "support/child.h"

enum { WORDS_MAX = 1 << 16 };

struct bank {
    sy_client client;
    pthread_mutex_t lock;
    size_t words, lent;
    size_t refills, flushes, last_refill, last_flush;
    bool out[WORDS_MAX];
};

/* The lowest word is at the end of the list, so it is taken first. */
static inline size_t refill(void *owner, uintptr_t *items, size_t count) {
    struct bank *bank = owner;
    size_t got = 0;
    pthread_mutex_lock(&bank->lock);
    for (size_t word = 0; word < bank->words && got < count; word++)
        if (!bank->out[word]) {
            bank->out[word] = true;
            items[got++] = word;
        }
    bank->lent += got;
    bank->refills++;
    bank->last_refill = count;
    pthread_mutex_unlock(&bank->lock);
    for (size_t i = 0; i < got / 2; i++) {
        uintptr_t word = items[i];
        items[i] = items[got - 1 - i];
        items[got - 1 - i] = word;
    }
    if (!got) errno = ENOSPC;
    return got;
}

static inline void flush(void *owner, uintptr_t *items, size_t count, _Atomic uint32_t *held) {
    struct bank *bank = owner;
    pthread_mutex_lock(&bank->lock);
    for (size_t i = 0; i < count; i++) {
        must(items[i] < bank->words && bank->out[items[i]]);
        bank->out[items[i]] = false;
    }
    bank->lent -= count;
    if (held) atomic_store(held, 0);
    bank->flushes++;
    bank->last_flush = count;
    pthread_mutex_unlock(&bank->lock);
}

static struct bank the_bank;

static inline struct bank *open_bank(struct bank *bank, size_t words, sy_client_config config) {
    memset(bank, 0, sizeof *bank);
    pthread_mutex_init(&bank->lock, NULL);
    bank->words = words;
    config.refill = refill;
    config.flush = flush;
    config.owner = bank;
    must(sy_client_open(&bank->client, &config) == 0);
    return bank;
}

static inline void close_bank(struct bank *bank) {
    sy_client_close(&bank->client);
    sy_client_give_number(&bank->client);
    must(bank->lent == 0);
    must(sy_store_verify() == 0);
}

static const sy_client_config PLAIN = {.item_bytes = 64, .magazine_items = SY_MAGAZINE_ITEMS};

static inline sy_loaded_slot *slot_of(const struct bank *bank) {
    return (sy_loaded_slot *)((char *)sy_abi_1 + sy_client_offset(&bank->client));
}

/* The fast path, as in the inline functions. */
static inline bool get(struct bank *bank, uintptr_t *word) {
    sy_loaded_slot *slot = slot_of(bank);
    if (slot->top <= slot->base) return sy_client_alloc(&bank->client, word);
    *word = *--slot->top;
    return true;
}

static inline void put(struct bank *bank, uintptr_t word) {
    sy_loaded_slot *slot = slot_of(bank);
    if (slot->top >= slot->limit)
        sy_client_free(&bank->client, word);
    else
        *slot->top++ = word;
}

/* Words held: in a bitmap, so that a word given twice is noticed. */
static bool held[WORDS_MAX];

static inline uintptr_t get_new(struct bank *bank) {
    uintptr_t word;
    must(get(bank, &word));
    must(word < bank->words && bank->out[word] && !held[word]);
    held[word] = true;
    return word;
}

static inline void put_held(struct bank *bank, uintptr_t word) {
    must(held[word]);
    held[word] = false;
    put(bank, word);
}

static inline void count_held(const struct bank *bank, size_t *depot, size_t *loaded) {
    sy_clients_lock();
    sy_client_held(&bank->client, depot, loaded);
    sy_clients_unlock();
}

static inline size_t waiting(struct bank *bank) {
    size_t depot, loaded;
    count_held(bank, &depot, &loaded);
    return depot + loaded;
}

static inline void *put_all_and_end(void *arg) {
    struct bank *bank = arg;
    for (uintptr_t i = 0; i < bank->words; i++)
        if (held[i]) put_held(bank, i);
    return NULL;
}

#endif
