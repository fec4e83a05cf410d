/*
 * mistakes.cpp: a program for mistakes.py, which makes one mistake with its memory and continues.
 * It works with any malloc.
 *
 * Usage: mistakes                 lists the mistakes: number and words
 *        mistakes NUMBER ROUNDS   makes one, prints "made", works for ROUNDS rounds, prints "ended"
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace {

enum : size_t { SMALL = 64, LARGE = 256 << 10 };

/* Hides from the compiler which memory a pointer leads to. */
char *hidden(void *pointer) {
    char *volatile result = static_cast<char *>(pointer);
    return result;
}

char *make(size_t size) { return hidden(malloc(size)); }

volatile char read_byte;

void free_twice(size_t size, bool other_between) {
    char *object = make(size), *other = make(size);
    free(object);
    if (other_between) free(other);
    free(object);
}

void free_again_after_reuse() {
    char *object = make(SMALL);
    free(object);
    char *other = make(SMALL);
    free(object);
    memset(other, 1, SMALL);
    free(other);
}

void free_inside(size_t size, size_t offset) { free(make(size) + offset); }

void free_stack() {
    alignas(16) char local[SMALL];
    free(hidden(local));
}

void free_static() {
    alignas(16) static char object[SMALL];
    free(hidden(object));
}

void free_mapped() {
    char *pages = static_cast<char *>(
        mmap(nullptr, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    free(hidden(pages + 64));
}

void free_garbage() { free(reinterpret_cast<void *>(UINT64_C(0x4141414141414140))); }

void resize_garbage() {
    read_byte = *make(SMALL);
    (void)hidden(realloc(reinterpret_cast<void *>(UINT64_C(0x4141414141414140)), SMALL));
}

void resize_inside() { (void)hidden(realloc(make(SMALL) + 1, 2 * SMALL)); }

void resize_freed() {
    char *object = make(SMALL);
    free(object);
    (void)hidden(realloc(object, 2 * SMALL));
}

void delete_with_size(size_t size, size_t told) {
    operator delete(hidden(operator new(size)), told);
}

void delete_array_with_size(size_t size, size_t told) {
    operator delete[](hidden(operator new[](size)), told);
}

void delete_with_alignment(size_t told) {
    operator delete(hidden(operator new(40, std::align_val_t(64))), 40, std::align_val_t(told));
}

void delete_without_alignment() {
    operator delete(hidden(operator new(40, std::align_val_t(64))), 40);
}

void write_at(size_t size, ptrdiff_t offset, size_t bytes) {
    char *object = make(size);
    memset(hidden(object + offset), 'x', bytes);
    free(object);
}

void write_freed(size_t size, size_t offset) {
    char *object = make(size);
    free(object);
    memset(hidden(object + offset), 'x', 8);
}

void read_freed(size_t size) {
    char *object = make(size);
    free(object);
    read_byte = object[size / 2];
}

void read_at(size_t size, ptrdiff_t offset) {
    char *object = make(size);
    read_byte = *hidden(object + offset);
    free(object);
}

void write_nothing() {
    char *object = make(0);
    *object = 'x';
    free(object);
}

struct mistake {
    const char *words;
    void (*make)();
};

/* The words are those of the table in docs/malloc.md. */
const mistake mistakes[] = {
    {"the same object freed twice in a row", [] { free_twice(SMALL, false); }},
    {"freed twice, another one in between", [] { free_twice(SMALL, true); }},
    {"freed again when its place has a new object", free_again_after_reuse},
    {"a large object freed twice", [] { free_twice(LARGE, false); }},
    {"a large object freed twice, another one in between", [] { free_twice(LARGE, true); }},
    {"free of an address inside an object, 1 byte from its start", [] { free_inside(SMALL, 1); }},
    {"the same, 16 bytes from its start", [] { free_inside(SMALL, 16); }},
    {"the same, in a large object", [] { free_inside(LARGE, 4096); }},
    {"free of a place that no object has had", [] { free_inside(SMALL, 100 * SMALL); }},
    {"free of a local variable", free_stack},
    {"free of a static variable", free_static},
    {"free of memory from mmap", free_mapped},
    {"free of a wild pointer", free_garbage},
    {"realloc of a wild pointer", resize_garbage},
    {"realloc of an address inside an object, 1 byte from its start", resize_inside},
    {"realloc of a freed object", resize_freed},
    {"delete with another type's size", [] { delete_with_size(SMALL, 2 * SMALL); }},
    {"the same, of a large object", [] { delete_with_size(LARGE, LARGE * 3 / 4); }},
    {"the same, of an object of 8 MiB", [] { delete_with_size(8 << 20, 9 << 20); }},
    {"delete[] with another type's size", [] { delete_array_with_size(SMALL, 2 * SMALL); }},
    {"sized delete with another alignment", [] { delete_with_alignment(4096); }},
    {"sized delete without the alignment", delete_without_alignment},
    {"1 byte written behind an object", [] { write_at(SMALL, SMALL, 1); }},
    {"8 bytes written behind an object", [] { write_at(SMALL, SMALL, 8); }},
    {"1 byte written behind an object of 60", [] { write_at(60, 60, 1); }},
    {"1 byte written before an object", [] { write_at(SMALL, -1, 1); }},
    {"8 bytes written behind a large object", [] { write_at(LARGE, LARGE, 8); }},
    {"a byte written into an object of 0 bytes", write_nothing},
    {"the first bytes of an object written after its free", [] { write_freed(SMALL, 0); }},
    {"other bytes of it", [] { write_freed(SMALL, 32); }},
    {"a large object written after its free", [] { write_freed(LARGE, 4096); }},
    {"an object read after its free", [] { read_freed(SMALL); }},
    {"a large object read after its free", [] { read_freed(LARGE); }},
    {"a byte read behind an object", [] { read_at(SMALL, SMALL); }},
};

void say(const char *word) {
    if (write(STDOUT_FILENO, word, strlen(word)) < 0) _exit(3);
}

/* Allocates, writes and frees objects, so that malloc can notice the mistake later. */
void go_on(size_t small_rounds) {
    static char *objects[300];
    struct {
        size_t size, count, rounds;
    } const phases[] = {{SMALL, 300, small_rounds}, {LARGE, 4, 100}};
    for (auto phase : phases) {
        for (size_t round = 0; round < phase.rounds; round++) {
            for (size_t i = 0; i < phase.count; i++) {
                objects[i] = make(phase.size);
                memset(objects[i], 'y', SMALL);
            }
            for (size_t i = 0; i < phase.count; i++) free(objects[i]);
        }
    }
}

} // namespace

int main(int argc, char **argv) {
    const size_t count = sizeof mistakes / sizeof *mistakes;
    if (argc < 2) {
        for (size_t i = 0; i < count; i++) printf("%zu %s\n", i, mistakes[i].words);
        return 0;
    }
    const size_t number = strtoul(argv[1], nullptr, 10);
    if (number >= count || argc < 3) return 2;
    free(make(SMALL)); /* the first allocation may be special */
    mistakes[number].make();
    say("made\n");
    go_on(strtoul(argv[2], nullptr, 10));
    say("ended\n");
    _exit(0);
}
