/*
 * driver.c: runs a fuzz program without a fuzzer. `fuzz_x [RUNS [SEED]]` runs RUNS random
 * inputs, the same ones for the same seed; `fuzz_x FILE...` runs the inputs in files. A file whose
 * name ends in .hex has one input in each line, as hexadecimal digits; any other file is one input.
 * If the program crashes, the input is in fuzz-input.bin, and can be run alone.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

enum { DEFAULT_RUNS = 1000, INPUT_BYTES = 8192 };

static uint8_t input[INPUT_BYTES];
static size_t input_bytes;

/* Only calls that a signal handler may make. */
static void keep_input(int signal_number) {
    static const char path[] = "fuzz-input.bin";
    static const char message[] = "fuzz: the input is in fuzz-input.bin\n";
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file >= 0 && write(file, input, input_bytes) == (ssize_t)input_bytes)
        (void)!write(2, message, sizeof message - 1);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static uint64_t next_random(uint64_t *state) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t bits = *state;
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

/* Lengths are spread over the orders of magnitude, so that short inputs are as frequent as long
 * ones. */
static void make_input(uint64_t *state) {
    size_t most = (size_t)1 << (4 + next_random(state) % 10);
    input_bytes = 1 + next_random(state) % most;
    for (size_t i = 0; i < input_bytes; i++) input[i] = (uint8_t)next_random(state);
}

static int run_random(uint64_t runs, uint64_t seed) {
    for (uint64_t run = 0; run < runs; run++) {
        uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + run;
        make_input(&state);
        LLVMFuzzerTestOneInput(input, input_bytes);
    }
    printf("fuzz: %llu runs from seed %llu\n", (unsigned long long)runs, (unsigned long long)seed);
    return 0;
}

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* Reads the input of the next line. False: the file ends, or a character is not hexadecimal. */
static bool read_line(FILE *file) {
    unsigned byte;
    input_bytes = 0;
    while (input_bytes < INPUT_BYTES && fscanf(file, "%2x", &byte) == 1) {
        input[input_bytes++] = (uint8_t)byte;
        int next = fgetc(file);
        if (next == '\n' || next == EOF) break;
        ungetc(next, file);
    }
    return input_bytes > 0;
}

static unsigned run_lines(FILE *file) {
    unsigned runs = 0;
    for (; read_line(file); runs++) LLVMFuzzerTestOneInput(input, input_bytes);
    return runs;
}

static unsigned run_whole(FILE *file) {
    input_bytes = fread(input, 1, sizeof input, file);
    LLVMFuzzerTestOneInput(input, input_bytes);
    return 1;
}

static int run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    unsigned runs = ends_in(path, ".hex") ? run_lines(file) : run_whole(file);
    bool whole = runs > 0 && fgetc(file) == EOF;
    fclose(file);
    printf("fuzz: %s: %u inputs%s\n", path, runs, whole ? "" : ", then what is none");
    return !whole;
}

static bool is_number(const char *text) {
    return text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
}

int main(int argc, char **argv) {
    signal(SIGABRT, keep_input);
    signal(SIGSEGV, keep_input);
    if (argc > 1 && !is_number(argv[1])) {
        int failed = 0;
        for (int i = 1; i < argc; i++) failed |= run_file(argv[i]);
        return failed;
    }
    uint64_t runs = argc > 1 ? strtoull(argv[1], NULL, 10) : DEFAULT_RUNS;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    return run_random(runs, seed);
}
