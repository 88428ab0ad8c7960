/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cache: sequences worked out by hand, and random ones against a list of lines with the times of their last use. */
#include "cache.h"

#include "check.h"

#define MOST_HELD 64

/* The reference: all lines of the cache in one list, in no order; a set is those whose number leaves the same remainder. */
struct naive {
	uint32_t sets, ways, count;
	struct {
		uint64_t line, used;
		enum line_state state;
	} held[MOST_HELD];
};

static int naive_find(const struct naive *naive, uint64_t line)
{
	for (uint32_t i = 0; i < naive->count; i++)
		if (naive->held[i].line == line)
			return (int)i;
	return -1;
}

static enum line_state naive_remove(struct naive *naive, uint64_t line)
{
	int at = naive_find(naive, line);

	if (at < 0)
		return LINE_INVALID;
	enum line_state state = naive->held[at].state;
	naive->held[at] = naive->held[--naive->count];
	return state;
}

static slot_t naive_insert(struct naive *naive, uint64_t line, enum line_state state, uint64_t now)
{
	slot_t evicted = 0;
	uint32_t in_set = 0;
	int oldest = -1;

	for (uint32_t i = 0; i < naive->count; i++) {
		if (naive->held[i].line % naive->sets != line % naive->sets)
			continue;
		in_set++;
		if (oldest < 0 || naive->held[i].used < naive->held[oldest].used)
			oldest = (int)i;
	}
	if (in_set == naive->ways) {
		evicted = slot_make(naive->held[oldest].line, naive->held[oldest].state);
		naive_remove(naive, naive->held[oldest].line);
	}
	naive->held[naive->count].line = line;
	naive->held[naive->count].state = state;
	naive->held[naive->count++].used = now;
	return evicted;
}

static void against_the_list(uint32_t sets, uint32_t ways, uint32_t seed)
{
	struct random random = {seed};
	struct naive naive = {.sets = sets, .ways = ways};
	struct cache cache;
	uint64_t hits = 0;

	CHECK(cache_init(&cache, sets, ways));
	for (uint64_t now = 1; now <= 40000; now++) {
		uint64_t line = random_below(&random, 2 * sets * ways);
		enum line_state state = (enum line_state)(1 + random_below(&random, 3));
		int at = naive_find(&naive, line);
		slot_t *slot, evicted = 0;
		switch (random_below(&random, 8)) {
		case 0:
			EQUAL(cache_remove(&cache, line), naive_remove(&naive, line));
			break;
		case 1:
			slot = cache_peek(&cache, line);
			CHECK((slot != NULL) == (at >= 0));
			if (slot)
				EQUAL(*slot, slot_make(line, naive.held[at].state));
			break;
		default:
			slot = cache_touch(&cache, line, now);
			CHECK((slot != NULL) == (at >= 0));
			if (slot) {
				hits++;
				EQUAL(*slot, slot_make(line, naive.held[at].state));
				naive.held[at].used = now;
				break;
			}
			slot = cache_insert(&cache, line, state, now, &evicted);
			EQUAL(*slot, slot_make(line, state));
			EQUAL(evicted, naive_insert(&naive, line, state, now));
		}
	}
	CHECK(hits > 5000 && hits < 30000);
	cache_free(&cache);
}

/* Two sets of two ways: the oldest goes, and looking without using makes nothing younger. */
static void by_hand(void)
{
	struct cache cache;
	slot_t evicted;

	CHECK(cache_init(&cache, 2, 2));
	CHECK(!cache_touch(&cache, 4, 1));
	cache_insert(&cache, 4, LINE_EXCLUSIVE, 1, &evicted);
	EQUAL(evicted, 0);
	cache_insert(&cache, 6, LINE_MODIFIED, 2, &evicted);
	EQUAL(evicted, 0);
	cache_insert(&cache, 5, LINE_SHARED, 3, &evicted); /* the other set */
	EQUAL(evicted, 0);
	CHECK(cache_touch(&cache, 4, 4));
	CHECK(cache_peek(&cache, 6));
	cache_insert(&cache, 8, LINE_SHARED, 5, &evicted); /* 6 is older than 4 */
	EQUAL(slot_line(evicted), 6);
	EQUAL(slot_state(evicted), LINE_MODIFIED);
	CHECK(!cache_peek(&cache, 6) && cache_peek(&cache, 4) && cache_peek(&cache, 8));
	/* What was taken away leaves a place: nobody has to go, not even a line older than it. */
	EQUAL(cache_remove(&cache, 8), LINE_SHARED);
	EQUAL(cache_remove(&cache, 8), LINE_INVALID);
	cache_insert(&cache, 10, LINE_EXCLUSIVE, 6, &evicted);
	EQUAL(evicted, 0);
	CHECK(cache_peek(&cache, 4));
	cache_clear(&cache);
	CHECK(!cache_peek(&cache, 4) && !cache_peek(&cache, 5) && !cache_peek(&cache, 10));
	cache_free(&cache);
}

/* Line 0 is a line like others; three sets; more bits than 32. */
static void odd_numbers(void)
{
	struct cache cache;
	slot_t evicted;

	CHECK(cache_init(&cache, 3, 1));
	CHECK(!cache_peek(&cache, 0));
	cache_insert(&cache, 0, LINE_SHARED, 1, &evicted);
	EQUAL(slot_line(*cache_peek(&cache, 0)), 0);
	cache_insert(&cache, 1, LINE_SHARED, 2, &evicted);
	cache_insert(&cache, 5, LINE_SHARED, 3, &evicted);
	EQUAL(evicted, 0);
	cache_insert(&cache, 3, LINE_SHARED, 4, &evicted);
	EQUAL(evicted, slot_make(0, LINE_SHARED));
	cache_free(&cache);

	uint64_t high = MOST_LINES - 1;
	CHECK(cache_init(&cache, 64, 2));
	cache_insert(&cache, high, LINE_MODIFIED, 1, &evicted);
	CHECK(!cache_peek(&cache, high >> 6)); /* in the same set */
	EQUAL(slot_line(*cache_touch(&cache, high, 2)), high);
	EQUAL(cache_remove(&cache, high), LINE_MODIFIED);
	cache_free(&cache);

	/* Stamps begin anew, and the oldest still goes first. */
	CHECK(cache_init(&cache, 1, 2));
	cache_insert(&cache, 1, LINE_SHARED, UINT32_MAX - 1, &evicted);
	cache_insert(&cache, 2, LINE_SHARED, UINT32_MAX + 2ull, &evicted);
	cache_insert(&cache, 3, LINE_SHARED, UINT32_MAX + 3ull, &evicted);
	EQUAL(evicted, slot_make(1, LINE_SHARED));
	cache_free(&cache);
}

int main(void)
{
	by_hand();
	odd_numbers();
	against_the_list(1, 4, 1);
	against_the_list(4, 1, 2);
	against_the_list(8, 2, 3);
	against_the_list(3, 5, 4);
	against_the_list(4, 16, 5);
	return 0;
}
