/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One core, by hand: what each event costs and counts. test_core_naive.c has the long random sequences. */
#include <string.h>

#include "machine.h"

#define KERNEL 0xffffffff81000000ull

/* Loads and stores. */

static void a_load_from_memory_and_one_from_l1(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	const struct counters *now = core->now;

	CHECK(load(core, 0x10000));
	EQUAL(now->loads, 1);
	EQUAL(now->dtlb_misses, 1);
	EQUAL(now->dtlb_walks, 1);
	EQUAL(now->walk_cycles, 10);
	EQUAL(now->stall_dtlb, 5);
	EQUAL(now->l1d_misses, 1);
	EQUAL(now->l2_accesses, 1);
	EQUAL(now->l2_misses, 1);
	EQUAL(now->llc_misses, 1);
	EQUAL(now->memory_local, 1);
	EQUAL(now->stall_memory, 204 - 4);
	CHECK(!load(core, 0x10038));
	CHECK(!load(core, 0x10000));
	/* The line is the core's own: a store tells nobody. */
	store(core, 0x10008);
	store(core, 0x10008);
	EQUAL(now->loads, 3);
	EQUAL(now->stores, 2);
	EQUAL(now->l1d_misses, 1);
	EQUAL(now->l1d_upgrades, 0);
	EQUAL(now->dtlb_misses, 1);
	machine_free(machine);
}

static void what_a_blind_core_runs_leaves_all_as_it_was(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block near = plain_block(KERNEL, 16), far = plain_block(KERNEL + 0x10000, 16);
	struct counters before;

	load(core, 0x10000);
	core_block(core, &near);
	before = *core->now;
	core->blind = true;
	for (uint64_t i = 1; i <= 100; i++) {
		CHECK(!load(core, 0x10000 + i * 4096));
		store(core, 0x20000 + i * 4096);
	}
	core_block(core, &far);
	core->blind = false;
	EQUAL(core->now->l1d_misses, before.l1d_misses);
	EQUAL(core->now->dtlb_misses, before.dtlb_misses);
	EQUAL(core->now->l1i_misses, before.l1i_misses);
	EQUAL(core->now->stall_memory, before.stall_memory);
	/* What it knew, it knows; what it ran without seeing, it does not. */
	CHECK(!load(core, 0x10000));
	EQUAL(core->now->l1d_misses, before.l1d_misses);
	core_block(core, &far);
	EQUAL(core->now->l1i_misses, before.l1i_misses + 1);
	CHECK(load(core, 0x11000));
	EQUAL(core->now->l1d_misses, before.l1d_misses + 1);
	machine_free(machine);
}

/* 9 lines of one set of 8 ways: the first comes from L2 then. */
static void an_l2_hit(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];

	for (uint64_t i = 0; i < 9; i++)
		CHECK(load(core, 0x10000 + i * 4096));
	EQUAL(core->now->stall_l2, 0);
	CHECK(load(core, 0x10000));
	EQUAL(core->now->l1d_misses, 10);
	EQUAL(core->now->l2_accesses, 10);
	EQUAL(core->now->l2_misses, 9);
	core_settle(core);
	EQUAL(core->now->stall_l2, (14 - 4) / 2);
	/* The address was just loaded: nothing hides the latency. */
	core_loaded(core, 0x11000 - 8);
	CHECK(load(core, 0x11000));
	EQUAL(core->now->stall_l2, 5 + 14);
	/* A stored line is still modified when it comes back from L2. */
	store(core, 0x12000);
	for (uint64_t i = 0; i < 8; i++)
		load(core, 0x20000 + i * 4096);
	load(core, 0x12000);
	EQUAL(slot_state(*cache_peek(&core->l1d, 0x12000 >> 6)), LINE_MODIFIED);
	machine_free(machine);
}

static void long_misses_overlap_unless_one_needs_the_other(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block block = plain_block(KERNEL, 16);
	uint64_t *stall = &core->now->stall_memory;

	load(core, 0x10000);
	EQUAL(*stall, 200);
	load(core, 0x20000); /* in the shadow: a quarter */
	EQUAL(*stall, 250);
	/* A pointer: within 4 KiB behind what the last missing load got. */
	core_loaded(core, 0x30000);
	load(core, 0x30fc0);
	EQUAL(*stall, 454);
	core_loaded(core, 0x40000);
	load(core, 0x41000);
	EQUAL(*stall, 504);
	core_loaded(core, 0x50000);
	load(core, 0x4ffc0);
	EQUAL(*stall, 554);
	/* The value is that of the last missing load; another miss in between makes it unknown. */
	core_loaded(core, 0x60000);
	load(core, 0x70000);
	load(core, 0x60000);
	EQUAL(*stall, 654);
	/* Nobody waits for stores, and what a store misses is not a value. */
	core_loaded(core, 0x80000);
	store(core, 0x90000);
	load(core, 0x80000);
	EQUAL(*stall, 704);
	/* 9 blocks of 10 instructions later the shadow still reaches, after 100 instructions it does not. */
	for (int i = 0; i < 9; i++)
		core_block(core, &block);
	load(core, 0xa0000);
	EQUAL(*stall, 754);
	core_block(core, &block);
	load(core, 0xb0000);
	EQUAL(*stall, 954);
	load(core, 0xc0000);
	EQUAL(*stall, 1004);
	machine_free(machine);
}

/* One whose LLC has the first line of eight pages from 0x10000 on, which nothing nearer has. */
static struct machine *machine_with_lines_in_the_llc(void)
{
	struct profile profile = profile_without_walks();

	profile.l2_sets = profile.l2_ways = 1;
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	core->spin_ticks = 0;
	for (int i = 0; i < 8; i++)
		load(core, 0x10000 + 0x1000 * (uint64_t)i);
	for (int i = 0; i < 8; i++)
		core_snooped(core, (0x10000 + 0x1000 * (uint64_t)i) >> 6, true);
	return machine;
}

/* The same in what the LLC serves, within a third of the reorder buffer; what L2 serves neither casts a shadow nor stands in one. */
static void near_misses_overlap(void)
{
	struct machine *machine = machine_with_lines_in_the_llc();
	struct core *core = machine->core[0];
	const struct {
		uint64_t after, cycles;
	} cases[] = {{1000, 25}, {32, 6}, {0, 6}, {33, 25}, {32, 6}, {1, 25}};
	/* Each is charged with the next one. */
	for (size_t i = 0; i <= sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t before = core->now->stall_llc;
		core->retired += i < sizeof(cases) / sizeof(cases[0]) ? cases[i].after : 0;
		load(core, 0x10000 + 0x1000 * i);
		EQUAL(core->now->stall_llc - before, i ? cases[i - 1].cycles : 0);
	}
	machine_free(machine);
}

/* What something near serves is hidden where instructions came behind it that could not fill the core. */
static void what_leaves_the_core_room_hides_near_misses_before_it(void)
{
	struct machine *machine = machine_with_lines_in_the_llc();
	struct core *core = machine->core[0];
	const struct {
		uint64_t instructions, spare, stall;
	} cases[] = {
		{80, 0, 25},
		{80, 5, 20},
		{80, 40, 0},
		{400, 40, 15}, /* a quarter of the 400 fits into the reorder buffer, and so a quarter of 40 cycles counts */
		{80, 0, 25},   /* what is left of it is gone */
	};
	core->spare += 1000 * SPARE_PART; /* nobody is there to be hidden */
	load(core, 0x10000);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t before = core->now->stall_llc;
		core->retired += cases[i].instructions;
		core->spare += cases[i].spare * SPARE_PART;
		load(core, 0x11000 + 0x1000 * i);
		EQUAL(core->now->stall_llc - before, cases[i].stall);
	}
	machine_free(machine);
}

/* So is what L2 serves; but not a load that waits for the value of the one before. */
static void what_leaves_the_core_room_hides_hits_of_l2_but_no_chain(void)
{
	struct profile profile = profile_without_walks();

	profile.l1d_sets = profile.l1d_ways = 1;
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	const uint64_t stalls[] = {5, 2, 0};
	load(core, 0x10000);
	load(core, 0x11000);
	load(core, 0x10000);
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t before = core->now->stall_l2;
		core->retired += 40;
		core->spare += 3 * i * SPARE_PART;
		load(core, 0x10000 + 0x1000 * (1 - i % 2));
		EQUAL(core->now->stall_l2 - before, stalls[i]);
	}
	/* The one before, and at once its own 14. */
	uint64_t before = core->now->stall_l2;
	core->spare += 6 * SPARE_PART;
	core_loaded(core, 0x10000);
	load(core, 0x10000);
	EQUAL(core->now->stall_l2 - before, 14);
	machine_free(machine);
}

/* Twice 10 instructions, at 2 a cycle, run while the value is on its way; after 10 times 40 it has long been there. */
static void what_runs_before_a_loaded_address_is_used_is_hidden_by_its_latency(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block block = plain_block(KERNEL, 16);
	uint64_t *stall = &core->now->stall_memory;

	load(core, 0x10000);
	EQUAL(*stall, 200);
	core_loaded(core, 0x20000);
	core_block(core, &block);
	core_block(core, &block);
	load(core, 0x20000);
	EQUAL(*stall, 200 + 204 - 10);
	core_loaded(core, 0x30000);
	for (int i = 0; i < 40; i++)
		core_block(core, &block);
	load(core, 0x30000);
	EQUAL(*stall, 394 + 200);
	machine_free(machine);
}

static void what_l1_drops_goes_to_l2_and_what_l2_drops_to_the_llc(void)
{
	struct profile profile = profile_without_walks();
	uint64_t a = 0x10000, b = 0x20000, c = 0x30000, d = 0x40000;

	profile.l1d_sets = profile.l1d_ways = 1;
	profile.l2_sets = 1;
	profile.l2_ways = 2;
	for (profile.llc_policy = LLC_INCLUSIVE; profile.llc_policy <= LLC_VICTIM; profile.llc_policy++) {
		struct machine *machine = machine_new(&profile, 1);
		struct core *core = machine->core[0];
		struct cache *llc = &machine->uncore.llc[0].cache;
		bool victim = profile.llc_policy == LLC_VICTIM;
		store(core, a);
		EQUAL(cache_peek(llc, a >> 6) != NULL, !victim);
		load(core, b); /* L1 drops a, modified, which makes it L2's younger one */
		load(core, c); /* L2 drops b, which memory has too: only a victim cache wants it */
		CHECK(!cache_peek(&core->l2, b >> 6) && cache_peek(&core->l2, a >> 6) && cache_peek(&core->l2, c >> 6));
		EQUAL(cache_peek(llc, a >> 6) != NULL, !victim);
		CHECK(cache_peek(llc, b >> 6));
		load(core, d); /* L2 drops a, modified: every LLC takes it */
		CHECK(!cache_peek(&core->l2, a >> 6) && cache_peek(llc, a >> 6));
		EQUAL(core->now->llc_misses, 4);
		load(core, a);
		EQUAL(core->now->llc_misses, 4);
		core_settle(core);
		EQUAL(core->now->stall_llc, (54 - 4) / 2);
		EQUAL(cache_peek(llc, a >> 6) != NULL, !victim); /* a victim cache gave it away */
		machine_free(machine);
	}
}

/* Prefetchers. */

static bool in_l2(const struct core *core, uint64_t address)
{
	return cache_peek(&core->l2, address >> 6) != NULL;
}

static void prefetchers(void)
{
	struct profile profile = profile_without_walks();
	struct block block = plain_block(KERNEL, 16), at_the_end = plain_block(KERNEL + 0x5fc0, 16);
	struct machine *machine = machine_new(&profile, 1);

	for (int i = 0; i < 8; i++)
		load(machine->core[0], 0x10000 + i * 64);
	core_block(machine->core[0], &block);
	EQUAL(machine->core[0]->now->prefetches, 0);
	machine_free(machine);

	profile.prefetch_l2_adjacent = 1;
	machine = machine_new(&profile, 1);
	load(machine->core[0], 0x10040);
	CHECK(in_l2(machine->core[0], 0x10000) && !in_l2(machine->core[0], 0x10080));
	EQUAL(machine->core[0]->now->prefetches, 1);
	EQUAL(machine->core[0]->now->l2_accesses, 1);
	EQUAL(machine->core[0]->now->llc_misses, 1);
	load(machine->core[0], 0x10000); /* is there: no more prefetches */
	EQUAL(machine->core[0]->now->prefetches, 1);
	EQUAL(machine->core[0]->now->l2_misses, 1);
	machine_free(machine);

	profile.prefetch_l2_adjacent = 0;
	profile.prefetch_l1i_next = 1;
	machine = machine_new(&profile, 1);
	core_block(machine->core[0], &block);
	CHECK(in_l2(machine->core[0], KERNEL + 64));
	EQUAL(machine->core[0]->now->prefetches, 1);
	core_block(machine->core[0], &at_the_end); /* never beyond its page */
	EQUAL(machine->core[0]->now->prefetches, 1);
	machine_free(machine);
}

/* The third line in a row, up or down, is a stream; a step aside ends it; a prefetch never crosses a page's border. */
static void streams(void)
{
	struct profile profile = profile_without_walks();

	profile.prefetch_l2_stream = 4;
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	load(core, 0x10000 + 10 * 64);
	load(core, 0x10000 + 11 * 64);
	EQUAL(core->now->prefetches, 0);
	load(core, 0x10000 + 12 * 64);
	EQUAL(core->now->prefetches, 4);
	CHECK(in_l2(core, 0x10000 + 16 * 64) && !in_l2(core, 0x10000 + 17 * 64));
	load(core, 0x10000 + 13 * 64);
	EQUAL(core->now->prefetches, 5);
	EQUAL(core->now->l2_misses, 3);
	load(core, 0x10000 + 40 * 64);
	load(core, 0x10000 + 39 * 64);
	EQUAL(core->now->prefetches, 5);
	load(core, 0x10000 + 38 * 64);
	EQUAL(core->now->prefetches, 9);
	CHECK(in_l2(core, 0x10000 + 34 * 64));
	for (int i = 60; i < 63; i++)
		load(core, 0x20000 + i * 64);
	EQUAL(core->now->prefetches, 10);
	CHECK(in_l2(core, 0x20000 + 63 * 64) && !in_l2(core, 0x21000));
	machine_free(machine);
}

/* A stream that came to its page's border goes on in the next page, where all lines ahead are asked for anew. */
static void streams_go_on_in_the_next_page(void)
{
	struct profile profile = profile_without_walks();

	profile.prefetch_l2_stream = 4;
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	for (int i = 60; i < 64; i++)
		load(core, 0x10000 + i * 64);
	EQUAL(core->now->prefetches, 1);
	load(core, 0x11000);
	EQUAL(core->now->prefetches, 5);
	CHECK(in_l2(core, 0x11000 + 4 * 64));
	load(core, 0x30000); /* not behind the border of a page that a stream came to */
	EQUAL(core->now->prefetches, 5);
	for (int i = 2; i >= 0; i--)
		load(core, 0x50000 + i * 64);
	EQUAL(core->now->prefetches, 5);
	load(core, 0x50000 - 64);
	EQUAL(core->now->prefetches, 9);
	machine_free(machine);
}

/* The second line in a row brings the next into L1D; what nobody has to wait for costs L1D's time for it, and no more. */
static void streams_into_l1d(void)
{
	struct profile profile = profile_without_walks();

	profile.prefetch_l1_stream = 1;
	profile.l2_line_cycles = 2;
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct counters *now = core->now;
	/* Into L2 and L1D, and out of L1D again by other lines of the same sets. */
	for (uint64_t i = 0; i < 8; i++)
		store(core, 0x10000 + i * 64);
	for (uint64_t way = 1; way <= 8; way++)
		for (uint64_t i = 0; i < 8; i++)
			store(core, 0x10000 + way * 0x2000 + i * 64);
	EQUAL(now->prefetches, 0);
	uint64_t misses = now->l1d_misses, l2 = now->stall_l2;
	for (uint64_t i = 0; i < 8; i++)
		for (uint64_t word = 0; word < 8; word++)
			load(core, 0x10000 + i * 64 + word * 8);
	EQUAL(now->l1d_misses, misses + 2);
	core_settle(core);
	EQUAL(now->stall_l2, l2 + 2 * 5 + 6 * 2); /* half of an L2 hit's 10 cycles beyond L1D */
	EQUAL(now->prefetches, 1);                /* the one behind them; they were all in L2 */
	machine_free(machine);
}

/* By prefetch instructions: what of a line's way is left when it is loaded is waited for. */
static void asked_for_by_the_program(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 2);
	struct core *core = machine->core[0];
	struct counters *now = core->now;
	/* The translation first. */
	load(core, 0x10000);
	uint64_t stall = now->stall_memory, misses = now->l1d_misses;

	core_prefetch(core, 0x10040, false, false);
	EQUAL(now->stall_memory, stall);
	EQUAL(now->loads, 1);
	EQUAL(now->l2_accesses, 1);
	EQUAL(now->prefetches, 1);
	load(core, 0x10040); /* at once: all of the way from memory, 204 cycles, but L1D's 4 */
	EQUAL(now->stall_memory, stall + 200);
	load(core, 0x10048);
	EQUAL(now->stall_memory, stall + 200);

	core_prefetch(core, 0x10080, false, false);
	core->flow += 150 * CHAIN_PART;
	load(core, 0x10080);
	EQUAL(now->stall_memory, stall + 250);

	core_prefetch(core, 0x100c0, false, false);
	core_prefetch(core, 0x100c0, false, false);
	core->flow += 200 * CHAIN_PART;
	load(core, 0x100c0);
	EQUAL(now->stall_memory, stall + 250);
	EQUAL(now->l1d_misses, misses);
	EQUAL(now->prefetches, 3);

	/* Eleven lines for ten fill buffers: the last one waits for the first, 200 cycles, of which the reorder buffer hides 25. */
	core->flow += 1000 * CHAIN_PART;
	stall = now->stall_memory;
	for (uint64_t i = 0; i < 11; i++)
		core_prefetch(core, 0x10400 + i * 64, false, false);
	core->flow += 200 * CHAIN_PART;
	for (uint64_t i = 0; i < 10; i++)
		load(core, 0x10400 + i * 64);
	EQUAL(now->stall_memory, stall + 175);
	load(core, 0x10400 + 10 * 64);
	EQUAL(now->stall_memory, stall + 200);
	stall = now->stall_memory - 250;

	/* Into L2 alone: then it is a miss of L1D that L2 serves. */
	core_prefetch(core, 0x10100, false, true);
	load(core, 0x10100);
	EQUAL(now->l1d_misses, misses + 1);
	EQUAL(now->stall_memory, stall + 250);

	/* What else the core waited for, the line was under way. */
	core_prefetch(core, 0x101c0, false, false);
	now->stall_mode += 200;
	load(core, 0x101c0);
	EQUAL(now->stall_memory, stall + 250);

	/* To be written: another core's copy is taken away at once, and the store need not. */
	load(machine->core[1], 0x10140);
	core_prefetch(core, 0x10140, true, false);
	CHECK(!cache_peek(&machine->core[1]->l1d, 0x10140 >> LINE_SHIFT));
	store(core, 0x10140);
	EQUAL(now->l1d_upgrades, 0);
	EQUAL(now->l1d_misses, misses + 1);
	/* The same of a line that is here already, and shared. */
	load(core, 0x10180);
	load(machine->core[1], 0x10180);
	core_prefetch(core, 0x10180, true, false);
	EQUAL(now->l1d_upgrades, 1);
	CHECK(!cache_peek(&machine->core[1]->l1d, 0x10180 >> LINE_SHIFT));
	machine_free(machine);
}

/*
 * What comes from memory is asked for too late to be there at once; stores ask for nothing ahead; a page's border is the limit
 * until a load has gone over it.
 */
static void streams_into_l1d_from_memory(void)
{
	struct profile profile = profile_without_walks();

	profile.prefetch_l1_stream = 1;
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct counters *now = core->now;
	load(core, 0x10f00);
	load(core, 0x10f40);
	EQUAL(now->l1d_misses, 2);
	EQUAL(now->prefetches, 1);
	uint64_t stall = now->stall_memory;
	load(core, 0x10f80);
	EQUAL(now->l1d_misses, 2);
	EQUAL(now->stall_memory, stall + 50); /* as in another miss's shadow */
	load(core, 0x10f80);
	load(core, 0x10f88);
	EQUAL(now->stall_memory, stall + 50);
	load(core, 0x10fc0);
	EQUAL(now->stall_memory, stall + 2 * 50);
	load(core, 0x11000); /* the first one of the next page, which its stream comes to */
	EQUAL(now->stall_memory, stall + 2 * 50);
	EQUAL(now->l1d_misses, 2);
	load(core, 0x11040);
	EQUAL(now->l1d_misses, 2);
	EQUAL(now->prefetches, 5);
	load(core, 0x13000); /* and of one that no stream comes to */
	EQUAL(now->l1d_misses, 3);
	EQUAL(now->prefetches, 5);
	store(core, 0x20000);
	store(core, 0x20040);
	store(core, 0x20080);
	EQUAL(now->prefetches, 5);
	machine_free(machine);
}

/* Lines come from memory one after the other: more than 16 under way, and the core waits; what it waits for anyway makes room. */
static void memory_has_a_rate(void)
{
	struct profile profile = profile_without_walks();

	profile.memory_line_cycles = 10;
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block block = plain_block(KERNEL, 16);
	block.instructions = 4;
	block.flow = FLOW(4);
	core_block(core, &block); /* its code comes from memory, too */
	for (int i = 0; i < 99; i++)
		store(core, 0x100000 + i * 4096);
	EQUAL(core->now->stall_memory, 84 * 10);
	for (int i = 0; i < 5; i++)
		core_block(core, &block);
	uint64_t before = core->now->stall_memory;
	store(core, 0x400000); /* 10 cycles passed, which is what a line takes */
	EQUAL(core->now->stall_memory, before);
	store(core, 0x401000);
	EQUAL(core->now->stall_memory, before + 10);
	load(core, 0x500000); /* the core waits for it, so that the next finds room */
	before = core->now->stall_memory;
	for (int i = 0; i < 16; i++)
		store(core, 0x600000 + i * 4096);
	EQUAL(core->now->stall_memory, before);
	machine_free(machine);
}

/* Jumps, calls and returns that follow each other within a cycle's instructions take a cycle each. */
static void one_transfer_a_cycle(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block one = plain_block(KERNEL, 16), other = plain_block(KERNEL + 0x40, 16);

	one.kind = other.kind = BRANCH_JUMP;
	one.instructions = other.instructions = 1;
	one.flow = other.flow = FLOW(1);
	one.target = other.pc;
	other.target = one.pc;
	for (int i = 0; i < 50; i++) {
		core_block(core, &one);
		core_block(core, &other);
	}
	/* 100 instructions flow in 50 cycles; 99 jumps take as many. */
	EQUAL(all_counters(core).chain_cycles, 49);
	other.instructions = 100;
	other.flow = FLOW(100);
	uint64_t before = all_counters(core).chain_cycles;
	core_block(core, &one);
	core_block(core, &other);
	core_block(core, &one);
	EQUAL(all_counters(core).chain_cycles, before + 1);
	/* In the 50 cycles of these the front end got ahead by 8, of which it loses a half with each jump. */
	other.instructions = 1;
	other.flow = FLOW(1);
	for (int i = 0; i < 8; i++) {
		core_block(core, &other);
		core_block(core, &one);
	}
	EQUAL(all_counters(core).chain_cycles, before + 1);
	core_block(core, &other);
	core_block(core, &one);
	EQUAL(all_counters(core).chain_cycles, before + 2);
	machine_free(machine);
}

/* Instructions. */

static void lines_of_code(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block one = plain_block(KERNEL, 64), three = plain_block(KERNEL + 63, 66);
	const struct counters *now = core->now;

	core_block(core, &one);
	EQUAL(now->instructions, 10);
	EQUAL(now->l1i_fetches, 1);
	EQUAL(now->l1i_misses, 1);
	EQUAL(now->itlb_walks, 1);
	EQUAL(now->stall_itlb, 5);
	EQUAL(now->stall_frontend, 204);
	EQUAL(now->l2_accesses, 1);
	EQUAL(now->llc_misses, 1);
	core_block(core, &one);
	EQUAL(now->l1i_fetches, 2);
	EQUAL(now->l1i_misses, 1);
	core_block(core, &three);
	EQUAL(now->l1i_fetches, 5);
	EQUAL(now->l1i_misses, 3);
	EQUAL(core->retired, 30);
	/* The line that runs is taken away: it must be fetched again, though nothing else ran in between. */
	core_block(core, &one);
	EQUAL(now->l1i_misses, 3);
	EQUAL(core_snooped(core, KERNEL >> 6, true), LINE_EXCLUSIVE); /* as L2 had it */
	core_block(core, &one);
	EQUAL(now->l1i_misses, 4);
	/* What is left in L1I alone is known of, too. */
	cache_remove(&core->l2, KERNEL >> 6);
	EQUAL(core_snooped(core, KERNEL >> 6, false), LINE_SHARED);
	core_block(core, &one);
	EQUAL(now->l1i_misses, 4);
	EQUAL(core_snooped(core, KERNEL >> 6, true), LINE_SHARED);
	EQUAL(core_snooped(core, KERNEL >> 6, true), LINE_INVALID);
	machine_free(machine);
}

/* An LLC of one line, which the cores must not keep once it is dropped: the prefetch drops what it came with. */
/* L2's 14 cycles: the front end was there before, unless it had gone another way. */
static void code_is_asked_for_ahead(void)
{
	struct profile profile = profile_without_walks();
	profile.core_fetch_ahead = 20;
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	uint64_t *stall = &core->now->stall_frontend;
	struct block lines[9], two = plain_block(KERNEL + 16 * 4096 - 64, 128);

	for (int i = 0; i < 9; i++) {
		lines[i] = plain_block(KERNEL + (uint64_t)i * 4096, 64);
		lines[i].kind = BRANCH_OTHER; /* never predicted, and so never wrong */
		core_block(core, &lines[i]);
	}
	EQUAL(*stall, 9 * (204 - 20));
	core_block(core, &lines[0]);
	EQUAL(core->now->l2_accesses, 10);
	EQUAL(*stall, 9 * (204 - 20));
	/* An interrupt: from a block without a branch to somewhere else. The second line is ahead again. */
	lines[0].kind = BRANCH_NONE;
	core_block(core, &two);
	EQUAL(core->now->interrupts, 1);
	EQUAL(*stall, 9 * (204 - 20) + 204 + 204 - 20);
	machine_free(machine);
}

static void a_line_that_is_gone_at_once(void)
{
	struct profile profile = profile_without_walks();
	struct block block = plain_block(KERNEL, 16);

	profile.llc_sets = profile.llc_ways = 1;
	profile.llc_policy = LLC_INCLUSIVE;
	profile.prefetch_l1i_next = 1;
	struct machine *machine = machine_new(&profile, 1);
	for (uint64_t i = 1; i < 4; i++) {
		core_block(machine->core[0], &block);
		EQUAL(machine->core[0]->now->l1i_misses, i);
	}
	machine_free(machine);
}

static void modes(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block kernel = plain_block(KERNEL, 16), user = plain_block(0x400000, 16), special = user;

	kernel.kind = user.kind = special.kind = BRANCH_OTHER;
	special.atomics = 2;
	special.pauses = 1;
	special.way |= SPECIAL_WAY;
	core_block(core, &kernel);
	core_block(core, &user);
	core_block(core, &user);
	core_block(core, &kernel);
	EQUAL(core->counters[HOST_USER].instructions, 20);
	EQUAL(core->counters[HOST_KERNEL].instructions, 20);
	EQUAL(core->counters[HOST_KERNEL].kernel_entries, 1);
	EQUAL(core->counters[HOST_KERNEL].stall_mode, 200);
	EQUAL(core->counters[HOST_USER].kernel_entries, 0);
	load(core, 0x10000);
	EQUAL(core->counters[HOST_KERNEL].loads, 1);
	core_block(core, &special);
	core_block(core, &special);
	EQUAL(core->counters[HOST_USER].atomics, 4);
	EQUAL(core->counters[HOST_USER].pauses, 2);
	EQUAL(core->counters[HOST_USER].stall_mode, 4 * 18 + 2 * 40);
	/* Into the guest and back is no kernel entry; within the guest it is. */
	core_enter(core, true);
	core_block(core, &kernel);
	EQUAL(core->counters[GUEST_KERNEL].kernel_entries, 0);
	core_block(core, &user);
	core_block(core, &kernel);
	EQUAL(core->counters[GUEST_KERNEL].kernel_entries, 1);
	core_enter(core, false);
	core_block(core, &kernel);
	EQUAL(core->counters[HOST_KERNEL].kernel_entries, 1);
	EQUAL(core->counters[GUEST_USER].instructions, 10);
	EQUAL(core->counters[GUEST_KERNEL].instructions, 20);
	machine_free(machine);
}

static struct block ending(uint64_t pc, enum branch_kind kind, uint64_t target)
{
	struct block block = plain_block(pc, 16);

	block.kind = (uint8_t)kind;
	block.target = target;
	return block;
}

/* What `from` followed by `to` counts: branches, misses, interrupts. */
static void check_branch(
	bool modelled, enum branch_kind kind, uint64_t target, uint64_t to, uint64_t branches, uint64_t misses, uint64_t interrupts)
{
	struct profile profile = profile_without_walks();

	profile.model_branches = modelled;
	struct machine *machine = machine_new(&profile, 1);
	struct block from = ending(KERNEL, kind, target), next = plain_block(to, 16);
	core_block(machine->core[0], &from);
	core_block(machine->core[0], &next);
	EQUAL(machine->core[0]->now->branches, branches);
	EQUAL(machine->core[0]->now->branch_misses, misses);
	/* A return's address comes from the stack. */
	EQUAL(machine->core[0]->now->stall_branch, misses * (kind == BRANCH_RETURN ? 20 + profile.l1d_latency : 20));
	EQUAL(machine->core[0]->now->interrupts, interrupts);
	EQUAL(machine->core[0]->now->stall_mode, interrupts * 300);
	machine_free(machine);
}

static void branches(void)
{
	uint64_t next = KERNEL + 16, target = KERNEL + 0x1100, elsewhere = KERNEL + 0x2200;

	check_branch(true, BRANCH_NONE, 0, next, 0, 0, 0);
	check_branch(true, BRANCH_NONE, 0, elsewhere, 0, 0, 1);
	check_branch(true, BRANCH_CONDITIONAL, target, target, 1, 0, 0); /* counters begin at "taken" */
	check_branch(true, BRANCH_CONDITIONAL, target, next, 1, 1, 0);
	check_branch(false, BRANCH_CONDITIONAL, target, next, 1, 0, 0);
	check_branch(true, BRANCH_CONDITIONAL, target, elsewhere, 0, 0, 1);
	check_branch(true, BRANCH_JUMP, target, target, 1, 0, 0);
	check_branch(true, BRANCH_JUMP, target, elsewhere, 0, 0, 1);
	check_branch(true, BRANCH_CALL, target, target, 1, 0, 0);
	check_branch(true, BRANCH_CALL, target, next, 0, 0, 1);
	check_branch(true, BRANCH_INDIRECT, 0, target, 1, 1, 0);
	check_branch(false, BRANCH_INDIRECT, 0, target, 1, 0, 0);
	check_branch(true, BRANCH_INDIRECT_CALL, 0, target, 1, 1, 0);
	check_branch(true, BRANCH_RETURN, 0, target, 1, 1, 0);
	check_branch(true, BRANCH_REPEAT, 0, KERNEL, 0, 0, 0);
	check_branch(true, BRANCH_OTHER, 0, target, 0, 0, 0);
	/* The block that follows may have been translated for another process, elsewhere: its place in the page tells. */
	check_branch(true, BRANCH_NONE, 0, next + 0x7000, 0, 0, 0);
	check_branch(true, BRANCH_CONDITIONAL, target, next + 0x7000, 1, 1, 0);
	check_branch(true, BRANCH_JUMP, target, target + 0x7000, 1, 0, 0);
}

/* What the condition of a mispredicted branch takes to be known, nothing hides; of one that was predicted it costs nothing. */
static void a_condition_is_awaited_where_it_went_wrong(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block from = ending(KERNEL, BRANCH_CONDITIONAL, KERNEL + 0x1100), taken = ending(KERNEL + 0x1100, BRANCH_JUMP, KERNEL),
		     behind = ending(KERNEL + 16, BRANCH_JUMP, KERNEL);

	from.resolve = 7;
	core_block(core, &from);
	core_block(core, &taken);
	EQUAL(core->now->branch_misses, 0);
	EQUAL(core->now->stall_branch, 0);
	core_block(core, &from);
	core_block(core, &behind);
	EQUAL(core->now->branch_misses, 1);
	EQUAL(core->now->stall_branch, 27);
	machine_free(machine);
}

static void calls_and_returns(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block call = ending(KERNEL, BRANCH_CALL, KERNEL + 0x1100), function = ending(KERNEL + 0x1100, BRANCH_RETURN, 0),
		     behind = ending(KERNEL + 16, BRANCH_JUMP, KERNEL);

	for (int i = 0; i < 5; i++) {
		core_block(core, &call);
		core_block(core, &function);
		core_block(core, &behind);
	}
	EQUAL(core->now->branches, 14);
	EQUAL(core->now->branch_misses, 0);
	/* After a flush of blocks nobody looks at the one before. */
	core_forget_blocks(core);
	core_block(core, &function);
	EQUAL(core->now->branches, 14);
	EQUAL(core->now->interrupts, 0);
	machine_free(machine);
}

/* Cycles that a call and a return in a loop of a hundred rounds take, more than their instructions flow in. */
static uint64_t called_in_a_loop(uint32_t call_cycles, bool taken, uint32_t taken_permille)
{
	struct profile profile = profile_without_walks();

	profile.core_call_cycles = call_cycles;
	profile.core_taken_permille = taken_permille;
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block call = ending(KERNEL, BRANCH_CALL, KERNEL + 0x1100), function = ending(KERNEL + 0x1100, BRANCH_RETURN, 0),
		     behind = ending(KERNEL + 16, BRANCH_CONDITIONAL, taken ? KERNEL : KERNEL + 0x2000);
	struct block on = ending(KERNEL + 32, BRANCH_JUMP, KERNEL);

	call.instructions = function.instructions = behind.instructions = on.instructions = 1;
	call.flow = function.flow = behind.flow = on.flow = FLOW(1);
	for (int i = 0; i < 100; i++) {
		core_block(core, &call);
		core_block(core, &function);
		core_block(core, &behind);
		if (!taken)
			core_block(core, &on);
	}
	uint64_t more = all_counters(core).chain_cycles;
	machine_free(machine);
	return more;
}

/* The same of a hundred jumps to their own block, which lies in one line or two, while something else takes some cycles, too. */
static uint64_t jumped_in_a_loop(uint64_t pc, uint64_t chained, uint64_t waited)
{
	struct profile profile = profile_without_walks();

	profile.core_taken_permille = 1000;
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block jump = ending(pc, BRANCH_JUMP, pc);

	jump.flow = FLOW(1);
	core_block(core, &jump);
	for (int i = 0; i < 100; i++) {
		core_chain(core, chained * CHAIN_PART);
		core->waited += waited;
		core_block(core, &jump);
	}
	uint64_t more = all_counters(core).chain_cycles - 100 * chained;
	machine_free(machine);
	return more;
}

static void lines_take_the_front_end_as_long_as_jumps(void)
{
	/* An instruction in half a cycle, and a jump; with the end of a line in the block's middle as much again. */
	EQUAL(jumped_in_a_loop(KERNEL, 0, 0), 50);
	EQUAL(jumped_in_a_loop(KERNEL + 62, 0, 0), 150);
	/* Meanwhile it goes on. */
	EQUAL(jumped_in_a_loop(KERNEL + 62, 1, 0), 50);
	EQUAL(jumped_in_a_loop(KERNEL + 62, 0, 1), 50);
	EQUAL(jumped_in_a_loop(KERNEL + 62, 1, 1), 0);
}

static void calls_take_the_front_end_longer(void)
{
	/* Three instructions in 1.5 cycles, and three taken branches. */
	EQUAL(called_in_a_loop(1, true, 1000), 149);
	EQUAL(called_in_a_loop(2, true, 1000), 349);
	/* Some front ends take more than one branch in a cycle, but no more calls. */
	EQUAL(called_in_a_loop(2, true, 500), 300);
	/* Four instructions in 2 cycles, of which three take a branch. */
	EQUAL(called_in_a_loop(1, false, 1000), 100);
	EQUAL(called_in_a_loop(2, false, 1000), 300);
}

/* Translation. */

/* The physical line that an access to `address` ended up with; 0: none, it is a device. */
static uint64_t line_of(struct core *core, uint64_t address)
{
	load(core, address);
	const struct filter_entry *entry = &core->data_filter[(address >> LINE_SHIFT) % FILTER_SETS];
	if (entry->line != (address >> LINE_SHIFT | core->space_tag))
		return 0;
	return slot_line(core->l1d.slots[entry->stamp - core->l1d.stamps]);
}

static void go_to(struct core *core, const struct tables *tables, uint16_t number)
{
	struct address_space space = tables_space(tables);

	core_new_address_space(core, &space, number);
}

static void switch_to(struct core *core, const struct tables *tables, uint16_t number)
{
	struct address_space space = tables_space(tables);

	core_switch_address_space(core, &space, number);
}

static void a_walk_is_charged(void)
{
	struct profile profile = default_profile();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct tables tables = tables_new(&machine->ram, 4);

	tables_map(&tables, 0x400000, 0x300000, PAGE_4K, 0);
	tables_map(&tables, 0x401000, 0x301000, PAGE_4K, 0);
	go_to(core, &tables, 0);
	EQUAL(line_of(core, 0x400040), 0x300040 >> 6);
	EQUAL(core->now->walk_references, 4);
	EQUAL(core->now->walk_cycles, 10 + 4 * 204);
	EQUAL(core->now->stall_dtlb, (10 + 4 * 204) / 2);
	EQUAL(core->now->l1d_misses, 1); /* the walker's are none */
	EQUAL(core->now->l2_accesses, 5);
	/* The second one reads the page table's entry, in a line that is in L1D now. */
	EQUAL(line_of(core, 0x401040), 0x301040 >> 6);
	EQUAL(core->now->walk_references, 5);
	EQUAL(core->now->walk_cycles, 10 + 4 * 204 + 10 + 4);
	EQUAL(core->now->dtlb_walks, 2);
	/* Code has its own first level; the second one is shared. */
	struct block block = plain_block(0x400000, 16);
	core_block(core, &block);
	EQUAL(core->now->itlb_misses, 1);
	EQUAL(core->now->itlb_walks, 0);
	EQUAL(core->now->stall_itlb, 4);
	machine_free(machine);
}

static void code_may_have_its_own_second_level(void)
{
	struct profile profile = default_profile();

	profile.stlb_code_entries = profile.stlb_code_ways = 8;
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct tables tables = tables_new(&machine->ram, 4);
	struct block block = plain_block(0x400000, 16);
	tables_map(&tables, 0x400000, 0x300000, PAGE_4K, 0);
	go_to(core, &tables, 0);
	load(core, 0x400040);
	core_block(core, &block);
	EQUAL(core->now->itlb_walks, 1);
	machine_free(machine);
}

/* Where no tables map it, and where it is a device's: counted, never cached. */
static void what_is_no_memory(void)
{
	struct profile profile = default_profile();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct tables tables = tables_new(&machine->ram, 4);
	struct block device = plain_block(0x400000, 16), nowhere = plain_block(0x800000, 16);

	tables_map(&tables, 0x400000, 0xfee00000, PAGE_4K, 0);
	go_to(core, &tables, 0);
	for (int i = 0; i < 3; i++)
		EQUAL(line_of(core, 0x400000), 0);
	store(core, 0x400000);
	EQUAL(core->now->loads, 3);
	EQUAL(core->now->stores, 1);
	EQUAL(core->now->l1d_misses, 0);
	EQUAL(core->now->dtlb_walks, 1);
	EQUAL(core->walks_failed, 0);
	EQUAL(line_of(core, 0x800000), 0);
	EQUAL(core->walks_failed, 1);
	for (int i = 0; i < 3; i++) {
		core_block(core, &device);
		core_block(core, &nowhere);
	}
	struct counters sum = all_counters(core);
	EQUAL(sum.l1i_fetches, 6);
	EQUAL(sum.l1i_misses, 0);
	EQUAL(sum.itlb_misses, 2);
	EQUAL(sum.l1d_misses, 0);
	machine_free(machine);
}

/* A device's registers are waited for, its local APIC's are in the core; and who knows what a page is that no tables map. */
static void devices(void)
{
	struct profile profile = default_profile();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct tables tables = tables_new(&machine->ram, 4);

	tables_map(&tables, 0x400000, 0xfec00000, PAGE_4K, 0);
	tables_map(&tables, 0x401000, 0xfee00000, PAGE_4K, 0);
	tables_map(&tables, 0x40000000, 0xc0000000, PAGE_1G, 0);
	go_to(core, &tables, 0);
	load(core, 0x400010);
	load(core, 0x400010);
	EQUAL(core->now->io_accesses, 2);
	EQUAL(core->now->stall_mode, 2 * 1500);
	store(core, 0x400010);
	EQUAL(core->now->io_accesses, 3);
	EQUAL(core->now->stall_mode, 2 * 1500 + 160);
	store(core, 0x401300);
	load(core, 0x401020);
	EQUAL(core->now->io_accesses, 3);
	EQUAL(core->now->stall_mode, 2 * 1500 + 160 + 2 * 90);
	/* By a large page, both. */
	store(core, 0x40000000 + 0x3ee00300);
	store(core, 0x40000000 + 0x3ec00000);
	EQUAL(core->now->io_accesses, 4);
	EQUAL(core->now->stall_mode, 2 * 1500 + 2 * 160 + 3 * 90);
	load(core, 0x800000);
	EQUAL(core->walks_failed, 1);
	EQUAL(core->now->io_accesses, 4);
	machine_free(machine);
}

/* An access to a device in a block's middle: what QEMU then goes on with is the block's rest, and no interrupt. */
static void a_block_that_a_device_ends(void)
{
	struct profile profile = default_profile();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct tables tables = tables_new(&machine->ram, 4);
	struct block whole = plain_block(0x410000, 40), rest = plain_block(0x410010, 24), next = plain_block(0x410028, 8);

	tables_map(&tables, 0x400000, 0xfec00000, PAGE_4K, 0);
	tables_map(&tables, 0x410000, 0x10000, PAGE_4K, 0);
	tables_map(&tables, 0x411000, 0x11000, PAGE_4K, 0);
	go_to(core, &tables, 0);
	whole.kind = rest.kind = BRANCH_CONDITIONAL;
	whole.target = rest.target = 0x410000;
	whole.atomics = rest.atomics = 1;
	whole.way |= SPECIAL_WAY;
	rest.way |= SPECIAL_WAY;
	core_block(core, &whole);
	load(core, 0x400000);
	core_block(core, &rest);
	core_block(core, &next);
	struct counters sum = all_counters(core);
	EQUAL(sum.instructions, 20);
	EQUAL(sum.atomics, 1);
	EQUAL(sum.branches, 1);
	EQUAL(sum.interrupts, 0);
	/* Without a device's access it is no rest. */
	core->previous = &whole;
	core->device_block = NULL;
	core_block(core, &rest);
	sum = all_counters(core);
	EQUAL(sum.instructions, 30);
	EQUAL(sum.interrupts, 1);
	machine_free(machine);
}

/* IN and OUT, of the host; a guest's are its host's to do. */
static void ports(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block block = plain_block(KERNEL, 16);

	block.kind = BRANCH_OTHER;
	block.ports = 2;
	block.way |= SPECIAL_WAY;
	core_block(core, &block);
	EQUAL(core->counters[HOST_KERNEL].io_accesses, 2);
	EQUAL(core->counters[HOST_KERNEL].stall_mode, 2 * 2500);
	core_enter(core, true);
	core_block(core, &block);
	EQUAL(core->counters[GUEST_KERNEL].instructions, 10);
	EQUAL(core->counters[GUEST_KERNEL].io_accesses, 0);
	EQUAL(core->counters[GUEST_KERNEL].stall_mode, 0);
	machine_free(machine);
}

/* A page of 1 GiB in TLBs that hold none: as its pieces of 2 MiB, each with its own frame. */
static void large_pages_are_split(void)
{
	const struct {
		uint32_t first, second;
		uint64_t misses, walks;
	} cases[] = {{4, 4, 1, 1}, {0, 4, 3, 1}, {4, 0, 1, 1}, {0, 0, 3, 3}};

	for (int i = 0; i < 4; i++) {
		struct profile profile = default_profile();
		profile.dtlb_1g_entries = profile.dtlb_1g_ways = cases[i].first;
		profile.stlb_1g_entries = profile.stlb_1g_ways = cases[i].second;
		struct machine *machine = machine_new(&profile, 1);
		struct core *core = machine->core[0];
		struct tables tables = tables_new(&machine->ram, 4);
		uint64_t base = 0xffff888000000000ull;
		tables_map(&tables, base, 0, PAGE_1G, PTE_GLOBAL);
		go_to(core, &tables, 0);
		EQUAL(line_of(core, base + 0x1fffc0), 0x1fffc0 >> 6);
		EQUAL(line_of(core, base + 0x200000), 0x200000 >> 6);
		EQUAL(line_of(core, base + 0x7ff000), 0x7ff000 >> 6);
		EQUAL(line_of(core, base + 0x3ff000), 0x3ff000 >> 6);
		EQUAL(core->now->dtlb_misses, cases[i].misses);
		EQUAL(core->now->dtlb_walks, cases[i].walks);
		/* Global: another CR3 changes nothing. */
		go_to(core, &tables, 0);
		EQUAL(line_of(core, base + 0x1fffc0), 0x1fffc0 >> 6);
		EQUAL(core->now->dtlb_misses, cases[i].misses);
		/* TLBs of code never hold them. */
		struct block one = plain_block(base + 0x1fffc0, 128);
		core_block(core, &one);
		EQUAL(core->now->itlb_misses, 2);
		EQUAL(core->now->l1i_misses, 2);
		machine_free(machine);
	}
}

/* A page's place in the TLB is taken: no filter knows the page any longer, whatever its size. */
static void a_page_that_went(enum page_size size)
{
	struct profile profile = default_profile();
	uint64_t bytes = 1ull << page_shift[size];

	profile.dtlb_4k_entries = profile.dtlb_4k_ways = profile.dtlb_2m_entries = profile.dtlb_2m_ways = 1;
	profile.dtlb_1g_entries = profile.dtlb_1g_ways = 1;
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct tables tables = tables_new(&machine->ram, 4);
	tables_map(&tables, 16 * bytes, 0, size, 0);
	tables_map(&tables, 17 * bytes, 0, size, 0);
	go_to(core, &tables, 0);
	for (uint64_t line = 0; line < 64; line++)
		load(core, 16 * bytes + line * 64);
	for (uint64_t page = 0; page < 8 && size != PAGE_4K; page++)
		load(core, 16 * bytes + (MIB2 - KIB4) - page * KIB4 + 64);
	EQUAL(core->now->dtlb_misses, 1);
	load(core, 17 * bytes + 2048); /* a line that the last one shares no filter's place with */
	EQUAL(core->now->dtlb_misses, 2);
	load(core, 16 * bytes);
	EQUAL(core->now->dtlb_misses, 3);
	load(core, 17 * bytes + 2048);
	EQUAL(core->now->dtlb_misses, 4);
	if (size != PAGE_4K)
		load(core, 16 * bytes + (MIB2 - KIB4) + 64);
	EQUAL(core->now->dtlb_misses, size == PAGE_4K ? 4 : 5);
	machine_free(machine);
}

/* A page used by one filter, and one used by the other behind it: the second is the younger. */
static void the_filters_tell_the_time(void)
{
	struct profile profile = profile_without_walks();

	profile.dtlb_4k_entries = profile.dtlb_4k_ways = 2;
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	load(core, 0x10000);
	load(core, 0x11000);
	load(core, 0x11000); /* the line is known */
	load(core, 0x10040); /* the page is known */
	load(core, 0x12000); /* in the place of the second page */
	EQUAL(core->now->dtlb_misses, 3);
	load(core, 0x10000);
	EQUAL(core->now->dtlb_misses, 3);
	load(core, 0x11000);
	EQUAL(core->now->dtlb_misses, 4);
	machine_free(machine);
}

/* One virtual address, several address spaces and what they know of it. */
static void cr3_and_invlpg(void)
{
	struct profile profile = default_profile();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct tables one = tables_new(&machine->ram, 4), other = tables_new(&machine->ram, 4);
	uint64_t user = 0x400000, kernel = 0xffff888000400000ull;

	tables_map(&one, user, 0x300000, PAGE_4K, 0);
	tables_map(&other, user, 0x310000, PAGE_4K, 0);
	tables_map(&one, kernel, 0x320000, PAGE_4K, PTE_GLOBAL);
	tables_map(&other, kernel, 0x320000, PAGE_4K, PTE_GLOBAL);
	go_to(core, &one, 0);
	EQUAL(line_of(core, user), 0x300000 >> 6);
	EQUAL(line_of(core, kernel), 0x320000 >> 6);
	go_to(core, &other, 0);
	EQUAL(line_of(core, user), 0x310000 >> 6);
	EQUAL(core->now->dtlb_walks, 3);
	EQUAL(core->now->walk_references, 4 + 4 + 4);
	EQUAL(line_of(core, kernel), 0x320000 >> 6);
	EQUAL(core->now->dtlb_walks, 3);
	/* The page moves, and the table above it: INVLPG makes both known. */
	uint64_t *pml4e = ram_word(&machine->ram, other.root);
	*pml4e = 0;
	tables_map(&other, user, 0x330000, PAGE_4K, 0);
	EQUAL(line_of(core, user), 0x310000 >> 6);
	core_forget_page(core, user);
	EQUAL(line_of(core, user), 0x330000 >> 6);
	EQUAL(core->now->walk_references, 12 + 4);
	/* Global pages too. */
	tables_map(&other, kernel, 0x340000, PAGE_4K, PTE_GLOBAL);
	core_forget_page(core, kernel);
	EQUAL(line_of(core, kernel), 0x340000 >> 6);
	machine_free(machine);
}

/* Few bytes are moved by a short way, more at so many a cycle; in either direction, and even none at all takes its time. */
static void repeated_strings_take_time(void)
{
	const struct profile profile = profile_without_walks();
	const struct {
		uint64_t count, cycles;
		uint32_t bytes;
	} cases[] = {
		{0, 14, 1}, {1, 14, 1}, {64, 14, 1}, {8, 14, 8}, {65, 24 + 3, 1}, {9, 24 + 3, 8}, {4096, 24 + 128, 1}, {1500, 24 + 47, 1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine *machine = machine_new(&profile, 1);
		struct core *core = machine->core[0];
		struct repeated r = {
			.from = 0x10000, .to = 0x20000, .count = cases[i].count, .bytes = cases[i].bytes, .loads = true, .down = i & 1};
		core_repeated(core, r);
		EQUAL(all_counters(core).repeat_cycles, cases[i].cycles);
		machine_free(machine);
	}
}

/* A loop whose chain takes longer than its instructions' flow pays the difference each time that it follows itself. */
static void chains_take_time(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block loop = plain_block(0x1000, 30), behind = plain_block(0x101e, 10);

	/* 10 instructions take 5 cycles, their chain 7.5. */
	loop.kind = BRANCH_CONDITIONAL;
	loop.target = loop.pc;
	loop.chain = CHAIN_PART * 5 / 2;
	for (int i = 0; i < 101; i++)
		core_block(core, &loop);
	EQUAL(all_counters(core).chain_cycles, 250);
	uint64_t stalls = core_cycles(core) - 250 - 505;
	core_block(core, &behind);
	core_block(core, &loop);
	EQUAL(all_counters(core).chain_cycles, 250);
	CHECK(stalls < core_cycles(core));
	machine_free(machine);
}

/* Two instructions that are one to the core. */
static void fused_instructions_flow_as_one(void)
{
	struct profile profile = default_profile(); /* four a cycle */
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block loop = ending(KERNEL, BRANCH_CONDITIONAL, KERNEL);
	loop.fused = true;
	loop.flow = CHAIN_PART * 9 / 4;
	core_block(core, &loop);
	uint64_t before = core_cycles(core);
	for (int i = 0; i < 100; i++)
		core_block(core, &loop);
	EQUAL(core->now->instructions, 1010);
	EQUAL(core->now->fused, 101);
	EQUAL(core->now->flow_cycles, 101 * 9 / 4);
	EQUAL(core_cycles(core) - before, 225);
	machine_free(machine);
}

/* A chain of pointers through L2, whose loop is bound by it: L2's latency each time, of which the loop's own chain is a part. */
static void a_chain_through_l2(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct block loop = plain_block(0x1000, 30);
	uint64_t begin = 0;

	loop.instructions = 4;
	loop.flow = FLOW(4);
	loop.kind = BRANCH_CONDITIONAL;
	loop.target = loop.pc;
	loop.chain = (uint16_t)(CHAIN_PART * profile.l1d_latency - loop.flow);
	for (int i = 0; i < 3 * 1024; i++) {
		/* Twice L1D, the first time round from memory. */
		uint64_t address = 0x100000 + (uint64_t)(i % 1024) * 64;
		if (i == 2048)
			begin = core_cycles(core);
		core_block(core, &loop);
		if (core_access(core, address, false))
			core_loaded(core, 0x100000 + (uint64_t)((i + 1) % 1024) * 64);
	}
	uint64_t took = core_cycles(core) - begin, dtlb = all_counters(core).stall_dtlb;
	CHECK(took >= 1024 * profile.l2_latency && took < 1024 * profile.l2_latency + 4 + dtlb);
	machine_free(machine);
}

/* 65536 loads of CR3 later the walker's tags repeat; what it knew at the first must not come back. */
static void tags_repeat(void)
{
	struct profile profile = default_profile();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct tables one = tables_new(&machine->ram, 4), other = tables_new(&machine->ram, 4);

	tables_map(&one, 0x400000, 0x300000, PAGE_4K, 0);
	tables_map(&other, 0x400000, 0x310000, PAGE_4K, 0);
	go_to(core, &one, 0);
	EQUAL(line_of(core, 0x400000), 0x300000 >> 6);
	for (int i = 0; i < 65536; i++)
		go_to(core, &other, 0);
	EQUAL(line_of(core, 0x400000), 0x310000 >> 6);
	machine_free(machine);
}

static void guests(void)
{
	struct profile profile = default_profile();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct tables host = tables_new(&machine->ram, 4), under = tables_new(&machine->ram, 4);
	uint64_t guest_free = 0x10000000, user = 0x400000, kernel = 0xffff888000400000ull;
	struct tables guest = tables_of_guest(&under, 4, &guest_free), process = tables_of_guest(&under, 4, &guest_free);

	tables_map(&host, user, 0x300000, PAGE_4K, 0);
	tables_map(&under, 0x20000000, 0x310000, PAGE_4K, 0);
	tables_map(&under, 0x20001000, 0x320000, PAGE_4K, 0);
	tables_map(&guest, user, 0x20000000, PAGE_4K, 0);
	tables_map(&guest, kernel, 0x20001000, PAGE_4K, PTE_GLOBAL);
	tables_map(&process, user, 0x20001000, PAGE_4K, 0);
	go_to(core, &host, 0);
	EQUAL(line_of(core, user), 0x300000 >> 6);
	switch_to(core, &guest, 3);
	EQUAL(line_of(core, user), 0x310000 >> 6);
	EQUAL(line_of(core, kernel), 0x320000 >> 6);
	/* Back and forth: both are still known. */
	uint64_t walks = core->now->dtlb_walks;
	EQUAL(walks, 3);
	for (int i = 0; i < 3; i++) {
		switch_to(core, &host, 0);
		EQUAL(line_of(core, user), 0x300000 >> 6);
		switch_to(core, &guest, 3);
		EQUAL(line_of(core, user), 0x310000 >> 6);
	}
	EQUAL(core->now->dtlb_walks, walks);
	/* Another guest with the same tables knows nothing of them. */
	switch_to(core, &guest, 4);
	EQUAL(line_of(core, user), 0x310000 >> 6);
	EQUAL(core->now->dtlb_walks, walks + 1);
	/* The guest's CR3: its own entries go, the host's stay; where its pages lie is known still. */
	switch_to(core, &guest, 3);
	uint64_t references = core->now->walk_references;
	go_to(core, &process, 3);
	EQUAL(line_of(core, user), 0x320000 >> 6);
	CHECK(core->now->walk_references < references + 24);
	EQUAL(line_of(core, kernel), 0x320000 >> 6); /* global */
	switch_to(core, &host, 0);
	EQUAL(line_of(core, user), 0x300000 >> 6);
	EQUAL(core->now->dtlb_walks, walks + 2);
	/* The host gives the guest other memory, and has its translations flushed: global pages, and nested tables. */
	tables_map(&under, 0x20000000, 0x330000, PAGE_4K, 0);
	tables_map(&under, 0x20001000, 0x340000, PAGE_4K, 0);
	core_flush_address_space(core, 3);
	switch_to(core, &guest, 3);
	EQUAL(line_of(core, kernel), 0x340000 >> 6);
	EQUAL(line_of(core, user), 0x330000 >> 6);
	/* The other guest was not flushed. */
	switch_to(core, &guest, 4);
	EQUAL(line_of(core, user), 0x310000 >> 6);
	machine_free(machine);
}

/* A library's code is translated once, for the process that ran it first; another has it elsewhere, in the same frames or not. */
static uint64_t entered_at;

static uint64_t real_pc(struct core *core)
{
	(void)core;
	return entered_at;
}

static uint64_t line_of_code(const struct core *core, uint64_t address)
{
	const struct filter_entry *entry = &core->code_filter[(address >> LINE_SHIFT) % FILTER_SETS];

	return slot_line(core->l1i.slots[entry->stamp - core->l1i.stamps]);
}

static void code_of_several_processes(void)
{
	struct profile profile = default_profile();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct tables first = tables_new(&machine->ram, 4), second = tables_new(&machine->ram, 4);
	struct block block = plain_block(0x7f0000001fc0, 128), kernel = plain_block(KERNEL, 16); /* the last line of a page, and the next */

	for (uint64_t page = 1; page < 3; page++) {
		tables_map(&first, 0x7f0000000000 + page * KIB4, 0x300000 + page * KIB4, PAGE_4K, 0);
		tables_map(&second, 0x7f8800000000 + page * KIB4, 0x400000 + page * KIB4, PAGE_4K, 0);
		tables_map(&second, KERNEL, 0x500000, PAGE_4K, 0);
	}
	core->real_pc = real_pc;
	entered_at = 0x7f0000001fc0;
	go_to(core, &first, 0);
	core_block(core, &block);
	EQUAL(line_of_code(core, 0x7f0000001fc0), 0x301fc0 >> 6);
	EQUAL(line_of_code(core, 0x7f0000002000), 0x302000 >> 6);
	entered_at = 0x7f8800001fc0;
	go_to(core, &second, 0);
	core_block(core, &block);
	EQUAL(line_of_code(core, 0x7f0000001fc0), 0x401fc0 >> 6);
	EQUAL(line_of_code(core, 0x7f0000002000), 0x402000 >> 6);
	/* The kernel's lies where its blocks say. */
	entered_at = 0;
	core_block(core, &kernel);
	EQUAL(line_of_code(core, KERNEL), 0x500000 >> 6);
	EQUAL(core->walks_failed, 0);
	machine_free(machine);
}

/* Where it happens. */

static const struct hot_spot *spot_of(const struct hot *hot, uint64_t pc)
{
	for (uint32_t i = 0; i < HOT_SPOTS; i++)
		if (hot->spot[i].used && hot->spot[i].pc == pc)
			return &hot->spot[i];
	return NULL;
}

static void events_have_a_place(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct hot *hot = calloc(1, sizeof(*hot));
	struct block first = ending(KERNEL, BRANCH_CONDITIONAL, KERNEL + 0x100), second = plain_block(KERNEL + 16, 16);

	CHECK(hot);
	core->hot = hot;
	core->thread = 42;
	core_block(core, &first);
	load(core, 0x10000);
	core_block(core, &second); /* not taken, which is not guessed */
	load(core, 0x20000);
	load(core, 0x20040);
	const struct hot_spot *a = spot_of(hot, KERNEL), *b = spot_of(hot, KERNEL + 16);
	CHECK(a && b && a->thread == 42 && a->mode == HOST_KERNEL);
	EQUAL(a->count[HOT_l1d_misses], 1);
	EQUAL(a->count[HOT_l1i_misses], 1);
	EQUAL(a->count[HOT_itlb_walks], 1);
	EQUAL(a->count[HOT_branch_misses], 1);
	EQUAL(a->count[HOT_l2_misses], 2);
	EQUAL(a->count[HOT_llc_misses], 2);
	EQUAL(b->count[HOT_l1d_misses], 2);
	EQUAL(b->count[HOT_dtlb_walks], 1);
	EQUAL(b->count[HOT_branch_misses], 0);
	EQUAL(b->count[HOT_samples], 0);
	free(hot);
	machine_free(machine);
}

/* A block of 10 instructions in a loop, driven as QEMU's side does it. Returns how many were looked at. */
static uint32_t loop(struct core *core, const struct block *block, int times)
{
	uint32_t looks = 0;

	for (int i = 0; i < times; i++) {
		if (core->retired >= core->sample_at) {
			looks++;
			core_sample(core);
		}
		core_block(core, block);
	}
	return looks;
}

static void samples(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct hot *hot = calloc(1, sizeof(*hot));
	struct block block = ending(KERNEL, BRANCH_JUMP, KERNEL);
	uint32_t *count = NULL;

	CHECK(hot);
	core->hot = hot;
	EQUAL(loop(core, &block, 1000), 0); /* nobody asked for any */
	core->sample_every = 1000;
	core->sample_at = core->sample_due = core->retired + 1000;
	EQUAL(loop(core, &block, 100), 0);
	EQUAL(loop(core, &block, 1), 1);
	count = &((struct hot_spot *)spot_of(hot, KERNEL))->count[HOT_samples];
	EQUAL(*count, 1);
	/* The distances are 1000 +- 500, and a block's length more at most; they differ. */
	uint64_t shortest = UINT64_MAX, longest = 0;
	for (int i = 0; i < 300; i++) {
		uint64_t due = core->sample_at, distance = due - core->retired;
		while (core->sample_at == due)
			loop(core, &block, 1);
		shortest = distance < shortest ? distance : shortest;
		longest = distance > longest ? distance : longest;
	}
	CHECK(shortest >= 480 && shortest < 600 && longest > 1400 && longest <= 1500);
	EQUAL(*count, 301);
	uint64_t before = core->retired;
	loop(core, &block, 100000);
	uint64_t expected = (core->retired - before) / 1000;
	CHECK(*count - 301 > expected * 95 / 100 && *count - 301 < expected * 105 / 100);
	/* Whoever wants the core's attention gets it, and makes no sample of it. */
	uint32_t until_now = *count;
	uint64_t due = core->sample_due;
	core->sample_at = 0;
	EQUAL(loop(core, &block, 1), 1);
	EQUAL(*count, until_now);
	EQUAL(core->sample_at, due);
	free(hot);
	machine_free(machine);
}

static void everything_is_flushed(void)
{
	struct profile profile = default_profile();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct tables tables = tables_new(&machine->ram, 4);

	tables_map(&tables, KERNEL, 0x300000, PAGE_4K, PTE_GLOBAL);
	go_to(core, &tables, 0);
	EQUAL(line_of(core, KERNEL), 0x300000 >> 6);
	*ram_word(&machine->ram, tables.root + (KERNEL >> 39 & 511) * 8) = 0;
	tables_map(&tables, KERNEL, 0x310000, PAGE_4K, PTE_GLOBAL);
	go_to(core, &tables, 0);
	EQUAL(line_of(core, KERNEL), 0x300000 >> 6); /* a global page outlives CR3 */
	core_flush_all(core);
	EQUAL(line_of(core, KERNEL), 0x310000 >> 6);
	machine_free(machine);
}

/* What a prefetch instruction finds not to be there is not remembered: the kernel may map it without a word to the processor. */
static void asked_for_where_nothing_is(void)
{
	struct profile profile = default_profile();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct tables tables = tables_new(&machine->ram, 4);

	tables_map(&tables, 0x400000, 0x100000, PAGE_4K, 0);
	go_to(core, &tables, 0);
	core_prefetch(core, 0x401000, false, false);
	EQUAL(core->walks_failed, 1);
	EQUAL(core->now->prefetches, 0);
	tables_map(&tables, 0x401000, 0x101000, PAGE_4K, 0);
	load(core, 0x401000);
	EQUAL(core->now->l1d_misses, 1);
	EQUAL(core->walks_failed, 1);
	machine_free(machine);
}

int main(void)
{
	a_load_from_memory_and_one_from_l1();
	what_a_blind_core_runs_leaves_all_as_it_was();
	an_l2_hit();
	long_misses_overlap_unless_one_needs_the_other();
	near_misses_overlap();
	what_leaves_the_core_room_hides_near_misses_before_it();
	what_leaves_the_core_room_hides_hits_of_l2_but_no_chain();
	what_runs_before_a_loaded_address_is_used_is_hidden_by_its_latency();
	what_l1_drops_goes_to_l2_and_what_l2_drops_to_the_llc();
	prefetchers();
	streams();
	streams_go_on_in_the_next_page();
	streams_into_l1d();
	asked_for_by_the_program();
	asked_for_where_nothing_is();
	streams_into_l1d_from_memory();
	memory_has_a_rate();
	one_transfer_a_cycle();
	calls_take_the_front_end_longer();
	lines_take_the_front_end_as_long_as_jumps();
	lines_of_code();
	code_is_asked_for_ahead();
	a_line_that_is_gone_at_once();
	modes();
	branches();
	a_condition_is_awaited_where_it_went_wrong();
	calls_and_returns();
	a_walk_is_charged();
	code_may_have_its_own_second_level();
	what_is_no_memory();
	devices();
	a_block_that_a_device_ends();
	ports();
	large_pages_are_split();
	a_page_that_went(PAGE_4K);
	a_page_that_went(PAGE_2M);
	a_page_that_went(PAGE_1G);
	the_filters_tell_the_time();
	cr3_and_invlpg();
	repeated_strings_take_time();
	chains_take_time();
	fused_instructions_flow_as_one();
	a_chain_through_l2();
	tags_repeat();
	guests();
	everything_is_flushed();
	code_of_several_processes();
	samples();
	events_have_a_place();
	return 0;
}
