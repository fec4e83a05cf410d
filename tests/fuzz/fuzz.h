/*
 * fuzz.h: functions for all fuzz programs. A program fuzz_x.c defines LLVMFuzzerTestOneInput(),
 * which reads an input as a list of operations and does them to the module and to a model of it. A
 * difference between the two ends the process. The program is linked with driver.c, which makes
 * random inputs from a seed, or with libFuzzer (clang -fsanitize=fuzzer), which searches for inputs
 * that reach new code.
 */
#ifndef SLABYARD_TESTS_FUZZ_H
#define SLABYARD_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An input being read from its front. */
typedef struct fuzz_input {
    const uint8_t *data;
    size_t size;
} fuzz_input;

/* The next byte; 0 when there is none. */
static inline uint8_t fuzz_byte(fuzz_input *input) {
    if (input->size == 0) return 0;
    input->size--;
    return *input->data++;
}

static inline uint32_t fuzz_u16(fuzz_input *input) {
    uint32_t high = fuzz_byte(input);
    return high << 8 | fuzz_byte(input);
}

/* Ends the process if the condition does not hold. */
static inline void fuzz_expect(int condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "fuzz: not so: %s\n", what);
    abort();
}

#endif
