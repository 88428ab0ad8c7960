/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

/*
 * Slots are read and written with relaxed atomics: other cores' threads invalidate and downgrade lines here without a lock. An
 * update that is lost when two threads meet in one set is one miss among millions; a lock in every access would not be.
 */
static inline slot_t get(const slot_t *slot)
{
    return __atomic_load_n(slot, __ATOMIC_RELAXED);
}
static inline void put(slot_t *slot, slot_t value)
{
    __atomic_store_n(slot, value, __ATOMIC_RELAXED);
}

bool cache_init(struct cache *cache, uint32_t sets, uint32_t ways)
{
    cache->sets = sets;
    cache->ways = ways;
    cache->slots = calloc((size_t)sets * ways, sizeof(slot_t));
    return cache->slots != NULL;
}

void cache_free(struct cache *cache)
{
    free(cache->slots);
    cache->slots = NULL;
}

void cache_clear(struct cache *cache)
{
    memset(cache->slots, 0, (size_t)cache->sets * cache->ways * sizeof(slot_t));
}

static inline slot_t *set_of(const struct cache *cache, uint64_t line)
{
    /* 32 bits of line number are 256 GiB of memory; a 32-bit remainder is three times as fast as a 64-bit one. */
    uint32_t set = cache->sets & (cache->sets - 1) ? (uint32_t)line % cache->sets : (uint32_t)line & (cache->sets - 1);
    return cache->slots + (size_t)set * cache->ways;
}

static inline int find(const slot_t *set, uint32_t ways, uint64_t line)
{
    for (uint32_t i = 0; i < ways; i++) {
        slot_t slot = get(&set[i]);
        if (slot_line(slot) == line && slot_state(slot) != LINE_INVALID)
            return (int)i;
    }
    return -1;
}

/* Make room at the front by moving the first `count` slots one back. */
static inline void age(slot_t *set, uint32_t count)
{
    for (uint32_t i = count; i > 0; i--)
        put(&set[i], get(&set[i - 1]));
}

slot_t *cache_touch(struct cache *cache, uint64_t line)
{
    slot_t *set = set_of(cache, line);
    int way = find(set, cache->ways, line);

    if (way < 0)
        return NULL;
    if (way > 0) {
        slot_t slot = get(&set[way]);
        age(set, (uint32_t)way);
        put(set, slot);
    }
    return set;
}

slot_t *cache_peek(const struct cache *cache, uint64_t line)
{
    slot_t *set = set_of(cache, line);
    int way = find(set, cache->ways, line);

    return way < 0 ? NULL : set + way;
}

slot_t cache_insert(struct cache *cache, uint64_t line, enum line_state state)
{
    slot_t *set = set_of(cache, line);
    uint32_t way = 0;

    while (way < cache->ways - 1 && slot_state(get(&set[way])) != LINE_INVALID)
        way++;
    slot_t evicted = get(&set[way]);
    age(set, way);
    put(set, slot_make(line, state));
    return slot_state(evicted) == LINE_INVALID ? 0 : evicted;
}

enum line_state cache_remove(struct cache *cache, uint64_t line)
{
    slot_t *slot = cache_peek(cache, line);

    if (!slot)
        return LINE_INVALID;
    enum line_state state = slot_state(get(slot));
    put(slot, 0);
    return state;
}
