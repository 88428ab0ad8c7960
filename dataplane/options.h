/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What stands behind -- on the command line. */
#ifndef VS_OPTIONS_H
#define VS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "limits.h"
#include "pmu.h"
#include "port.h"

enum forward { FORWARD_SWITCH, FORWARD_WIRE, FORWARD_LOOP };
enum rx_mode { RX_POLL, RX_INTERRUPT, RX_ADAPTIVE };
enum instruments { INSTRUMENTS_OFF, INSTRUMENTS_ON, INSTRUMENTS_PMU };

struct options {
	unsigned ports;
	struct port_spec port[MAX_PORTS];
	enum forward forward;
	bool own_rings, zero_copy;
	enum rx_mode rx;
	uint64_t idle_us; /* how long without a frame before a worker sleeps */
	enum instruments instruments;
	struct pmu_event events[PMU_MOST];
	unsigned event_count;
	uint32_t pmu_every; /* the PMU is read on one burst in so many */
	uint64_t hold_us;   /* how long a frame waits for room */
	uint32_t age_s;
	uint32_t frames; /* mbufs of a pool */
	bool numa;
	char control[108];    /* path of the control socket; empty: none */
	const char *sched;    /* as it was given; NULL: not given */
	int policy, priority; /* of sched_setscheduler(2); -1: as it is */
	int32_t latency_us;   /* for /dev/cpu_dma_latency; -1: not asked */
};

extern const char *const forward_names[], *const rx_names[], *const instrument_names[];

/* argv[0] is skipped. -1 and the reason on anything that is not understood. 1: help was asked for and printed. */
int options_parse(int argc, char **argv, struct options *options, struct why *why);

/* The position of `word` in a list that ends with NULL; -1 if it is not there. */
int word_in(const char *word, const char *const *list);

#endif
