/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set-associative cache of physical lines with true LRU, by the time of each line's last use. A line carries its coherence
 * state (MESI).
 */
#ifndef VSPROF_CACHE_H
#define VSPROF_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#define LINE_SHIFT 6

enum line_state { LINE_INVALID, LINE_SHARED, LINE_EXCLUSIVE, LINE_MODIFIED };

/*
 * A slot: line number and state in one word, so that another core's thread takes a line away in one store. 30 bits of line number are
 * 64 GiB of memory; wider slots would fill the caches of the processor that this runs on.
 */
typedef uint32_t slot_t;
#define MOST_LINES (1ull << 30)
/* When a line was last used, by the lower bits of its core's count of uses: one that was not used for 4 billion of them seems fresh. */
typedef uint32_t stamp_t;

static inline slot_t slot_make(uint64_t line, enum line_state state)
{
	return (slot_t)(line << 2) | (slot_t)state;
}
static inline uint64_t slot_line(slot_t slot)
{
	return slot >> 2;
}
static inline enum line_state slot_state(slot_t slot)
{
	return (enum line_state)(slot & 3);
}

struct cache {
	uint32_t sets, ways;
	slot_t *slots;   /* sets x ways; 0: empty */
	stamp_t *stamps; /* of last use */
};

/* Returns false without memory. `sets` need not be a power of two. */
bool cache_init(struct cache *cache, uint32_t sets, uint32_t ways);
void cache_free(struct cache *cache);
void cache_clear(struct cache *cache);

/* The set of `line` is looked into soon: have all of it on its way at once, where the model's cache is larger than the real one. */
void cache_expect(const struct cache *cache, uint64_t line);

/* The slot of `line`, which is used at the time `now` (ever growing); NULL on a miss. */
slot_t *cache_touch(struct cache *cache, uint64_t line, uint64_t now);
/* The slot of `line` without using it; NULL on a miss. */
slot_t *cache_peek(const struct cache *cache, uint64_t line);
/* Put in a line that is not there. Returns its slot; `evicted` is what had to go, 0 for none. */
slot_t *cache_insert(struct cache *cache, uint64_t line, enum line_state state, uint64_t now, slot_t *evicted);
/* Take a line away; returns the state that it had. */
enum line_state cache_remove(struct cache *cache, uint64_t line);

#endif
