/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From virtual addresses to physical ones: TLBs, and the walk where they have no entry. */
#include "core_parts.h"

/* The walker reads its entries through L1D, as on the modelled processors; it is no demand access there. */
static uint32_t read_entries(struct core *core, const struct walk *walk)
{
	uint32_t cycles = core->profile->walk_fixed;

	for (uint32_t i = 0; i < walk->references; i++) {
		uint64_t line = walk->reference[i] >> LINE_SHIFT;
		if (cache_touch(&core->l1d, line, ++core->tick)) {
			cycles += core->profile->l1d_latency;
			continue;
		}
		slot_t *slot;
		cycles += served_latency(core->profile, lines_load(core, line, false, &slot));
	}
	return cycles;
}

static uint32_t walk_page(struct core *core, uint64_t address, struct tlb_entry *found)
{
	struct walk walk = {.references = 0};
	uint32_t cycles = core->profile->walk_fixed;

	/* Without page tables an address is its own place, but no higher than caches can tell. */
	*found = (struct tlb_entry){.frame = address & ((MOST_LINES << LINE_SHIFT) - 1) & ~0xfffull,
		.size = PAGE_4K,
		.generation = core->context.generation,
		.memory = true};
	if (!core->profile->model_page_walks)
		return cycles;
	if (walker_walk(&core->walker, &core->space, address, &walk)) {
		found->frame = walk.frame;
		found->size = (uint8_t)walk.size;
		found->memory = memory_holds(&core->walker.memory, walk.frame);
		found->device = !found->memory;
		if (walk.global)
			found->generation = TLB_GLOBAL;
	} else {
		found->memory = false;
		core->walks_failed++;
	}
	core->now->walk_references += walk.references;
	return read_entries(core, &walk);
}

/* A page that a TLB has no entries for is held as one of the next smaller size. */
static void fit(const struct tlb tlb[PAGE_SIZES], uint64_t address, struct tlb_entry *translation)
{
	while (translation->size > PAGE_4K && !tlb[translation->size].sets) {
		uint64_t offset = address & ((1ull << page_shift[translation->size]) - 1);
		translation->size--;
		translation->frame += offset & ~((1ull << page_shift[translation->size]) - 1);
	}
}

static struct tlb_entry *find_in_second(struct core *core, struct tlb *second, uint64_t address)
{
	struct tlb_entry *entry = tlb_find(second, address, PAGE_4K, core->context);

	if (!entry)
		entry = tlb_find(second, address, PAGE_2M, core->context);
	return entry ? entry : tlb_find(&core->stlb_1g, address, PAGE_1G, core->context);
}

static struct tlb_entry *translate_slow(
	struct core *core, struct tlb tlb[PAGE_SIZES], struct tlb *second, uint64_t address, bool depends, uint64_t *walks, uint64_t *stall)
{
	const struct profile *p = core->profile;
	uint64_t exposed = depends ? 1000 : p->walk_exposed_permille;
	struct tlb_entry *known = find_in_second(core, second, address), fresh, evicted = {.key = TLB_EMPTY};

	if (known) {
		known->stamp = core->tick;
		fresh = *known;
		*stall += p->stlb_latency * exposed / 1000;
	} else {
		uint32_t cycles = walk_page(core, address, &fresh);
		++*walks;
		core_mark(core, walks == &core->now->dtlb_walks ? HOT_dtlb_walks : HOT_itlb_walks);
		core->now->walk_cycles += cycles;
		*stall += cycles * exposed / 1000;
		/* A prefetch instruction may come to a page that is not there. No TLB keeps that: it may be there the next time. */
		if (core->asking && !fresh.memory && !fresh.device)
			return &core->no_page;
		struct tlb_entry held = fresh;
		fit((const struct tlb[PAGE_SIZES]){*second, *second, core->stlb_1g}, address, &held);
		tlb_insert(held.size == PAGE_1G ? &core->stlb_1g : second, address, &held, core->context, core->tick, &evicted);
	}
	fit(tlb, address, &fresh);
	struct tlb_entry *entry = tlb_insert(&tlb[fresh.size], address, &fresh, core->context, core->tick, &evicted);
	filter_forget_lines(tlb == core->itlb ? core->code_filter : core->data_filter, entry, evicted.filtered);
	if (tlb == core->itlb)
		core->code_line = UINT64_MAX;
	return entry;
}

struct tlb_entry *core_translate(struct core *core, struct tlb tlb[PAGE_SIZES], uint64_t address, bool depends)
{
	core->tick++;
	for (int size = 0; size < PAGE_SIZES; size++) {
		struct tlb_entry *entry = tlb_find(&tlb[size], address, (enum page_size)size, core->context);
		if (entry) {
			entry->stamp = core->tick;
			return entry;
		}
	}
	struct counters *now = core->now;
	if (tlb == core->dtlb) {
		now->dtlb_misses++;
		return translate_slow(core, tlb, &core->stlb, address, depends, &now->dtlb_walks, &now->stall_dtlb);
	}
	now->itlb_misses++;
	struct tlb *second = core->stlb_code.sets ? &core->stlb_code : &core->stlb;
	return translate_slow(core, tlb, second, address, false, &now->itlb_walks, &now->stall_itlb);
}
