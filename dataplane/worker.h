/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A worker: the loop on one lcore that moves frames. */
#ifndef VS_WORKER_H
#define VS_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "counters.h"
#include "limits.h"
#include "pmu.h"

struct layout;
struct port;

enum { HELD_MOST = 2 * BURST };

/* Frames that wait for room in a receiver's ring. */
struct held {
	uint16_t count;
	uint64_t since; /* TSC when the first of them began to wait */
	struct rte_mbuf *frame[HELD_MOST];
	uint16_t source[HELD_MOST]; /* slot of the port that each came from */
};

struct worker {
	unsigned index, lcore;
	const struct layout *layout; /* the one it uses now */
	uint64_t serial;             /* its number */
	_Atomic int instruments;     /* what it is asked to count; enum instruments */
	_Atomic int pid;             /* thread's id; 0 until it runs */
	uint32_t holding;            /* bit s: held[s] has frames */
	uint32_t now_s;              /* seconds of the TSC */
	uint64_t now;                /* TSC at the end of what was timed last */
	uint64_t last_frame;         /* TSC when the last frame came */
	uint32_t until_sample;       /* bursts until the PMU is read again */
	int epoll_fd, wake_fd;       /* where it sleeps; what wakes it for a new layout */
	struct pmu pmu;
	struct worker_counters counters;
	struct send_counters sent[MAX_PORTS];
	struct held held[MAX_PORTS];
} __rte_cache_aligned;

/* The lcore's main function; `argument` is its struct worker. Returns when plane.stopping is set. */
int worker_main(void *argument);

/* Sleeping, in sleep.c: with interrupts for all queues of the layout. */
int sleep_init(struct worker *worker);
void sleep_adopt(struct worker *worker);
void sleep_until_frame(struct worker *worker);
void sleep_wake(struct worker *worker);

#endif
