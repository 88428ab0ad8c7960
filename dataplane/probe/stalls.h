/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Times at which the probe itself did not look: its CPU did something else. A frame that is found right after a stall may have
 * waited for the probe and not for the switch; what is found after a poll that came in time has not.
 */
#ifndef VSPROF_PROBE_STALLS_H
#define VSPROF_PROBE_STALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "word.h"

struct stalls {
	uint64_t limit;   /* longer between two polls is a stall [cycles] */
	uint64_t count;   /* stalls */
	uint64_t cycles;  /* in them */
	uint64_t longest; /* [cycles] */
};

static inline void stalls_start(struct stalls *s, uint64_t limit)
{
	*s = (struct stalls){.limit = limit};
}

/* Nobody polled between `before` and `now`: whether that is a stall. */
static inline bool stalls_look(struct stalls *s, uint64_t before, uint64_t now)
{
	uint64_t away = now - before;

	if (away <= s->limit)
		return false;
	word_add(&s->count, 1);
	word_add(&s->cycles, away);
	if (away > s->longest)
		word_set(&s->longest, away);
	return true;
}

#endif
