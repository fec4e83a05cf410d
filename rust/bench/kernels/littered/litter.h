/*
 * litter.h: the sizes that a program asks for, which record.c writes to a file and litter.c reads.
 *
 * A program's heap is fragmented before the program begins, as in the paper "Reconsidering
 * 'Reconsidering Custom Memory Allocation'" (E. Berger, N. van Kempen, arXiv 2605.17119;
 * https://github.com/plasma-umass/custom-public describes the method, "littering"): a first run
 * finds the sizes of the program's allocations, and how many are live at most. In the runs that
 * are measured, a preloaded library first allocates a multiple of this number, with sizes of the
 * same distribution, by the malloc that the program has, and frees some of them at random. So a
 * new program gets the heap of one that has run for long. Here it is twice the number, of which a
 * random half is freed.
 *
 * The file has a line with the largest number of live blocks, then one for each bin of sizes: the
 * mean of its sizes, and how many allocations had one of them. Blocks above SIZE_MAX_LITTER are
 * left out: allocators give them pages of their own.
 */
#ifndef SLABYARD_BENCH_LITTER_H
#define SLABYARD_BENCH_LITTER_H

enum { BIN_BYTES = 16, SIZE_MAX_LITTER = 32 << 10, BINS = SIZE_MAX_LITTER / BIN_BYTES };

#endif
