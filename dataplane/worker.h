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

/* Where a frame came from. */
struct source {
	uint8_t slot, queue;
};

/* Frames that wait for room in a receiver's ring. */
struct held {
	uint16_t count;
	uint64_t since; /* TSC when the first of them began to wait */
	struct rte_mbuf *frame[HELD_MOST];
	struct source source[HELD_MOST];
};

/* Held frames on their way to the worker that polls their queue from the next layout on. */
struct handed {
	uint16_t count;
	struct rte_mbuf *frame[HELD_MOST];
	struct source source[HELD_MOST];
	uint64_t dropped; /* for which there was no room */
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
	uint32_t until_split;        /* bursts until the stages of one are told apart again */
	int epoll_fd, wake_fd;       /* where it sleeps; what wakes it for a new layout */
	struct pmu pmu;
	struct worker_counters counters;
	struct send_counters sent[MAX_PORTS];
	struct held held[MAX_PORTS];
	/*
	 * By receiver. The worker fills `leaving` when it takes a layout in which queues move; whoever published that empties it once all
	 * have taken it, and fills `arriving` before it publishes the next one, which the worker empties when it takes that.
	 */
	struct handed leaving[MAX_PORTS], arriving[MAX_PORTS];
} __rte_cache_aligned;

/* The lcore's main function; `argument` is its struct worker. Returns when plane.stopping is set. */
int worker_main(void *argument);

/* Sleeping, in sleep.c: with interrupts for all queues of the layout. */
int sleep_init(struct worker *worker);
void sleep_adopt(struct worker *worker);
void sleep_until_frame(struct worker *worker);
void sleep_wake(struct worker *worker);

#endif
