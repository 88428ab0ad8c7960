/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many frames are due. Moments that were missed are counted and skipped: to catch up would be another traffic. But as many as a burst
 * holds go at once where they became due since the last look.
 */
#ifndef VSPROF_PROBE_PACER_H
#define VSPROF_PROBE_PACER_H

#include <stdint.h>

#include "word.h"

struct pacer {
	uint64_t period; /* [cycles]; never 0 */
	uint64_t due;    /* [cycles of the TSC] */
	uint64_t missed; /* moments at which nobody looked */
};

static inline void pacer_start(struct pacer *p, uint64_t period, uint64_t now)
{
	*p = (struct pacer){.period = period, .due = now};
}

static inline uint32_t pacer_due(struct pacer *p, uint64_t now, uint32_t burst)
{
	if (now < p->due)
		return 0;
	uint64_t moments = (now - p->due) / p->period + 1;
	uint32_t sent = moments < burst ? (uint32_t)moments : burst;

	word_add(&p->missed, moments - sent);
	word_set(&p->due, p->due + moments * p->period);
	return sent;
}

#endif
