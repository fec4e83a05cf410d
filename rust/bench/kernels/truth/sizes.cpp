/* Programs whose objects have many sizes and many lifetimes. */
#include "programs.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace truth {

namespace {

struct Free {
    void operator()(void *object) const { std::free(object); }
};

/* Bytes from malloc, filled. */
using Block = std::unique_ptr<unsigned char[], Free>;

Block block(size_t size, unsigned char fill) {
    Block made(static_cast<unsigned char *>(std::malloc(size)));
    if (!made) std::abort();
    std::memset(made.get(), fill, size);
    return made;
}

/* Replaces random objects of a table. */
uint64_t replace(Random &random, size_t places, size_t count) {
    std::vector<Block> table(places);
    Checksum checksum;
    for (size_t i = 0; i < count; i++) {
        Block &place = table[random.below(static_cast<uint32_t>(places))];
        checksum.add(place ? place[0] : 0);
        place = block(random.object_size(), static_cast<unsigned char>(i));
    }
    return checksum.value();
}

} // namespace

/* Phases, each with its own sizes; a random tenth of the objects of each phase survives it. */
uint64_t survivors(size_t size) {
    Random random(6);
    Checksum checksum;
    std::vector<Block> kept;
    for (size_t phase = 0; phase < size; phase++) {
        std::vector<Block> young;
        size_t base = 16 + random.below(64) * 24;
        for (int n = 0; n < 6000; n++) {
            young.push_back(block(base + random.below(64), static_cast<unsigned char>(n)));
        }
        for (Block &each : young) {
            checksum.add(each[8]);
            if (random.below(10) == 0) kept.push_back(std::move(each));
        }
        while (kept.size() > 20000) {
            std::swap(kept[random.below(static_cast<uint32_t>(kept.size()))], kept.back());
            kept.pop_back();
        }
    }
    return checksum.value();
}

/* A working set of 4,096 objects, replaced at random: the allocator takes nearly all of the
   time. */
uint64_t small_churn(size_t size) {
    Random random(7);
    return replace(random, 4096, size);
}

/* A program that runs only briefly, so that its start is a large part of its time. */
uint64_t short_run(size_t size) {
    Random random(8);
    return replace(random, 256, size);
}

} // namespace truth
