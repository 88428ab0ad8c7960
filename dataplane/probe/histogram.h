/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A histogram of durations with the same relative resolution everywhere (1/256), as HdrHistogram has it: each power of two is cut
 * into 256 buckets of equal width. So the tail is known as well as the median, and nothing is out of range.
 *
 * One thread counts; another may read at any time. Counts only grow, so the difference of two readings is what came in between.
 */
#ifndef VSPROF_PROBE_HISTOGRAM_H
#define VSPROF_PROBE_HISTOGRAM_H

#include <stdint.h>

#include "word.h"

#define HISTOGRAM_BITS 8
#define HISTOGRAM_BUCKETS ((64 - HISTOGRAM_BITS + 1) << HISTOGRAM_BITS)

struct histogram {
	uint64_t count;   /* values */
	uint64_t sum;     /* of all values [their unit] */
	uint64_t largest; /* [their unit] */
	uint64_t bucket[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_index(uint64_t value)
{
	unsigned shift = 0;

	if (value >> (HISTOGRAM_BITS + 1))
		shift = 63 - HISTOGRAM_BITS - (unsigned)__builtin_clzll(value);
	return (shift << HISTOGRAM_BITS) + (unsigned)(value >> shift);
}

/* The smallest and the largest value that are counted in a bucket. */
uint64_t histogram_low(unsigned index);
uint64_t histogram_high(unsigned index);

static inline void histogram_add(struct histogram *h, uint64_t value)
{
	word_add(&h->bucket[histogram_index(value)], 1);
	word_add(&h->count, 1);
	word_add(&h->sum, value);
	if (value > h->largest)
		word_set(&h->largest, value);
}

#endif
