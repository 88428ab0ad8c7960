/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is counted of one stream, from its first frame after the warm-up on. Nothing but words of 64 bits: see words_copy. */
#ifndef VSPROF_PROBE_TALLY_H
#define VSPROF_PROBE_TALLY_H

#include "arrivals.h"
#include "gaps.h"
#include "histogram.h"
#include "pacer.h"
#include "stalls.h"

struct tally {
	uint64_t counting; /* 1 once the warm-up is over */
	uint64_t arrived;  /* frames of any stream that arrived, those of the warm-up included */
	uint64_t sent;     /* frames that the port took */
	uint64_t refused;  /* frames that it did not: its ring was full */
	uint64_t foreign;  /* frames that arrived and are of no stream */
	struct pacer pacer;
	struct arrivals arrivals;
	struct gaps gaps;
	struct stalls stalls;
	struct histogram latency;   /* [cycles] */
	struct histogram disturbed; /* [cycles] the same of frames that were found right after a stall */
};

_Static_assert(sizeof(struct tally) % sizeof(uint64_t) == 0, "words_copy copies words");

#endif
