/* Programs whose memory consists of arrays and buffers: growing, zeroed, aligned, large, hardly
   touched. */
#include "programs.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace truth {

namespace {

/* A growing array as in C programs. */
struct Array {
    uint32_t *items = nullptr;
    size_t count = 0, room = 0;

    Array() = default;
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;
    ~Array() { std::free(items); }

    void push(uint32_t item) {
        if (count == room) {
            room = room ? room * 3 / 2 : 8;
            items = static_cast<uint32_t *>(std::realloc(items, room * sizeof *items));
            if (!items) std::abort();
        }
        items[count++] = item;
    }
};

unsigned char *memory(void *made) {
    if (!made) std::abort();
    return static_cast<unsigned char *>(made);
}

} // namespace

/* 64 arrays grow side by side, each to its own length, and start again. */
uint64_t vectors(size_t size) {
    Random random(9);
    Checksum checksum;
    for (size_t i = 0; i < size; i++) {
        Array arrays[64];
        size_t ends[64];
        for (size_t &end : ends) end = 1 + random.below(random.below(8) == 0 ? 200000 : 5000);
        for (size_t done = 0; done < 200000; done++) {
            for (size_t n = 0; n < 64; n++) {
                if (done < ends[n]) arrays[n].push(static_cast<uint32_t>(done * n));
            }
        }
        for (const Array &array : arrays) checksum.add(array.items[array.count / 2]);
    }
    return checksum.value();
}

/* Tables from calloc that are partly filled: counts of letters, sparse rows. */
uint64_t zeroed(size_t size) {
    Random random(10);
    Checksum checksum;
    uint32_t *kept[8192] = {};
    for (size_t i = 0; i < size; i++) {
        uint32_t places = 16 + random.below(random.below(20) == 0 ? 8000 : 250);
        auto *table = reinterpret_cast<uint32_t *>(memory(std::calloc(places, sizeof(uint32_t))));
        for (uint32_t n = 0; n < places / 4; n++) table[random.below(places)]++;
        uint32_t sum = 0;
        for (uint32_t n = 0; n < places; n++) sum = sum * 31 + table[n];
        checksum.add(sum);
        std::swap(table, kept[random.below(8192)]);
        std::free(table);
    }
    for (uint32_t *table : kept) std::free(table);
    return checksum.value();
}

/* Vectors of numbers for wide registers: aligned to 64 bytes, some of them to a page. */
uint64_t aligned(size_t size) {
    Random random(11);
    Checksum checksum;
    float *kept[4096] = {};
    for (size_t i = 0; i < size; i++) {
        size_t lines = 1 + random.below(random.below(10) == 0 ? 200 : 20);
        size_t align = random.below(20) == 0 ? 4096 : 64, count = lines * 16;
        void *made = nullptr;
        if (posix_memalign(&made, align, count * sizeof(float)) != 0) std::abort();
        auto *numbers = static_cast<float *>(made);
        for (size_t n = 0; n < count; n++) numbers[n] = static_cast<float>(n % 7);
        float sum = 0;
        for (size_t n = 0; n < count; n++) sum += numbers[n] * 2;
        checksum.add(static_cast<uint64_t>(sum));
        std::swap(numbers, kept[random.below(4096)]);
        std::free(numbers);
    }
    for (float *numbers : kept) std::free(numbers);
    return checksum.value();
}

/* Pictures of 64 KiB to 4 MiB pass through two filters, each with its own buffer. */
uint64_t images(size_t size) {
    Random random(12);
    Checksum checksum;
    for (size_t i = 0; i < size; i++) {
        size_t bytes = size_t{65536} << random.below(7);
        bytes -= random.below(4096);
        unsigned char *picture = memory(std::malloc(bytes));
        for (size_t n = 0; n < bytes; n++) picture[n] = static_cast<unsigned char>(n * 7 + i);
        for (int filter = 0; filter < 2; filter++) {
            unsigned char *filtered = memory(std::malloc(bytes));
            filtered[0] = picture[0];
            for (size_t n = 1; n < bytes; n++) {
                filtered[n] = static_cast<unsigned char>((picture[n] + picture[n - 1]) / 2);
            }
            std::free(picture);
            picture = filtered;
        }
        checksum.add(picture[bytes / 3]);
        std::free(picture);
    }
    return checksum.value();
}

/* Large buffers of which one page in 16 is used, beside small objects. */
uint64_t sparse(size_t size) {
    Random random(13);
    Checksum checksum;
    constexpr size_t bytes = 8 << 20, step = 16 * 4096;
    unsigned char *buffers[8] = {};
    char *names[1000] = {};
    for (size_t i = 0; i < size; i++) {
        if (i % 2000 == 0) {
            unsigned char *&buffer = buffers[i / 2000 % 8];
            std::free(buffer);
            buffer = memory(std::malloc(bytes));
            for (size_t at = 0; at < bytes; at += step) buffer[at] = static_cast<unsigned char>(i);
            checksum.add(buffer[bytes / 2]);
        }
        char *&name = names[random.below(1000)];
        std::free(name);
        size_t length = 16 + random.below(100);
        name = reinterpret_cast<char *>(memory(std::malloc(length)));
        std::memset(name, 'n', length);
    }
    for (unsigned char *buffer : buffers) std::free(buffer);
    for (char *name : names) std::free(name);
    return checksum.value();
}

} // namespace truth
