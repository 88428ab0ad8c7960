/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "uncore.h"

#include <stdlib.h>
#include <string.h>

#include "core.h"

#define EVERYONE UINT32_MAX

static bool llc_init(struct llc *llc, const struct profile *profile)
{
	llc->holders =
		profile->llc_policy == LLC_INCLUSIVE ? calloc((size_t)profile->llc_sets * profile->llc_ways, sizeof(uint16_t)) : NULL;
	return cache_init(&llc->cache, profile->llc_sets, profile->llc_ways) && (llc->holders || profile->llc_policy != LLC_INCLUSIVE);
}

bool uncore_init(struct uncore *uncore, const struct profile *profile, uint32_t core_count)
{
	memset(uncore, 0, sizeof(*uncore));
	uncore->profile = profile;
	uncore->core_count = core_count;
	uncore->node_count = 1;
	return core_count <= MOST_CORES && llc_init(&uncore->llc[0], profile);
}

bool uncore_add_node(struct uncore *uncore, uint64_t first_line)
{
	uint32_t node = uncore->nodes_added;

	if (node == MOST_NODES || (node > 0 && first_line <= uncore->node_begin[node - 1]))
		return false;
	/* Node 0 is there from the beginning. */
	if (node > 0 && !llc_init(&uncore->llc[node], uncore->profile)) {
		cache_free(&uncore->llc[node].cache);
		free(uncore->llc[node].holders);
		return false;
	}
	uncore->node_begin[node] = first_line;
	uncore->node_count = uncore->nodes_added = node + 1;
	return true;
}

void uncore_free(struct uncore *uncore)
{
	for (uint32_t i = 0; i < uncore->node_count; i++) {
		cache_free(&uncore->llc[i].cache);
		free(uncore->llc[i].holders);
	}
}

static uint8_t *take(uint8_t *held)
{
	while (__atomic_test_and_set(held, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
	return held;
}

static uint8_t *lock(struct llc *llc, uint64_t line)
{
	/* One lock for all lines of a set: as cache.c, by 32 bits. */
	return take(&llc->locks[((uint32_t)line % llc->cache.sets) % LLC_LOCKS]);
}

static void unlock(uint8_t *held)
{
	__atomic_clear(held, __ATOMIC_RELEASE);
}

uint8_t *uncore_hold(struct uncore *uncore, uint64_t line)
{
	return take(&uncore->held[line % LINE_LOCKS]);
}

void uncore_let_go(uint8_t *held)
{
	unlock(held);
}

static uint64_t tick(struct llc *llc)
{
	uint64_t now = __atomic_load_n(&llc->now, __ATOMIC_RELAXED) + 1;

	__atomic_store_n(&llc->now, now, __ATOMIC_RELAXED);
	return now;
}

static uint32_t node_of_line(const struct uncore *uncore, uint64_t line)
{
	uint32_t node = uncore->node_count - 1;

	while (node > 0 && line < uncore->node_begin[node])
		node--;
	return node;
}

/* Ask those `holders` that are other cores for the line; they give it up if it is to be owned. Returns the strongest state any had. */
static enum line_state snoop(struct uncore *uncore, uint32_t index, uint64_t line, bool own, uint32_t holders)
{
	enum line_state strongest = LINE_INVALID;

	if (!uncore->profile->model_coherence)
		return strongest;
	for (uint32_t i = 0; i < uncore->core_count; i++) {
		if (i == index || !(holders >> i & 1))
			continue;
		enum line_state state = core_snooped(uncore->core[i], line, own);
		if (state > strongest)
			strongest = state;
	}
	return strongest;
}

/* The cores of other nodes, of which an LLC knows nothing. */
static uint32_t strangers(const struct uncore *uncore, uint32_t node)
{
	uint32_t cores = 0;

	for (uint32_t i = 0; uncore->node_count > 1 && i < uncore->core_count; i++)
		cores |= (uint32_t)(uncore->node_of_core[i] != node) << i;
	return cores;
}

/* What the other nodes have of the line, in a core or in the LLC alone; they give it up if it is to be owned. */
static enum line_state ask_other_nodes(struct uncore *uncore, uint32_t index, uint64_t line, bool own)
{
	uint32_t node = uncore->node_of_core[index];

	if (uncore->node_count == 1 || !uncore->profile->model_coherence)
		return LINE_INVALID;
	enum line_state strongest = snoop(uncore, index, line, own, strangers(uncore, node));
	for (uint32_t i = 0; i < uncore->node_count; i++) {
		if (i == node)
			continue;
		uint8_t *held = lock(&uncore->llc[i], line);
		struct cache *cache = &uncore->llc[i].cache;
		bool there = own ? cache_remove(cache, line) != LINE_INVALID : cache_peek(cache, line) != NULL;
		unlock(held);
		if (there && strongest == LINE_INVALID)
			strongest = LINE_SHARED;
	}
	return strongest;
}

/* An inclusive LLC drops no line that a core keeps: the cores drop it too. */
static void drop_everywhere(struct uncore *uncore, uint32_t holders, uint64_t line)
{
	for (uint32_t i = 0; i < uncore->core_count; i++)
		if (holders >> i & 1)
			core_snooped(uncore->core[i], line, true);
}

/* Core `index` has the line now, and the LLC keeps it, too. */
static void keep(struct uncore *uncore, uint32_t index, uint64_t line)
{
	struct llc *llc = &uncore->llc[uncore->node_of_core[index]];
	uint8_t *held = lock(llc, line);
	slot_t evicted = 0;
	uint32_t holders = 0;

	if (!cache_touch(&llc->cache, line, tick(llc))) {
		slot_t *slot = cache_insert(&llc->cache, line, LINE_SHARED, tick(llc), &evicted);
		if (llc->holders) {
			holders = llc->holders[slot - llc->cache.slots];
			llc->holders[slot - llc->cache.slots] = (uint16_t)(1u << index);
		}
	}
	unlock(held);
	if (evicted && llc->holders)
		drop_everywhere(uncore, holders, slot_line(evicted));
}

/*
 * Whether the LLC had the line; `holders` are the cores that may have it, too. A victim cache gives it away, the others keep it. An
 * inclusive one notes that core `index` gets it, and if it is to own it, that no other one has it any longer.
 */
static bool look_up(struct uncore *uncore, uint32_t index, uint64_t line, bool own, uint32_t *holders)
{
	struct llc *llc = &uncore->llc[uncore->node_of_core[index]];
	uint8_t *held = lock(llc, line);
	bool hit;

	*holders = llc->holders ? 0 : EVERYONE;
	if (uncore->profile->llc_policy == LLC_VICTIM) {
		hit = cache_remove(&llc->cache, line) != LINE_INVALID;
	} else {
		slot_t *slot = cache_touch(&llc->cache, line, tick(llc));
		hit = slot != NULL;
		if (hit && llc->holders) {
			uint16_t *known = &llc->holders[slot - llc->cache.slots];
			*holders = *known;
			*known = (uint16_t)((own && uncore->profile->model_coherence ? 0 : *known) | 1u << index);
		}
	}
	unlock(held);
	return hit;
}

enum served uncore_request(struct uncore *uncore, uint32_t index, uint64_t line, bool own, enum line_state *state)
{
	uint32_t node = uncore->node_of_core[index], holders;
	cache_expect(&uncore->llc[node].cache, line);
	bool hit = look_up(uncore, index, line, own, &holders);
	enum line_state others = snoop(uncore, index, line, own, holders & ~strangers(uncore, node));
	enum line_state far = ask_other_nodes(uncore, index, line, own);

	*state = own ? LINE_MODIFIED : others == LINE_INVALID && far == LINE_INVALID ? LINE_EXCLUSIVE : LINE_SHARED;
	if (!hit && uncore->profile->llc_policy != LLC_VICTIM)
		keep(uncore, index, line);
	if (others == LINE_MODIFIED)
		return SERVED_MODIFIED;
	/* A line that one core holds exclusive may have been written: that core must be asked, which takes longer than the LLC. */
	if (others == LINE_EXCLUSIVE || (others == LINE_SHARED && !hit))
		return SERVED_SHARED;
	if (hit)
		return SERVED_LLC;
	if (far != LINE_INVALID)
		return SERVED_REMOTE_CACHE;
	return node_of_line(uncore, line) == node ? SERVED_LOCAL : SERVED_REMOTE;
}

bool uncore_upgrade(struct uncore *uncore, uint32_t index, uint64_t line)
{
	uint32_t here = EVERYONE & ~strangers(uncore, uncore->node_of_core[index]);
	enum line_state others = snoop(uncore, index, line, true, here), far = ask_other_nodes(uncore, index, line, true);

	return others != LINE_INVALID || far != LINE_INVALID;
}

void uncore_evicted(struct uncore *uncore, uint32_t index, slot_t slot)
{
	if (uncore->profile->llc_policy == LLC_VICTIM || slot_state(slot) == LINE_MODIFIED)
		keep(uncore, index, slot_line(slot));
}

uint32_t served_latency(const struct profile *profile, enum served served)
{
	switch (served) {
	case SERVED_L2:
		return profile->l2_latency;
	case SERVED_LLC:
		return profile->llc_latency;
	case SERVED_SHARED:
		return profile->llc_latency_shared;
	case SERVED_MODIFIED:
		return profile->llc_latency_modified;
	case SERVED_REMOTE_CACHE:
		return profile->memory_latency_remote_cache;
	case SERVED_LOCAL:
		return profile->memory_latency_local;
	default:
		return profile->memory_latency_remote;
	}
}
