/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

/*
 * Slots are written with relaxed atomics: other cores' threads invalidate and downgrade lines here without a lock. An update
 * that is lost when two threads meet in one set is one miss among millions; a lock in every access would not be.
 */
static inline void put(slot_t *slot, slot_t value)
{
	__atomic_store_n(slot, value, __ATOMIC_RELAXED);
}

bool cache_init(struct cache *cache, uint32_t sets, uint32_t ways)
{
	size_t bytes = ((size_t)sets * ways * sizeof(slot_t) + 63) & ~(size_t)63;

	cache->sets = sets;
	cache->ways = ways;
	/* Aligned, so that a set of eight is one line of the real cache that this runs on. */
	cache->slots = aligned_alloc(64, bytes);
	cache->stamps = aligned_alloc(64, bytes);
	if (!cache->slots || !cache->stamps) {
		cache_free(cache);
		return false;
	}
	cache_clear(cache);
	return true;
}

void cache_free(struct cache *cache)
{
	free(cache->slots);
	free(cache->stamps);
	cache->slots = NULL;
	cache->stamps = NULL;
}

void cache_clear(struct cache *cache)
{
	memset(cache->slots, 0, (size_t)cache->sets * cache->ways * sizeof(slot_t));
	memset(cache->stamps, 0, (size_t)cache->sets * cache->ways * sizeof(stamp_t));
}

static inline size_t set_of(const struct cache *cache, uint64_t line)
{
	/* A 32-bit remainder is three times as fast as a 64-bit one. */
	uint32_t set = cache->sets & (cache->sets - 1) ? (uint32_t)line % cache->sets : (uint32_t)line & (cache->sets - 1);
	return (size_t)set * cache->ways;
}

void cache_expect(const struct cache *cache, uint64_t line)
{
	size_t set = set_of(cache, line);

	for (uint32_t way = 0; way < cache->ways; way += 64 / sizeof(slot_t)) {
		__builtin_prefetch(cache->slots + set + way, 1);
		__builtin_prefetch(cache->stamps + set + way, 1);
	}
}

/*
 * The way that holds `line`, or -1. All ways are looked at, without a branch: which one it is, the processor that runs this could
 * not predict, and a wrong guess costs more than the comparisons.
 */
static inline int find(const slot_t *set, uint32_t ways, uint64_t line)
{
	slot_t key = (slot_t)(line << 2);
	int found = -1;

	/* An empty slot is 0, no state is. */
	for (uint32_t i = 0; i < ways; i++)
		found = (set[i] ^ key) - 1 < 3 ? (int)i : found;
	return found;
}

slot_t *cache_touch(struct cache *cache, uint64_t line, uint64_t now)
{
	size_t set = set_of(cache, line);
	int way = find(cache->slots + set, cache->ways, line);

	if (way < 0)
		return NULL;
	cache->stamps[set + (size_t)way] = (stamp_t)now;
	return cache->slots + set + way;
}

slot_t *cache_peek(const struct cache *cache, uint64_t line)
{
	size_t set = set_of(cache, line);
	int way = find(cache->slots + set, cache->ways, line);

	return way < 0 ? NULL : cache->slots + set + way;
}

slot_t *cache_insert(struct cache *cache, uint64_t line, enum line_state state, uint64_t now, slot_t *evicted)
{
	size_t set = set_of(cache, line), way = 0;
	slot_t *slots = cache->slots + set;
	stamp_t *stamps = cache->stamps + set;

	/* The first that is empty, or else the oldest: no line's age is 0, for `now` is later than its last use. */
	uint64_t oldest = 0;
	for (size_t i = 0; i < cache->ways; i++) {
		uint64_t age = slots[i] ? (stamp_t)((stamp_t)now - stamps[i]) : UINT64_MAX;
		way = age > oldest ? i : way;
		oldest = age > oldest ? age : oldest;
	}
	*evicted = slots[way];
	stamps[way] = (stamp_t)now;
	put(&slots[way], slot_make(line, state));
	return &slots[way];
}

enum line_state cache_remove(struct cache *cache, uint64_t line)
{
	slot_t *slot = cache_peek(cache, line);

	if (!slot)
		return LINE_INVALID;
	enum line_state state = slot_state(*slot);
	put(slot, 0);
	return state;
}
