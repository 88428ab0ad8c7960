/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When the next frame is due. Moments that were missed are counted and skipped: a burst to catch up would be another traffic. */
#ifndef VSPROF_PROBE_PACER_H
#define VSPROF_PROBE_PACER_H

#include <stdbool.h>
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

static inline bool pacer_due(struct pacer *p, uint64_t now)
{
	if (now < p->due)
		return false;
	uint64_t missed = (now - p->due) / p->period;

	word_add(&p->missed, missed);
	word_set(&p->due, p->due + (missed + 1) * p->period);
	return true;
}

#endif
