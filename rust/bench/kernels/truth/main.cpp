/*
 * Runs one of the programs: `truth_programs NAME SIZE`. It prints the number that the program
 * leads to. Without a name it lists all programs.
 */
#include "programs.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Program {
    const char *name;
    uint64_t (*run)(size_t size);
};

const Program programs[] = {
    {"json", truth::json},         {"strings", truth::strings},   {"map", truth::map_replace},
    {"hash", truth::hash_server},  {"graph", truth::graph},       {"survivors", truth::survivors},
    {"churn", truth::small_churn}, {"short", truth::short_run},   {"vectors", truth::vectors},
    {"zeroed", truth::zeroed},     {"aligned", truth::aligned},   {"images", truth::images},
    {"sparse", truth::sparse},     {"messages", truth::messages}, {"threads", truth::thread_churn},
    {"pool", truth::pool},         {"workers", truth::workers},
};

} // namespace

int main(int count, char **arguments) {
    if (count != 3) {
        for (const Program &program : programs) std::puts(program.name);
        return count == 1 ? 0 : 2;
    }
    for (const Program &program : programs) {
        if (std::strcmp(program.name, arguments[1]) == 0) {
            uint64_t result = program.run(std::strtoull(arguments[2], nullptr, 10));
            std::printf("%016" PRIx64 "\n", result);
            return 0;
        }
    }
    std::fprintf(stderr, "no program is called %s\n", arguments[1]);
    return 2;
}
