/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is counted. Each counter has one writer, the worker that it belongs to; others only read it. An aligned 64-bit word is
 * never torn on the processors that DPDK runs on, so neither side needs a lock or an atomic addition.
 */
#ifndef VS_COUNTERS_H
#define VS_COUNTERS_H

#include <stdint.h>

#include "limits.h"

/* What a worker does with a burst, in this order. `other`: frames that waited for room in a receiver's ring. */
enum stage { STAGE_DEQUEUE, STAGE_PARSE, STAGE_LOOKUP, STAGE_ENQUEUE, STAGE_OTHER, STAGES };

extern const char *const stage_names[STAGES];

enum {
	PMU_MOST = 4,      /* events at once: what every PMU of today can count beside its fixed counters */
	SPLIT_RARELY = 16, /* the stages of one burst in so many, at least, are told apart; twice as many on average */
	COST_STEPS = 8,    /* buckets of the cycles histogram per doubling: at most 12.5 % wide */
	COST_BUCKETS = 16 * COST_STEPS,
};

struct queue_counters {
	uint64_t packets, bytes;
	uint64_t refused; /* malformed, or hostile */
};

struct send_counters {
	uint64_t packets, bytes; /* that the endpoint, or the device, has */
	uint64_t dropped_full;   /* the receiver had no room */
	uint64_t dropped_down;   /* the port went away while frames waited for it */
	uint64_t too_long;       /* no buffer of the guest could take the frame */
};

/* Of one worker. What stands behind `timed_` is counted with --stages on or pmu only. */
struct worker_counters {
	uint64_t bursts, packets;
	uint64_t flooded, filtered; /* frames to all ports; to the port that they came from */
	uint64_t flood_dropped;     /* of those to all ports, beyond what a burst may flood */
	uint64_t sleeps, wakeups, sleep_ns;

	uint64_t timed_bursts, timed_packets; /* what busy_cycles and burst_sizes belong to */
	uint64_t empty_polls;
	uint64_t longest_cycles; /* TSC, of any poll since counting began: for so long all other queues of the worker waited */
	uint64_t idle_cycles;    /* TSC, in polls that found nothing */
	uint64_t busy_cycles;    /* TSC, of the timed bursts */
	uint64_t other_cycles;   /* TSC, of frames that waited: the stage `other` */
	uint64_t burst_sizes[BURST + 1];

	uint64_t split_bursts, split_packets; /* those timed bursts whose stages were told apart: each look at the clock costs */
	uint64_t stage_cycles[STAGE_OTHER];   /* TSC */
	uint64_t costs[COST_BUCKETS];         /* by their cycles per packet, see cost_bucket() */

	uint64_t pmu_bursts, pmu_packets; /* the bursts on which the PMU was read; they are not among the timed ones */
	uint64_t pmu[STAGES][PMU_MOST];
};

/* The bucket of a number of cycles: linear up to COST_STEPS, then COST_STEPS buckets a doubling. */
static inline unsigned cost_bucket(uint64_t cycles)
{
	unsigned doubling, bucket;

	if (cycles < COST_STEPS)
		return cycles;
	doubling = 63 - __builtin_clzll(cycles) - __builtin_ctz(COST_STEPS);
	bucket = (doubling + 1) * COST_STEPS + (cycles >> doubling) - COST_STEPS;
	return bucket < COST_BUCKETS ? bucket : COST_BUCKETS - 1;
}

/* The first number of cycles that lies above a bucket. */
static inline uint64_t cost_bound(unsigned bucket)
{
	unsigned doubling = bucket / COST_STEPS;

	if (doubling == 0)
		return bucket + 1;
	return (uint64_t)(bucket % COST_STEPS + COST_STEPS + 1) << (doubling - 1);
}

#endif
