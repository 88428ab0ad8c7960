/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The longest time in which no frame arrived: an outage, if it is much longer than the frames are apart. */
#ifndef VSPROF_PROBE_GAPS_H
#define VSPROF_PROBE_GAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "word.h"

struct gaps {
	uint64_t last;    /* when the last frame arrived, or when counting began [cycles of the TSC] */
	uint64_t longest; /* [cycles] */
	uint64_t began;   /* when the longest did: the arrival of the frame before it [cycles of the TSC] */
};

static inline void gaps_start(struct gaps *g, uint64_t now)
{
	*g = (struct gaps){.last = now, .began = now};
}

static inline void gaps_arrival(struct gaps *g, uint64_t now)
{
	if (now - g->last > g->longest) {
		word_set(&g->longest, now - g->last);
		word_set(&g->began, g->last);
	}
	word_set(&g->last, now);
}

/* For a reader's copy: counts the gap that has not ended at `now` as well; whether that is the longest. */
static inline bool gaps_close(struct gaps *g, uint64_t now)
{
	uint64_t last = g->last;

	/* A frame may have arrived after the reader looked at its clock. */
	if (now <= last)
		return false;
	gaps_arrival(g, now);
	return g->began == last;
}

#endif
