/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of hot spots: what is in it is right, what found no place is counted. */
#include "hot.h"

#include <string.h>

#include "check.h"
#include "counters.h"

static struct hot hot;

static const struct hot_spot *find(uint64_t pc, uint32_t thread, uint8_t mode)
{
	const struct hot_spot *found = NULL;

	for (uint32_t i = 0; i < HOT_SPOTS; i++) {
		const struct hot_spot *spot = &hot.spot[i];
		if (!spot->used || spot->pc != pc || spot->thread != thread || spot->mode != mode)
			continue;
		CHECK(!found); /* never twice */
		found = spot;
	}
	return found;
}

static void by_hand(void)
{
	hot_clear(&hot);
	hot_add(&hot, 0x400000, 0, 7, 1, HOT_samples);
	hot_add(&hot, 0x400000, 0, 7, 1, HOT_samples);
	hot_add(&hot, 0x400000, 0, 7, 1, HOT_branch_misses);
	hot_add(&hot, 0x400000, 0, 8, 1, HOT_samples);
	hot_add(&hot, 0x400000, 0, 7, 0, HOT_samples);
	hot_add(&hot, 0, 0, 0, 0, HOT_l1d_misses); /* all zeros are a place, too */
	EQUAL(find(0x400000, 7, 1)->count[HOT_samples], 2);
	EQUAL(find(0x400000, 7, 1)->count[HOT_branch_misses], 1);
	EQUAL(find(0x400000, 7, 1)->count[HOT_l1d_misses], 0);
	EQUAL(find(0x400000, 8, 1)->count[HOT_samples], 1);
	EQUAL(find(0x400000, 7, 0)->count[HOT_samples], 1);
	EQUAL(find(0, 0, 0)->count[HOT_l1d_misses], 1);
	EQUAL(hot.dropped, 0);
	hot_clear(&hot);
	CHECK(!find(0x400000, 7, 1));
}

/* As many places as a program has: all are held. `seen` is what was added, place by place. */
static void against_an_array(uint32_t places, uint32_t adds, bool full)
{
	static uint32_t seen[2 * HOT_SPOTS][HOT_KIND_COUNT];
	struct random random = {places};
	uint64_t held = 0, added = 0;

	hot_clear(&hot);
	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 0; i < adds; i++) {
		uint32_t place = random_below(&random, places), kind = random_below(&random, HOT_KIND_COUNT);
		hot_add(&hot, 0xffffffff81000000ull + place / 8 * 16, 0, place / 2 % 4, place % 2, (enum hot_kind)kind);
		seen[place][kind]++;
		added++;
	}
	for (uint32_t i = 0; i < HOT_SPOTS; i++) {
		const struct hot_spot *spot = &hot.spot[i];
		if (!spot->used)
			continue;
		uint32_t place = (uint32_t)(spot->pc - 0xffffffff81000000ull) / 16 * 8 + spot->thread * 2 + spot->mode;
		CHECK(place < places);
		for (int kind = 0; kind < HOT_KIND_COUNT; kind++) {
			held += spot->count[kind];
			/* A place is held from its first event on or not at all: nothing is taken out. */
			EQUAL(spot->count[kind], seen[place][kind]);
		}
	}
	EQUAL(held + hot.dropped, added);
	CHECK(full ? hot.dropped > 0 : hot.dropped == 0);
}

/* Of a poll that finds nothing, nothing is there; of one that finds something, of another thread and of the kernel, all is. */
static void polls(void)
{
	uint64_t pc = 0x1000;

	hot_clear(&hot);
	hot_add(&hot, pc, 0, 7, HOST_USER, HOT_samples); /* before the first poll's begin */
	EQUAL(find(pc, 7, HOST_USER)->count[HOT_samples], 1);
	hot_poll(&hot, 7, false);
	hot_add(&hot, pc, 0, 7, HOST_USER, HOT_samples);
	hot_add(&hot, pc + 16, 0, 7, HOST_USER, HOT_l2_misses);
	hot_add(&hot, pc, 0, 7, HOST_KERNEL, HOT_samples);
	hot_add(&hot, pc, 0, 8, HOST_USER, HOT_samples);
	EQUAL(find(pc, 7, HOST_KERNEL)->count[HOT_samples], 1);
	EQUAL(find(pc, 8, HOST_USER)->count[HOT_samples], 1);
	hot_poll(&hot, 7, true);
	EQUAL(find(pc, 7, HOST_USER)->count[HOT_samples], 1);
	CHECK(!find(pc + 16, 7, HOST_USER));
	hot_add(&hot, pc, 0, 7, HOST_USER, HOT_samples);
	hot_poll(&hot, 7, false);
	EQUAL(find(pc, 7, HOST_USER)->count[HOT_samples], 2);
	/* Another thread's poll begins within it: its own were empty, this one's end is unknown. */
	hot_add(&hot, pc, 0, 7, HOST_USER, HOT_samples);
	hot_poll(&hot, 8, true);
	EQUAL(find(pc, 7, HOST_USER)->count[HOT_samples], 3);
	hot_add(&hot, pc, 0, 8, HOST_USER, HOT_samples);
	hot_release(&hot);
	EQUAL(find(pc, 8, HOST_USER)->count[HOT_samples], 2);
	/* More than can be held: all are kept, whatever the poll finds. */
	hot_poll(&hot, 7, false);
	for (int i = 0; i < HOT_HELD + 10; i++)
		hot_add(&hot, pc + 32, 0, 7, HOST_USER, HOT_l1d_misses);
	hot_poll(&hot, 7, true);
	EQUAL(find(pc + 32, 7, HOST_USER)->count[HOT_l1d_misses], HOT_HELD + 10);
	hot_clear(&hot);
	CHECK(!hot.holding);
}

int main(void)
{
	polls();
	EQUAL(strcmp(hot_kind_names[HOT_samples], "samples"), 0);
	EQUAL(strcmp(hot_kind_names[HOT_KIND_COUNT - 1], "branch_misses"), 0);
	by_hand();
	against_an_array(3000, 100000, false);
	against_an_array(2 * HOT_SPOTS, 2000000, true);
	return 0;
}
