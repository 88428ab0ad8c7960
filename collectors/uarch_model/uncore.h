/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What cores share: the last-level cache of each NUMA node, and the coherence between the cores' private caches. An inclusive
 * LLC knows which cores it gave a line; elsewhere a request asks each other core, of which there are few. Between nodes any cache
 * that has a line hands it over, as with MESIF, and gives it up when another node's core is to write it.
 */
#ifndef VSPROF_UNCORE_H
#define VSPROF_UNCORE_H

#include "cache.h"
#include "profile.h"

#define MOST_CORES 16
#define MOST_NODES 4
#define LLC_LOCKS 1024
#define LINE_LOCKS 1024

/* Where a request that missed L2 was served; from SERVED_REMOTE_CACHE on, beyond the node's own LLC. */
enum served { SERVED_L2, SERVED_LLC, SERVED_SHARED, SERVED_MODIFIED, SERVED_REMOTE_CACHE, SERVED_LOCAL, SERVED_REMOTE, SERVED_COUNT };

struct core;

struct llc {
	struct cache cache;
	uint16_t *
		holders; /* by slot, of an inclusive LLC: the node's cores that were given the line, a bit each; they may have dropped it */
	uint64_t now;    /* requests so far; not exact when cores meet, which no order of use can be either */
	uint8_t locks[LLC_LOCKS]; /* spun on for nanoseconds, by a thread that missed its L2 */
};

struct uncore {
	const struct profile *profile;
	uint32_t core_count, node_count; /* nodes: at least 1 */
	uint32_t nodes_added;
	uint8_t held[LINE_LOCKS]; /* see uncore_hold */
	struct core *core[MOST_CORES];
	uint8_t node_of_core[MOST_CORES];
	uint64_t node_begin[MOST_NODES]; /* first line of each node's memory, ascending */
	struct llc llc[MOST_NODES];
};

bool uncore_init(struct uncore *uncore, const struct profile *profile, uint32_t core_count);
void uncore_free(struct uncore *uncore);
/*
 * One more NUMA node, with an LLC and memory of its own: from `first_line` to the next node's, ascending. The first call is about
 * node 0. Returns false without memory, or when there are too many.
 */
bool uncore_add_node(struct uncore *uncore, uint64_t first_line);

/*
 * From asking for a line until it is in the core's own caches, or from a state there to a stronger one, no other core may do the same with
 * this line: each would find that nobody else has it, both would keep it as their own, and neither would miss it ever again. Returns what
 * to let go; while it is held no other line may be.
 */
uint8_t *uncore_hold(struct uncore *uncore, uint64_t line);
void uncore_let_go(uint8_t *held);

/* Both of the following with `line` held. */

/* Bring `line` to core `index`, for a store if `own`; `state` is what the core may keep it in. */
enum served uncore_request(struct uncore *uncore, uint32_t index, uint64_t line, bool own, enum line_state *state);
/* Core `index` has `line` shared and is to write it: whether another core, or another node's LLC, had to give it up. */
bool uncore_upgrade(struct uncore *uncore, uint32_t index, uint64_t line);
/* Core `index` gave up a line of its L2. */
void uncore_evicted(struct uncore *uncore, uint32_t index, slot_t slot);

/* Cycles from load to use of data served there. */
uint32_t served_latency(const struct profile *profile, enum served served);

#endif
