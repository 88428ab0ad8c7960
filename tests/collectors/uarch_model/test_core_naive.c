/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The core's filters must be exact: the same random sequence of blocks, loads, stores, CR3 loads, INVLPGs and guests drives
 * core.c and the naive system, and after each step all their counters are equal. The addresses are few, so that lines and pages
 * meet in sets and filters, under several names.
 */
#include "naive_system.h"

#define RAM_BYTES (32ull << 20)
#define HOST_SPACES 3
#define GUESTS 2
#define GUEST_SPACES 2
#define BLOCKS 160

#define USER_DATA 0x400000ull
#define USER_PAGES 28
#define USER_CODE 0x7f0000500000ull
#define LARGE_DATA 0x40000000ull
#define HUGE_DATA 0x8000000000ull
#define DEVICE 0xffffc90000000000ull
#define KERNEL_DATA 0xffff888000400000ull
#define KERNEL_CODE 0xffffffff82000000ull
#define MAPPED_PAGES 6
#define HUGE_CODE 0xffffffff40000000ull
#define DEVICE_CODE 0xffffffffc0000000ull

struct pair {
	struct uncore uncore;
	struct core *core[NAIVE_CORES];
	struct hot *hot[NAIVE_CORES];
	struct naive_system *naive;
	struct {
		uint32_t host, guest, guest_space[GUESTS + 1]; /* which host space; which guest (1 up), and which space each is in */
		bool in;
		const struct block *last;
		uint64_t calls[4];
	} state[NAIVE_CORES];
	uint64_t step;
	uint32_t seed;
};

static struct ram ram;
static struct tables host[HOST_SPACES], nested[GUESTS], guest[GUESTS][GUEST_SPACES];
static uint64_t guest_free[GUESTS];
static struct block blocks[BLOCKS];

/* The same virtual addresses everywhere; frames are few, so that lines have several names. */
static void map_all(struct random *random, const struct tables *tables, uint64_t base, bool kernel_differs)
{
	uint64_t large = base + 8 * MIB2;

	for (uint64_t i = 0; i < USER_PAGES; i++)
		tables_map(tables, USER_DATA + i * KIB4 * (i % 7 ? 1 : 16), base + random_below(random, 20) * KIB4, PAGE_4K, 0);
	for (uint64_t i = 0; i < MAPPED_PAGES; i++) {
		tables_map(tables, USER_CODE + i * KIB4, base + random_below(random, 20) * KIB4, PAGE_4K, 0);
		tables_map(tables, USER_CODE + naive_slide(tables->root) + i * KIB4, base + random_below(random, 20) * KIB4, PAGE_4K, 0);
		tables_map(tables, KERNEL_CODE + i * MIB2, large + (i % 3) * MIB2, PAGE_2M, i % 2 ? PTE_GLOBAL : 0);
		tables_map(tables, LARGE_DATA + i * MIB2, large + (i % 4) * MIB2, PAGE_2M, 0);
		tables_map(tables, KERNEL_DATA + i * KIB4, base + (i + (kernel_differs ? 1 : 0)) * KIB4, PAGE_4K, PTE_GLOBAL);
		tables_map(tables, DEVICE + i * KIB4, 0xfee00000 + i * KIB4, PAGE_4K, 0);
	}
	tables_map(tables, HUGE_DATA, 0, PAGE_1G, 0);
	tables_map(tables, HUGE_CODE, 0, PAGE_1G, PTE_GLOBAL);
	tables_map(tables, DEVICE_CODE, 0xfee00000, PAGE_4K, 0);
}

static void make_tables(struct random *random)
{
	ram = ram_new(RAM_BYTES);
	/* Data in the upper half, out of the tables' way; what it holds is never read. */
	for (int i = 0; i < HOST_SPACES; i++) {
		host[i] = tables_new(&ram, i == 2 ? 5 : 4);
		map_all(random, &host[i], 0, false);
	}
	for (int g = 0; g < GUESTS; g++) {
		nested[g] = tables_new(&ram, 4);
		guest_free[g] = 0x200000000ull;
		for (uint64_t i = 0; i < 24; i++)
			tables_map(&nested[g], i * KIB4, 0xc00000 + random_below(random, 40) * KIB4, PAGE_4K, 0);
		for (uint64_t i = 1; i < 16; i++)
			tables_map(&nested[g], i * MIB2, (uint64_t)random_below(random, 16) * MIB2, PAGE_2M, 0);
		for (int s = 0; s < GUEST_SPACES; s++) {
			guest[g][s] = tables_of_guest(&nested[g], 4, &guest_free[g]);
			map_all(random, &guest[g][s], 0, s == 1);
		}
	}
}

static uint64_t any_pc(struct random *random)
{
	switch (random_below(random, 12)) {
	case 0:
		return HUGE_CODE + random_below(random, 2) * (MIB2 + 64) + random_below(random, 3) * 192;
	case 1:
		return DEVICE_CODE + random_below(random, 2) * 64;
	case 2:
	case 3:
	case 4:
	case 5:
		return KERNEL_CODE + random_below(random, MAPPED_PAGES) * MIB2 + random_below(random, 40) * 40;
	default:
		return USER_CODE + random_below(random, MAPPED_PAGES - 1) * KIB4 + random_below(random, 200) * 21;
	}
}

/* Half of them follow the one before, so that code runs on. */
static void make_blocks(struct random *random)
{
	for (int i = 0; i < BLOCKS; i++) {
		struct block *b = &blocks[i];
		*b = (struct block){.pc = any_pc(random), .length = (uint16_t)(1 + random_below(random, 90))};
		if (i % 2)
			b->pc = block_next(b - 1);
		b->instructions = (uint16_t)(1 + random_below(random, 20));
		b->flow = (uint16_t)random_below(random, 1000);
		b->spare = (uint8_t)random_below(random, 100);
		b->kind = (uint8_t)random_below(random, BRANCH_OTHER + 1);
		b->target = blocks[random_below(random, (uint32_t)i + 1)].pc;
		b->user = !(b->pc >> 63);
		b->resolve = (uint8_t)random_below(random, 30);
		if (random_once_in(random, 5)) {
			b->kind = BRANCH_CONDITIONAL;
			b->target = b->pc;
			b->chain = (uint16_t)random_below(random, 700);
		}
		b->fused = b->kind == BRANCH_CONDITIONAL && b->instructions > 1 && random_once_in(random, 2);
		b->atomics = random_below(random, 10) == 0;
		b->pauses = random_below(random, 10) == 0;
		b->ports = random_below(random, 10) == 0;
		b->way = (uint8_t)(b->user | (b->atomics || b->pauses || b->ports ? SPECIAL_WAY : 0));
	}
}

static uint64_t any_data(struct random *random)
{
	uint64_t line = (random_below(random, 6) * 11 % 64) * 64 + random_below(random, 8) * 8;

	switch (random_below(random, 20)) {
	case 0:
		return DEVICE + random_below(random, MAPPED_PAGES + 1) * KIB4 + line; /* the last is not mapped */
	case 1:
	case 2:
		return LARGE_DATA + random_below(random, MAPPED_PAGES) * MIB2 + random_below(random, 3) * 5 * KIB4 + line;
	case 3:
		return HUGE_DATA + random_below(random, 5) * (MIB2 + KIB4) + line;
	case 4:
	case 5:
	case 6:
		return KERNEL_DATA + random_below(random, MAPPED_PAGES) * KIB4 + line;
	case 7:
		/* Lines in a row, for the prefetcher. */
		return LARGE_DATA + MIB2 + random_below(random, 200) * 64;
	default: {
		uint64_t i = random_below(random, USER_PAGES);
		return USER_DATA + i * KIB4 * (i % 7 ? 1 : 16) + line;
	}
	}
}

/* Comparing. */

static void compare(const struct pair *pair, uint32_t index)
{
	const struct core *core = pair->core[index];
	const struct naive_core *naive = &pair->naive->core[index];

	for (int mode = 0; mode < MODE_COUNT; mode++) {
		const uint64_t *found = (const uint64_t *)&core->counters[mode], *expected = (const uint64_t *)&naive->counters[mode];
		for (int i = 0; i < COUNTER_COUNT; i++)
			if (found[i] != expected[i]) {
				fprintf(stderr, "seed %u, step %" PRIu64 ", core %u, %s: %s is %" PRIu64 ", not %" PRIu64 "\n", pair->seed,
					pair->step, index, mode_names[mode], counter_names[i], found[i], expected[i]);
				exit(1);
			}
	}
	EQUAL(core->walks_failed, naive->walks_failed);
	EQUAL(core->retired, naive->retired);
}

static void compare_lines(const struct cache *cache, const struct naive_lines *naive)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < cache->sets * cache->ways; i++)
		count += cache->slots[i] != 0;
	EQUAL(count, naive->count);
	for (uint32_t i = 0; i < naive->count; i++) {
		slot_t *slot = cache_peek(cache, naive->held[i].line);
		CHECK(slot);
		EQUAL(slot_state(*slot), naive->held[i].state);
	}
}

/* What a filter says is so: the line is in that slot, by that page, and modified if a store may pass. */
static void check_filter(const struct filter_entry *filter, const struct cache *cache)
{
	for (int i = 0; i < FILTER_SETS; i++) {
		const struct filter_entry *entry = &filter[i];
		if (entry->line == FILTER_EMPTY) {
			EQUAL(entry->store_line, FILTER_EMPTY);
			continue;
		}
		uint64_t address = (entry->line & ((1ull << 58) - 1)) << LINE_SHIFT;
		uint64_t offset = address & ((1ull << page_shift[entry->page->size]) - 1);
		slot_t slot = cache->slots[entry->stamp - cache->stamps];
		CHECK(slot);
		EQUAL(slot_line(slot), (entry->page->frame | offset) >> LINE_SHIFT);
		CHECK(entry->store_line == FILTER_EMPTY || (entry->store_line == entry->line && slot_state(slot) == LINE_MODIFIED));
	}
}

/* Not the counters alone: the lines, their states, the filters. */
static void compare_all(const struct pair *pair)
{
	for (uint32_t c = 0; c < pair->naive->core_count; c++) {
		const struct core *core = pair->core[c];
		struct naive_core *naive = &pair->naive->core[c];
		compare_lines(&core->l1i, &naive->l1i);
		compare_lines(&core->l1d, &naive->l1d);
		compare_lines(&core->l2, &naive->l2);
		check_filter(core->data_filter, &core->l1d);
		check_filter(core->code_filter, &core->l1i);
	}
	for (uint32_t node = 0; node < pair->uncore.node_count; node++)
		compare_lines(&pair->uncore.llc[node].cache, &pair->naive->llc[node]);
}

/* Each count that has a kind of its own among the hot spots is there, no more and no less. */
static void compare_hot(const struct pair *pair, uint32_t index)
{
	uint64_t sums[HOT_KIND_COUNT] = {0};
	struct counters all = {0}, none = {0};

	for (uint32_t i = 0; i < HOT_SPOTS; i++)
		for (int kind = 0; kind < HOT_KIND_COUNT; kind++)
			sums[kind] += pair->hot[index]->spot[i].count[kind];
	for (int mode = 0; mode < MODE_COUNT; mode++)
		counters_add_difference(&all, &pair->core[index]->counters[mode], &none);
	EQUAL(pair->hot[index]->dropped, 0);
	EQUAL(sums[HOT_samples], 0);
	EQUAL(sums[HOT_l1d_misses], all.l1d_misses);
	EQUAL(sums[HOT_l1i_misses], all.l1i_misses);
	EQUAL(sums[HOT_l2_misses], all.l2_misses);
	EQUAL(sums[HOT_llc_misses], all.llc_misses);
	EQUAL(sums[HOT_dtlb_walks], all.dtlb_walks);
	EQUAL(sums[HOT_itlb_walks], all.itlb_walks);
	EQUAL(sums[HOT_branch_misses], all.branch_misses);
}

/* Driving both. */

static void set_space(struct pair *pair, uint32_t c, const struct tables *tables, uint16_t number, bool is_new)
{
	struct address_space space = tables_space(tables);

	(is_new ? core_new_address_space : core_switch_address_space)(pair->core[c], &space, number);
	(is_new ? naive_new_space : naive_switch_space)(&pair->naive->core[c], tables, number);
}

static const struct tables *guest_tables(const struct pair *pair, uint32_t c)
{
	uint32_t number = pair->state[c].guest;

	return &guest[number - 1][pair->state[c].guest_space[number]];
}

/* VMRUN: the guest goes on with the CR3 that it had, or the host wants its translations flushed. */
static void enter_guest(struct pair *pair, struct random *random, uint32_t c)
{
	uint32_t number = 1 + random_below(random, GUESTS);

	pair->state[c].guest = number;
	pair->state[c].in = true;
	if (random_once_in(random, 4)) {
		pair->state[c].guest_space[number] = random_below(random, GUEST_SPACES);
		core_flush_address_space(pair->core[c], (uint16_t)number);
		naive_flush_space(&pair->naive->core[c], number);
	}
	set_space(pair, c, guest_tables(pair, c), (uint16_t)number, false);
	core_enter(pair->core[c], true);
	pair->naive->core[c].guest = true;
}

static void leave_guest(struct pair *pair, uint32_t c)
{
	pair->state[c].in = false;
	core_enter(pair->core[c], false);
	core_forget_blocks(pair->core[c]);
	set_space(pair, c, &host[pair->state[c].host], 0, false);
	pair->naive->core[c].guest = false;
	pair->naive->core[c].previous = pair->naive->core[c].device_block = NULL;
	pair->state[c].last = NULL;
}

static void load_cr3(struct pair *pair, struct random *random, uint32_t c)
{
	if (pair->state[c].in) {
		pair->state[c].guest_space[pair->state[c].guest] = random_below(random, GUEST_SPACES);
		set_space(pair, c, guest_tables(pair, c), (uint16_t)pair->state[c].guest, true);
	} else {
		pair->state[c].host = random_below(random, HOST_SPACES);
		set_space(pair, c, &host[pair->state[c].host], 0, true);
	}
}

static const struct block *block_at(uint64_t pc)
{
	for (int i = 0; i < BLOCKS; i++)
		if (blocks[i].pc == pc)
			return &blocks[i];
	return NULL;
}

/* Mostly where the code leads; now and then elsewhere, as an interrupt does. */
static const struct block *next_block(struct pair *pair, struct random *random, uint32_t c)
{
	const struct block *last = pair->state[c].last, *next = NULL;
	uint64_t *calls = pair->state[c].calls;

	if (last && !random_once_in(random, 8)) {
		if (last->kind == BRANCH_CALL || last->kind == BRANCH_INDIRECT_CALL)
			calls[random_below(random, 4)] = block_next(last);
		if (last->kind == BRANCH_RETURN)
			next = block_at(calls[random_below(random, 4)]);
		else if (last->kind == BRANCH_NONE || (last->kind == BRANCH_CONDITIONAL && random_below(random, 3)))
			next = block_at(block_next(last));
		else if (last->kind <= BRANCH_CALL)
			next = block_at(last->target);
		else if (last->kind == BRANCH_INDIRECT || last->kind == BRANCH_INDIRECT_CALL)
			next = &blocks[(uint32_t)(last - blocks) * 7 % (BLOCKS - 3) + random_below(random, 3)];
	}
	if (!next)
		next = &blocks[random_below(random, BLOCKS)];
	pair->state[c].last = next;
	return next;
}

static void naive_element(struct naive_core *naive, uint64_t address, uint64_t bytes, bool store)
{
	struct counters *now = naive_now(naive);

	naive_access(naive, address, store);
	if ((address & 63) + bytes <= 64)
		return;
	naive_access(naive, address + bytes - 1, store);
	*(store ? &now->stores : &now->loads) -= 1;
}

/* A repeated MOVS or STOS, in the reference element by element. */
static void repeat(struct core *core, struct naive_core *naive, struct random *random)
{
	struct repeated r = {
		.from = any_data(random) + random_below(random, 64),
		.to = any_data(random) + random_below(random, 64),
		.count = random_below(random, 300),
		.bytes = 1u << random_below(random, 4),
		.loads = random_below(random, 2),
		.down = random_below(random, 2),
	};

	core_repeated(core, r);
	naive_repeat_begins(naive, r.count * r.bytes);
	naive->repeats = true;
	for (uint64_t i = 0; i < r.count; i++) {
		uint64_t offset = r.down ? -i * r.bytes : i * r.bytes;
		if (r.loads)
			naive_element(naive, r.from + offset, r.bytes, false);
		naive_element(naive, r.to + offset, r.bytes, true);
	}
	naive->repeats = false;
}

static void one_step(struct pair *pair, struct random *random)
{
	uint32_t c = random_below(random, pair->naive->core_count);
	struct core *core = pair->core[c];
	struct naive_core *naive = &pair->naive->core[c];

	switch (random_below(random, 400)) {
	case 0:
		load_cr3(pair, random, c);
		break;
	case 1:
	case 2: {
		const struct tables *tables = pair->state[c].in ? guest_tables(pair, c) : &host[pair->state[c].host];
		uint64_t address = random_once_in(random, 3) ? any_pc(random) : any_data(random);
		if (address >= USER_CODE && address < USER_CODE + MIB2)
			address += random_below(random, 2) * naive_slide(tables->root);
		/* Another frame for the page. Other processors of that space go on with the old one, in both models. */
		if (address >= USER_DATA && address < USER_DATA + 64 * KIB4 && random_below(random, 2))
			tables_map(tables, address & ~(KIB4 - 1), random_below(random, 20) * KIB4, PAGE_4K, 0);
		core_forget_page(core, address);
		naive_forget_page(naive, address);
		break;
	}
	case 3:
		if (pair->state[c].in)
			leave_guest(pair, c);
		else
			enter_guest(pair, random, c);
		break;
	case 4:
		/* The host flushes a guest that does not run. */
		if (!pair->state[c].in) {
			core_flush_address_space(core, 1);
			naive_flush_space(naive, 1);
		}
		break;
	case 5:
		/* MOV to CR4. */
		if (random_once_in(random, 4)) {
			core_flush_all(core);
			naive_flush_all(naive);
		}
		break;
	case 6:
		repeat(core, naive, random);
		break;
	case 7 ... 36: {
		uint64_t address = any_data(random);
		bool own = random_once_in(random, 3), far = random_once_in(random, 4);
		core_prefetch(core, address, own, far);
		naive_prefetch_instruction(naive, address, own, far);
		break;
	}
	default:
		if (random_below(random, 5) < 2) {
			const struct block *block = next_block(pair, random, c);
			core_block(core, block);
			naive_block(naive, block);
		} else {
			uint64_t address = any_data(random);
			bool store = random_once_in(random, 3), missed = core_access(core, address, store);
			EQUAL(missed, naive_access(naive, address, store));
			if (missed && random_below(random, 2)) {
				uint64_t value = any_data(random);
				core_loaded(core, value);
				naive_loaded(naive, value);
			}
		}
	}
}

static struct profile any_profile(struct random *random)
{
	struct profile p = default_profile();

	p.core_fetch_ahead = random_below(random, 30);
	p.core_call_cycles = 1 + random_below(random, 3);
	p.core_taken_permille = 1 + random_below(random, 1500);
	p.l1i_sets = 1u << random_below(random, 5);
	p.l1d_sets = 1u << random_below(random, 5);
	p.l1i_ways = 1 + random_below(random, 4);
	p.l1d_ways = 1 + random_below(random, 4);
	p.l1d_fill_buffers = 1 + random_below(random, 4);
	p.l2_sets = 1u << random_below(random, 6);
	p.l2_ways = 1 + random_below(random, 6);
	p.llc_sets = 1 + random_below(random, 60);
	p.llc_ways = 1 + random_below(random, 12);
	/* So small that a prefetch drops the line that it came with. */
	if (random_once_in(random, 6))
		p.llc_sets = p.llc_ways = 1;
	p.llc_policy = random_below(random, 3);
	p.dtlb_4k_ways = 1 + random_below(random, 4);
	p.dtlb_4k_entries = p.dtlb_4k_ways << random_below(random, 4);
	p.dtlb_2m_ways = 1 + random_below(random, 3);
	p.dtlb_2m_entries = p.dtlb_2m_ways << random_below(random, 2);
	p.dtlb_1g_entries = p.dtlb_1g_ways = random_below(random, 2);
	p.itlb_4k_ways = 1 + random_below(random, 3);
	p.itlb_4k_entries = p.itlb_4k_ways << random_below(random, 2);
	p.itlb_2m_ways = p.itlb_2m_entries = 1 + random_below(random, 4);
	p.stlb_ways = 1 + random_below(random, 4);
	p.stlb_entries = p.stlb_ways << random_below(random, 5);
	p.stlb_1g_entries = p.stlb_1g_ways = random_below(random, 2);
	p.stlb_code_ways = p.stlb_code_entries = random_below(random, 2) * 4;
	p.walk_pde_entries = random_below(random, 8);
	p.walk_pdpte_entries = random_below(random, 4);
	p.walk_pml4e_entries = random_below(random, 3);
	p.walk_nested_entries = random_below(random, 20);
	p.branch_history = random_below(random, 13);
	p.branch_bimodal_bits = random_below(random, 10);
	p.branch_return_stack = 1 + random_below(random, 8);
	p.prefetch_l1i_next = random_below(random, 2);
	p.prefetch_l2_adjacent = random_below(random, 2);
	p.prefetch_l2_stream = random_below(random, 2) * 4;
	p.prefetch_l1_stream = random_below(random, 3);
	p.l2_line_cycles = random_below(random, 3);
	p.memory_line_cycles = random_below(random, 2) * random_below(random, 30);
	p.model_page_walks = random_below(random, 8) != 0;
	p.model_branches = random_below(random, 4) != 0;
	p.model_coherence = random_below(random, 4) != 0;
	return p;
}

static uint64_t real_pc(struct core *core)
{
	return core->previous->pc + naive_slide(core->space.root);
}

/* Every other core, and the memory from `second_node` on, are another node's. */
static void split(struct pair *pair, uint64_t second_node)
{
	CHECK(uncore_add_node(&pair->uncore, 0) && uncore_add_node(&pair->uncore, second_node));
	pair->naive->second_node = second_node;
	for (uint32_t c = 0; c < pair->naive->core_count; c++)
		pair->naive->core[c].node = pair->uncore.node_of_core[c] = c % 2;
}

static struct pair *new_pair(const struct profile *profile, uint32_t core_count, uint32_t seed)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	CHECK(pair && uncore_init(&pair->uncore, profile, core_count));
	pair->seed = seed;
	pair->naive = naive_system_new(profile, core_count, RAM_BYTES);
	for (uint32_t c = 0; c < core_count; c++) {
		pair->core[c] = pair->uncore.core[c] = core_new();
		pair->hot[c] = calloc(1, sizeof(struct hot));
		CHECK(pair->core[c] && pair->hot[c] && core_init(pair->core[c], profile, &pair->uncore, c, ram_memory(&ram)));
		pair->core[c]->hot = pair->hot[c];
		/* Lists know what was used last, not how many ticks ago: see test_uncore.c. */
		pair->core[c]->spin_ticks = 0;
		if (seed % 2) {
			pair->core[c]->real_pc = real_pc;
			pair->naive->core[c].moves = true;
		}
		set_space(pair, c, &host[0], 0, true);
	}
	return pair;
}

static void free_pair(struct pair *pair)
{
	for (uint32_t c = 0; c < pair->naive->core_count; c++) {
		core_free(pair->core[c]);
		free(pair->core[c]);
		free(pair->hot[c]);
	}
	uncore_free(&pair->uncore);
	free(pair->naive);
	free(pair);
}

static void run(const struct profile *profile, uint32_t core_count, uint32_t steps, uint32_t seed, uint64_t second_node)
{
	struct random random = {seed};
	struct pair *pair = new_pair(profile, core_count, seed);

	if (second_node)
		split(pair, second_node);
	for (pair->step = 1; pair->step <= steps; pair->step++) {
		one_step(pair, &random);
		for (uint32_t c = 0; c < core_count; c++)
			compare(pair, c);
		if (pair->step % 512 == 0)
			compare_all(pair);
	}
	for (uint32_t c = 0; c < core_count; c++)
		compare_hot(pair, c);
	free_pair(pair);
}

int main(int argc, char **argv)
{
	uint32_t first = argc > 1 ? (uint32_t)atoi(argv[1]) : 1, last = argc > 2 ? (uint32_t)atoi(argv[2]) : 40;
	struct random random = {4711};

	make_tables(&random);
	make_blocks(&random);
	for (uint32_t seed = first; seed <= last; seed++) {
		struct random shape = {seed * 77};
		struct profile profile = any_profile(&shape);
		uint64_t second_node = seed / NAIVE_CORES % 2 ? 1 + random_below(&shape, RAM_BYTES >> LINE_SHIFT) : 0;
		run(&profile, 1 + seed % NAIVE_CORES, 20000, seed, second_node);
	}
	free(ram.bytes);
	return 0;
}
