/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cores together: who has a line in what state, who served it, what the LLC keeps. */
#include <pthread.h>

#include "machine.h"

#define A 0x10000ull
#define B 0x20000ull
#define C 0x30000ull

static enum line_state state_of(const struct core *core, uint64_t address)
{
	slot_t *first = cache_peek(&core->l1d, address >> 6), *second = cache_peek(&core->l2, address >> 6);
	enum line_state above = first ? slot_state(*first) : LINE_INVALID, below = second ? slot_state(*second) : LINE_INVALID;

	return above > below ? above : below;
}

static void check_states(const struct machine *machine, enum line_state first, enum line_state second, enum line_state third)
{
	EQUAL(state_of(machine->core[0], A), first);
	EQUAL(state_of(machine->core[1], A), second);
	EQUAL(state_of(machine->core[2], A), third);
}

static void mesi(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 3);
	struct core **core = machine->core;

	/* Nobody spins here. */
	for (int i = 0; i < 3; i++)
		core[i]->spin_ticks = 0;
	load(core[0], A);
	check_states(machine, LINE_EXCLUSIVE, LINE_INVALID, LINE_INVALID);
	EQUAL(core[0]->now->llc_misses, 1);
	/* It may have been written: the one who has it must be asked. */
	load(core[1], A);
	check_states(machine, LINE_SHARED, LINE_SHARED, LINE_INVALID);
	EQUAL(core[1]->now->llc_hits_shared, 1);
	EQUAL(core[1]->now->llc_misses, 0);
	core_settle(core[1]);
	EQUAL(core[1]->now->stall_llc, (84 - 4) / 2);
	/* Two have it, and neither has written it: the LLC serves it. */
	load(core[2], A);
	check_states(machine, LINE_SHARED, LINE_SHARED, LINE_SHARED);
	EQUAL(core[2]->now->llc_hits_shared, 0);
	EQUAL(core[2]->now->l2_misses, 1);
	core_settle(core[2]);
	EQUAL(core[2]->now->stall_llc, (54 - 4) / 2);
	/* A store takes it from the others, and once is enough. */
	store(core[1], A);
	store(core[1], A);
	check_states(machine, LINE_INVALID, LINE_MODIFIED, LINE_INVALID);
	EQUAL(core[1]->now->l1d_upgrades, 1);
	EQUAL(core[1]->now->l1d_misses, 1);
	/* The writer serves it, and keeps it shared: its next store tells the others again. */
	load(core[0], A);
	check_states(machine, LINE_SHARED, LINE_SHARED, LINE_INVALID);
	EQUAL(core[0]->now->l1d_misses, 2);
	EQUAL(core[0]->now->llc_hits_modified, 1);
	core_settle(core[0]);
	EQUAL(core[0]->now->stall_llc, (104 - 4) / 2);
	store(core[1], A);
	check_states(machine, LINE_INVALID, LINE_MODIFIED, LINE_INVALID);
	EQUAL(core[1]->now->l1d_upgrades, 2);
	/* A store that misses takes it from a writer. */
	store(core[2], A);
	check_states(machine, LINE_INVALID, LINE_INVALID, LINE_MODIFIED);
	EQUAL(core[2]->now->llc_hits_modified, 1);
	EQUAL(core[2]->now->l1d_upgrades, 0);
	core_settle(core[2]);
	EQUAL(core[2]->now->stall_llc, (54 - 4) / 2); /* nobody waits for a store */
	/* Who had it last must fetch it, though it was the last that the core used. */
	load(core[1], A);
	EQUAL(core[1]->now->l1d_misses, 2);
	machine_free(machine);
}

/* Cycles that core 0 waits for line A, which core 1 stored to after core 0 had looked at it and then at `lines` others. */
static uint64_t waits_for_a_word(int lines, bool stores)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 2);
	struct core **core = machine->core;

	for (int i = 0; i < 5; i++)
		load(core[0], A);
	for (int i = 1; i <= lines; i++)
		load(core[0], A + 0x1040 * (uint64_t)i);
	store(core[1], A);
	core[0]->retired += 1000; /* in no other load's shadow */
	core_settle(core[0]);
	uint64_t before = core[0]->now->stall_llc;
	core_access(core[0], A, stores);
	core_settle(core[0]);
	uint64_t waited = core[0]->now->stall_llc - before;
	/* Once: the next such miss is one like any. */
	store(core[1], B);
	core[0]->retired += 1000;
	load(core[0], B);
	core_settle(core[0]);
	EQUAL(core[0]->now->stall_llc - before - waited, (104 - 4) / 2);
	machine_free(machine);
	return waited;
}

/* Who spins for what another core writes waits for all of the line's way; also if it saw the new value early, and answers at once. */
static void spinning(void)
{
	EQUAL(waits_for_a_word(0, false), 104 - 4);
	EQUAL(waits_for_a_word(0, true), 104 - 4);
	EQUAL(waits_for_a_word(8, false), (104 - 4) / 2);
	EQUAL(waits_for_a_word(8, true), 0);
}

static void *writes_a_word(void *core)
{
	for (int i = 0; i < 2000; i++) {
		load(core, A);
		store(core, A);
	}
	return NULL;
}

/* Threads that write to one line at the same time: only one core may have it in the end, and no filter may believe otherwise. */
static void at_the_same_time(void)
{
	struct profile profile = profile_without_walks();

	for (int round = 0; round < 200; round++) {
		struct machine *machine = machine_new(&profile, 2);
		pthread_t threads[2];
		for (int i = 0; i < 2; i++)
			CHECK(!pthread_create(&threads[i], NULL, writes_a_word, machine->core[i]));
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		int owners = 0;
		for (int i = 0; i < 2; i++) {
			enum line_state state = state_of(machine->core[i], A);
			bool stores = core_hits(machine->core[i], A, true, 1), loads = core_hits(machine->core[i], A, false, 1);
			CHECK(!loads || state != LINE_INVALID);
			CHECK(!stores || state == LINE_MODIFIED);
			owners += state == LINE_MODIFIED || state == LINE_EXCLUSIVE;
		}
		CHECK(owners <= 1);
		machine_free(machine);
	}
}

/* Shared in name only: the others dropped it, so nobody has to give it up. */
static void an_upgrade_that_nobody_hears(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 2);

	load(machine->core[0], A);
	load(machine->core[1], A);
	core_snooped(machine->core[1], A >> 6, true);
	store(machine->core[0], A);
	EQUAL(machine->core[0]->now->l1d_upgrades, 0);
	EQUAL(state_of(machine->core[0], A), LINE_MODIFIED);
	machine_free(machine);
}

/* In L2 alone a line is as much the core's as in L1. */
static void below_l1(void)
{
	struct profile profile = profile_without_walks();

	profile.l1d_sets = profile.l1d_ways = 1;
	struct machine *machine = machine_new(&profile, 2);
	struct core **core = machine->core;
	store(core[0], A);
	load(core[0], B);
	CHECK(!cache_peek(&core[0]->l1d, A >> 6));
	EQUAL(state_of(core[0], A), LINE_MODIFIED);
	load(core[1], A);
	EQUAL(core[1]->now->llc_hits_modified, 1);
	EQUAL(state_of(core[0], A), LINE_SHARED);
	/* A store that misses L1 and finds it shared in L2. */
	store(core[0], A);
	EQUAL(core[0]->now->l1d_upgrades, 1);
	EQUAL(state_of(core[0], A), LINE_MODIFIED);
	EQUAL(state_of(core[1], A), LINE_INVALID);
	machine_free(machine);
}

/* What one core runs and another writes. */
static void code(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 2);
	struct core **core = machine->core;
	struct block block = plain_block(A, 16);

	core_block(core[0], &block);
	core_block(core[0], &block);
	/* L2 forgot it, L1I has it still: it is shared, and a store takes it away. */
	cache_remove(&core[0]->l2, A >> 6);
	load(core[1], A);
	EQUAL(state_of(core[1], A), LINE_SHARED);
	store(core[1], A);
	EQUAL(core[1]->now->l1d_upgrades, 1);
	core_block(core[0], &block);
	EQUAL(core[0]->counters[HOST_USER].l1i_misses, 2);
	EQUAL(core[0]->counters[HOST_USER].llc_hits_modified, 1);
	machine_free(machine);
}

static void without_coherence(void)
{
	struct profile profile = profile_without_walks();

	profile.model_coherence = 0;
	struct machine *machine = machine_new(&profile, 2);
	store(machine->core[0], A);
	store(machine->core[1], A);
	load(machine->core[0], A);
	EQUAL(state_of(machine->core[0], A), LINE_MODIFIED);
	EQUAL(state_of(machine->core[1], A), LINE_MODIFIED);
	EQUAL(machine->core[0]->now->l1d_misses, 1);
	EQUAL(machine->core[1]->now->llc_hits_modified, 0);
	machine_free(machine);
}

/* An LLC of two lines. Hits above it make nothing younger in it, so what a core uses all the time can be what it drops. */
static void policies(void)
{
	struct profile profile = profile_without_walks();

	profile.llc_sets = 1;
	profile.llc_ways = 2;
	for (profile.llc_policy = LLC_INCLUSIVE; profile.llc_policy <= LLC_VICTIM; profile.llc_policy++) {
		struct machine *machine = machine_new(&profile, 2);
		struct core **core = machine->core;
		bool inclusive = profile.llc_policy == LLC_INCLUSIVE;
		struct block block = plain_block(B, 16);
		load(core[0], A);
		core_block(core[0], &block);
		EQUAL(core[0]->counters[HOST_USER].l1i_misses, 1);
		load(core[1], C);
		load(core[1], C + 64);
		for (int i = 0; i < 3; i++) {
			load(core[0], A + 8);
			core_block(core[0], &block);
		}
		/* A miss of each kind; the fetch of one drops what core 1 had, and no more of core 0. */
		EQUAL(all_counters(core[0]).l1d_misses, inclusive ? 2 : 1);
		EQUAL(all_counters(core[0]).l1i_misses, inclusive ? 2 : 1);
		EQUAL(state_of(core[1], C), inclusive ? LINE_INVALID : LINE_EXCLUSIVE);
		EQUAL(cache_peek(&machine->uncore.llc[0].cache, A >> 6) != NULL, inclusive);
		machine_free(machine);
	}
}

/* L1D and L2 have room for one line: the next one drives it into the LLC. */
static struct profile one_line_above_a_victim_cache(void)
{
	struct profile profile = profile_without_walks();

	profile.llc_policy = LLC_VICTIM;
	profile.l1d_sets = profile.l1d_ways = profile.l2_sets = profile.l2_ways = 1;
	return profile;
}

/* A victim cache has what L2 dropped, clean or not, and until somebody wants it. */
static void victims(void)
{
	struct profile profile = one_line_above_a_victim_cache();
	struct machine *machine = machine_new(&profile, 2);
	struct core **core = machine->core;
	struct cache *llc = &machine->uncore.llc[0].cache;
	load(core[0], A);
	CHECK(!cache_peek(llc, A >> 6));
	load(core[0], B);
	CHECK(cache_peek(llc, A >> 6) && !cache_peek(llc, B >> 6));
	load(core[1], A); /* from the LLC, which gives it away */
	EQUAL(core[1]->now->llc_misses, 0);
	EQUAL(core[1]->now->l2_misses, 1);
	CHECK(!cache_peek(llc, A >> 6));
	load(core[0], A); /* the other core has it, nobody else */
	EQUAL(core[0]->now->llc_hits_shared, 1);
	CHECK(cache_peek(llc, B >> 6));
	machine_free(machine);
}

/* Two nodes with a core each; the second one's memory begins at B. */
static void numa(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 2);
	struct core **core = machine->core;

	CHECK(uncore_add_node(&machine->uncore, 0));
	EQUAL(machine->uncore.node_count, 1);
	CHECK(uncore_add_node(&machine->uncore, B >> 6));
	EQUAL(machine->uncore.node_count, 2);
	CHECK(!uncore_add_node(&machine->uncore, B >> 6)); /* not behind the one before */
	machine->uncore.node_of_core[1] = 1;
	load(core[0], B - 64);
	EQUAL(core[0]->now->memory_local, 1);
	EQUAL(core[0]->now->stall_memory, 200);
	core_loaded(core[0], B); /* so that the latency is paid in full */
	load(core[0], B);
	EQUAL(core[0]->now->memory_remote, 1);
	EQUAL(core[0]->now->stall_memory, 200 + 304);
	EQUAL(core[0]->now->llc_misses, 2);
	load(core[1], C);
	load(core[1], A);
	EQUAL(core[1]->now->memory_local, 1);
	EQUAL(core[1]->now->memory_remote, 1);
	/* Each node has its own LLC, and cores of other nodes are asked all the same. */
	CHECK(cache_peek(&machine->uncore.llc[0].cache, B >> 6) && !cache_peek(&machine->uncore.llc[1].cache, B >> 6));
	load(core[1], B);
	EQUAL(core[1]->now->remote_cache, 1);
	EQUAL(core[1]->now->llc_hits_shared, 0);
	EQUAL(core[1]->now->llc_misses, 3);
	EQUAL(core[1]->now->memory_local, 1);
	machine_free(machine);
}

/* A core each on two nodes hand a line to and fro: what the poll-mode thread on the wrong node does with each descriptor. */
static void between_nodes(void)
{
	struct profile profile = profile_without_walks();

	for (profile.llc_policy = LLC_INCLUSIVE; profile.llc_policy <= LLC_VICTIM; profile.llc_policy++) {
		struct machine *machine = machine_new(&profile, 2);
		struct core **core = machine->core;
		CHECK(uncore_add_node(&machine->uncore, 0) && uncore_add_node(&machine->uncore, C >> 6));
		machine->uncore.node_of_core[1] = 1;
		store(core[0], A);
		for (int i = 1; i <= 3; i++) {
			core_loaded(core[1], A); /* so that the latency is paid in full */
			uint64_t before = core[1]->now->stall_memory;
			load(core[1], A);
			EQUAL(core[1]->now->remote_cache, i);
			EQUAL(core[1]->now->stall_memory - before, 254);
			/* The writer has it still, shared, and takes it back without a fill. */
			store(core[0], A);
			EQUAL(core[0]->now->l1d_upgrades, i);
			EQUAL(state_of(core[1], A), LINE_INVALID);
			CHECK(!cache_peek(&machine->uncore.llc[1].cache, A >> 6));
		}
		EQUAL(core[1]->now->llc_misses, 3);
		EQUAL(core[0]->now->llc_misses, 1);
		EQUAL(core[1]->now->llc_hits_modified + core[1]->now->llc_hits_shared, 0);
		machine_free(machine);
	}
}

/* What no core has any longer, but another node's LLC, comes from there, and goes when it is to be written here. */
static void llc_of_another_node(void)
{
	struct profile profile = one_line_above_a_victim_cache();
	struct machine *machine = machine_new(&profile, 2);
	struct core **core = machine->core;
	CHECK(uncore_add_node(&machine->uncore, 0) && uncore_add_node(&machine->uncore, C >> 6));
	machine->uncore.node_of_core[1] = 1;
	load(core[0], A);
	load(core[0], B);
	CHECK(cache_peek(&machine->uncore.llc[0].cache, A >> 6));
	load(core[1], A);
	EQUAL(core[1]->now->remote_cache, 1);
	EQUAL(state_of(core[1], A), LINE_SHARED);
	store(core[1], A);
	EQUAL(core[1]->now->l1d_upgrades, 1);
	CHECK(!cache_peek(&machine->uncore.llc[0].cache, A >> 6));
	machine_free(machine);
}

static void latencies(void)
{
	struct profile profile = default_profile();

	EQUAL(served_latency(&profile, SERVED_L2), 14);
	EQUAL(served_latency(&profile, SERVED_LLC), 54);
	EQUAL(served_latency(&profile, SERVED_SHARED), 84);
	EQUAL(served_latency(&profile, SERVED_MODIFIED), 104);
	EQUAL(served_latency(&profile, SERVED_REMOTE_CACHE), 254);
	EQUAL(served_latency(&profile, SERVED_LOCAL), 204);
	EQUAL(served_latency(&profile, SERVED_REMOTE), 304);
}

static void too_many_cores(void)
{
	struct profile profile = default_profile();
	struct uncore uncore;

	CHECK(!uncore_init(&uncore, &profile, MOST_CORES + 1));
	uncore_free(&uncore);
	CHECK(uncore_init(&uncore, &profile, MOST_CORES));
	uncore_free(&uncore);
}

static bool holds(const struct core *core, uint64_t line)
{
	return cache_peek(&core->l1d, line) || cache_peek(&core->l2, line) || cache_peek(&core->l1i, line);
}

/* A line that one core has for itself, no other has; what a core has, an inclusive LLC has. */
static void check_invariants(const struct machine *machine, uint32_t lines)
{
	for (uint64_t line = A >> 6; line < (A >> 6) + lines; line++) {
		uint32_t holders = 0, owners = 0;
		for (uint32_t c = 0; c < machine->uncore.core_count; c++) {
			holders += holds(machine->core[c], line);
			owners += state_of(machine->core[c], line << 6) >= LINE_EXCLUSIVE;
		}
		CHECK(!owners || holders == 1);
		CHECK(!holders || machine->profile.llc_policy != LLC_INCLUSIVE || cache_peek(&machine->uncore.llc[0].cache, line));
	}
}

static void invariants(enum llc_policy policy, bool prefetch, uint32_t seed)
{
	struct random random = {seed};
	struct profile profile = profile_without_walks();

	profile.llc_policy = policy;
	profile.l1i_sets = profile.l1d_sets = 2;
	profile.l1i_ways = profile.l1d_ways = 2;
	profile.l2_sets = 4;
	profile.l2_ways = 2;
	profile.llc_sets = 3;
	profile.llc_ways = 8;
	profile.prefetch_l1i_next = profile.prefetch_l2_adjacent = prefetch;
	profile.prefetch_l2_stream = prefetch * 3;
	struct machine *machine = machine_new(&profile, 3);
	for (int i = 0; i < 20000; i++) {
		struct core *core = machine->core[random_below(&random, 3)];
		uint64_t address = A + random_below(&random, 40) * 64;
		if (random_once_in(&random, 4)) {
			struct block block = plain_block(address, 16);
			core_block(core, &block);
			core_forget_blocks(core);
		} else {
			core_access(core, address, random_once_in(&random, 3));
		}
		check_invariants(machine, 44);
	}
	machine_free(machine);
}

/* Two cores in threads of their own on the same few lines: nothing hangs, and no access is lost. */
#define THREAD_ACCESSES 200000

static void *hammer(void *data)
{
	struct core *core = data;
	struct random random = {core->index};

	for (int i = 0; i < THREAD_ACCESSES; i++)
		core_access(core, A + random_below(&random, 200) * 64, random_once_in(&random, 4));
	return NULL;
}

static void threads(void)
{
	struct profile profile = profile_without_walks();

	profile.l1d_sets = 4;
	profile.l2_sets = 8;
	profile.llc_sets = 5;
	profile.llc_policy = LLC_INCLUSIVE;
	struct machine *machine = machine_new(&profile, 2);
	pthread_t thread[2];
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, hammer, machine->core[i]));
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(thread[i], NULL));
	for (int i = 0; i < 2; i++) {
		const struct counters *now = machine->core[i]->now;
		EQUAL(now->loads + now->stores, THREAD_ACCESSES);
		CHECK(now->l2_accesses == now->l1d_misses && now->l2_misses <= now->l2_accesses);
	}
	machine_free(machine);
}

int main(void)
{
	mesi();
	spinning();
	at_the_same_time();
	an_upgrade_that_nobody_hears();
	below_l1();
	code();
	without_coherence();
	policies();
	victims();
	numa();
	between_nodes();
	llc_of_another_node();
	latencies();
	too_many_cores();
	for (enum llc_policy policy = LLC_INCLUSIVE; policy <= LLC_VICTIM; policy++) {
		invariants(policy, false, policy);
		invariants(policy, true, 10 + policy);
	}
	threads();
	return 0;
}
