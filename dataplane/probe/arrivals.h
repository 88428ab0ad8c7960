/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of the numbered frames arrived: how many, how many behind a later one, how many twice. */
#ifndef VSPROF_PROBE_ARRIVALS_H
#define VSPROF_PROBE_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "word.h"

struct arrivals {
	uint64_t first;      /* number of the first frame that counts */
	uint64_t next;       /* the number after the highest that arrived */
	uint64_t seen;       /* bit i: the frame next - 1 - i arrived */
	uint64_t received;   /* frames */
	uint64_t reordered;  /* frames that came after one with a higher number; they are received, too */
	uint64_t duplicates; /* frames that had come before, among the last 64 */
};

static inline void arrivals_start(struct arrivals *a, uint64_t first)
{
	*a = (struct arrivals){.first = first, .next = first};
}

static inline bool arrivals_late(struct arrivals *a, uint64_t number)
{
	uint64_t behind = a->next - 1 - number, bit = behind < 64 ? 1ull << behind : 0;

	if (a->seen & bit) {
		word_add(&a->duplicates, 1);
		return false;
	}
	word_set(&a->seen, a->seen | bit);
	word_add(&a->reordered, 1);
	word_add(&a->received, 1);
	return true;
}

/* The frame `number` is here: whether it counts. Frames of an earlier stream, and those for warming up, do not. */
static inline bool arrivals_take(struct arrivals *a, uint64_t number)
{
	if (number < a->first)
		return false;
	if (number < a->next)
		return arrivals_late(a, number);
	uint64_t ahead = number - a->next + 1;

	word_set(&a->seen, (ahead < 64 ? a->seen << ahead : 0) | 1);
	word_set(&a->next, number + 1);
	word_add(&a->received, 1);
	return true;
}

#endif
