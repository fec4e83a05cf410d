/*
 * Runs one of the programs: `truth_programs NAME SIZE`. It prints the number that the program
 * leads to, and the most anonymous memory that the process had in RAM, in KiB. Without a name it
 * lists all programs.
 */
#include "programs.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace {

struct Program {
    const char *name;
    uint64_t (*run)(size_t size);
};

uint64_t nothing(size_t) { return 0; }

const Program programs[] = {
    {"nothing", nothing},
    {"json", truth::json},
    {"strings", truth::strings},
    {"map", truth::map_replace},
    {"hash", truth::hash_server},
    {"graph", truth::graph},
    {"survivors", truth::survivors},
    {"churn", truth::small_churn},
    {"short", truth::short_run},
    {"vectors", truth::vectors},
    {"zeroed", truth::zeroed},
    {"aligned", truth::aligned},
    {"images", truth::images},
    {"sparse", truth::sparse},
    {"messages", truth::messages},
    {"threads", truth::thread_churn},
};

uint64_t field(const char *text, const char *name) {
    const char *line = std::strstr(text, name);
    return line ? std::strtoull(line + std::strlen(name), nullptr, 10) : 0;
}

/* The kernel keeps the peak of all resident memory, which includes pages of files: the program
   and its libraries. The number of these pages only grows, so the number at the end is
   subtracted. This function allocates nothing. */
uint64_t anonymous_peak_kib() {
    char text[8192] = "";
    int file = open("/proc/self/status", O_RDONLY);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    return field(text, "VmHWM:") - field(text, "RssFile:");
}

} // namespace

int main(int count, char **arguments) {
    if (count != 3) {
        for (const Program &program : programs) std::puts(program.name);
        return count == 1 ? 0 : 2;
    }
    for (const Program &program : programs) {
        if (std::strcmp(program.name, arguments[1]) == 0) {
            uint64_t result = program.run(std::strtoull(arguments[2], nullptr, 10));
            std::printf("%016" PRIx64 " %" PRIu64 "\n", result, anonymous_peak_kib());
            return 0;
        }
    }
    std::fprintf(stderr, "no program is called %s\n", arguments[1]);
    return 2;
}
