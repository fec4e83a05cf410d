/* A program of several processes. */
#include "programs.hpp"

#include <cstdlib>
#include <map>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace truth {

namespace {

constexpr uint64_t worker_count = 6;

using Table = std::map<std::string, std::vector<uint32_t>>;

/* The words of a text, and where they stand. */
Table index(uint64_t seed, size_t words) {
    Random random(seed);
    Table table;
    for (size_t i = 0; i < words; i++) {
        std::string word = "a word of the text, with number " + std::to_string(random.below(2000));
        table[word].push_back(static_cast<uint32_t>(i));
    }
    return table;
}

uint64_t sum(const Table &table) {
    Checksum all;
    for (const auto &entry : table) {
        for (char letter : entry.first) all.add(static_cast<unsigned char>(letter));
        for (uint32_t place : entry.second) all.add(place);
    }
    return all.value();
}

/* Replaces a part of what the parent has built, in the worker's own copy of its memory. */
uint64_t work(Table &table, uint64_t seed, size_t words) {
    for (const auto &entry : index(seed, words)) {
        if (entry.second.size() % 2 == 0)
            table.erase(entry.first);
        else
            table[entry.first] = entry.second;
    }
    return sum(table);
}

} // namespace

/* A process builds a table, and forks six workers, which go on with copies of it at the same time.
   Their results come through a pipe, in any order. */
uint64_t workers(size_t size) {
    Table table = index(0, size);
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    for (uint64_t number = 1; number <= worker_count; number++) {
        pid_t child = fork();
        if (child < 0) std::abort();
        if (child > 0) continue;
        uint64_t result = work(table, number, size);
        _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
    }
    uint64_t all = sum(table);
    for (uint64_t number = 1; number <= worker_count; number++) {
        uint64_t result;
        if (read(ends[0], &result, sizeof result) != sizeof result) std::abort();
        all += result;
    }
    for (uint64_t number = 1; number <= worker_count; number++) {
        int status;
        if (wait(&status) < 0 || status != 0) std::abort();
    }
    return all;
}

} // namespace truth
