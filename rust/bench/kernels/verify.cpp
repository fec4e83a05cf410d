/*
 * The ledger of layout BENCH_VERIFY: every live object, whole, belongs to one owner by one name.
 *
 * An object that is born must not overlap a live one, and its pattern, which depends on its address
 * and its birth, must be whole when it dies.
 */
#include "kernels.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace {

struct Life {
    size_t size;
    uint64_t birth;
    void *name;
};

std::mutex ledger_lock;
std::map<uintptr_t, Life> ledger;
uint64_t births;

[[noreturn]] void broken(const char *what, const void *object) {
    std::fprintf(stderr, "bench: %s: %p\n", what, object);
    std::abort();
}

unsigned char pattern(uintptr_t address, uint64_t birth, size_t offset) {
    return static_cast<unsigned char>((address >> 3) * 31 + birth * 131 + offset * 7);
}

/* The life of a live object of this name, with the ledger's lock held. */
std::map<uintptr_t, Life>::iterator life_of(const void *object, const void *name) {
    auto place = ledger.find(reinterpret_cast<uintptr_t>(object));
    if (place == ledger.end()) {
        broken("an object that is not live was freed or found", object);
    }
    if (place->second.name != name) {
        broken("an object was freed or found by another's name", object);
    }
    return place;
}

} // namespace

extern "C" void bench_verify_seen(void *object, void *name) {
    std::lock_guard<std::mutex> hold(ledger_lock);
    life_of(object, name);
}

extern "C" void bench_verify_born(void *object, size_t size, void *name) {
    if (object == nullptr) {
        broken("no object", object);
    }
    auto address = reinterpret_cast<uintptr_t>(object);
    Life life{size, 0, name};
    {
        std::lock_guard<std::mutex> hold(ledger_lock);
        life.birth = ++births;
        auto place = ledger.emplace(address, life);
        if (!place.second) {
            broken("an object that is live was given again", object);
        }
        auto next = std::next(place.first);
        if (next != ledger.end() && next->first < address + size) {
            broken("an object reaches into the next", object);
        }
        if (place.first != ledger.begin()) {
            auto before = std::prev(place.first);
            if (before->first + before->second.size > address) {
                broken("an object begins inside another", object);
            }
        }
    }
    auto *bytes = static_cast<unsigned char *>(object);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = pattern(address, life.birth, i);
    }
}

extern "C" void bench_verify_died(void *object, size_t size, void *name) {
    auto address = reinterpret_cast<uintptr_t>(object);
    Life life{};
    {
        std::lock_guard<std::mutex> hold(ledger_lock);
        auto place = life_of(object, name);
        life = place->second;
        ledger.erase(place);
    }
    if (life.size != size) {
        broken("an object died with another size", object);
    }
    const auto *bytes = static_cast<const unsigned char *>(object);
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != pattern(address, life.birth, i)) {
            broken("an object was written to by another", object);
        }
    }
}

extern "C" size_t bench_verify_live(void) {
    std::lock_guard<std::mutex> hold(ledger_lock);
    return ledger.size();
}
