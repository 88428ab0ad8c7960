/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads and stores, those of repeated string instructions among them, and what waiting for them costs. */
#include "core_parts.h"

#define NEAR_BYTES 4096
#define NEAR_SHADOW 3            /* the part of the reorder buffer, in which instructions are under way with a load that the LLC serves */
#define LOCAL_APIC 0xfee00000ull /* where Linux leaves it */

/* Cycles. Which misses cost what: see docs/collectors/uarch_model.md. */

/*
 * Whether the core had kept looking at this line until another one took it to write. What comes next depends on what is in it now, so
 * nothing hides the way. QEMU tells of a store after it is done: the core may have seen the new value in the line that it still had, and
 * ask for the line only to answer there. Then that store stands for the load that a processor would have waited for.
 */
static bool was_awaited(struct core *core, uint64_t line)
{
	if (line != __atomic_load_n(&core->awaited, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&core->awaited, NO_LINE, __ATOMIC_RELAXED);
	return true;
}

/*
 * Other work hides what is near in part. A second load that goes beyond L2 soon after is under way at the same time: on Zen 4 independent
 * loads that the LLC serves cost 18 cycles each where 85 instructions lie between two of them, 8 where 27 do, 4 with 11.
 */
static uint64_t near_exposed(struct core *core, enum served served, uint64_t extra)
{
	const struct profile *p = core->profile;
	uint64_t cycles = extra * p->core_exposed_l2_permille / 1000;

	if (served == SERVED_L2)
		return cycles;
	if (core->retired - core->last_near < p->core_rob / NEAR_SHADOW)
		return cycles * p->core_overlap_permille / 1000;
	core->last_near = core->retired;
	return cycles;
}

/*
 * Where what came behind the last such load could not fill the core (of more than fit into the reorder buffer, a part), its wait is hidden
 * for so long.
 */
void core_settle(struct core *core)
{
	struct near *near = &core->near;

	if (!near->stall)
		return;
	uint64_t rob = core->profile->core_rob, behind = core->retired - near->retired, spare = core->spare - near->spare;
	uint64_t hidden = (behind > rob ? spare * rob / behind : spare) / SPARE_PART;
	core_wait(core, near->stall, near->cycles > hidden ? near->cycles - hidden : 0);
	near->stall = NULL;
}

static void charge_load(struct core *core, enum served served, bool depends, bool awaited)
{
	const struct profile *p = core->profile;
	uint64_t latency = served_latency(p, served), extra = latency - p->l1d_latency, waited = 0, cycles = extra;
	bool beyond = served >= SERVED_REMOTE_CACHE, shadowed = core->retired - core->last_long < p->core_rob;

	core_settle(core);
	/* One long miss fills the reorder buffer, and others are served in its shadow. */
	if (!beyond && !awaited)
		cycles = near_exposed(core, served, extra);
	else if (shadowed && !awaited)
		cycles = extra * p->core_overlap_permille / 1000;
	/*
	 * From the load that it waits for to this one it takes the whole latency, in which the instructions between them run, those of
	 * a chain one after the other.
	 */
	if (depends) {
		uint64_t between = (core->flow - core->value_at + core->chained - core->value_chained) / CHAIN_PART;
		waited = latency > between ? latency - between : 0;
	}
	if (beyond && (!shadowed || waited > cycles))
		core->last_long = core->retired;
	if (beyond || awaited || waited > cycles)
		core_wait(core, stall_of(core, served), waited > cycles ? waited : cycles);
	else
		core->near = (struct near){stall_of(core, served), cycles, core->retired, core->spare};
}

/*
 * A line that a prefetcher brought is used. Its way from L2 to L1D kept loads waiting (the ECM model's first term beyond the core: Hofmann
 * and others, "Analysis of Intel's Haswell Microarchitecture Using the ECM Model and Microbenchmarks", ARCS 2016). What came from beyond
 * L2 was asked for too late to be there, but before it was needed.
 */
static void charge_early(struct core *core, enum served served)
{
	const struct profile *p = core->profile;
	uint64_t extra = served_latency(p, served) - p->l1d_latency;

	/* Microcode that moves strings leaves L1D time enough: on Zen 4 a line from L2 takes 0.3 cycles more than one from L1D. */
	if (!core->repeating)
		core_wait(core, &core->now->stall_l2, p->l2_line_cycles);
	if (served != SERVED_L2)
		core_wait(core, stall_of(core, served),
			extra * (served >= SERVED_REMOTE_CACHE ? p->core_overlap_permille : p->core_exposed_l2_permille) / 1000);
}

/* A line that a prefetch instruction asked for is loaded. The rest of its latency is waited for, as that of a miss is. */
static void charge_asked(struct core *core, enum served served, uint64_t there)
{
	core_settle(core);
	uint64_t now = core_cycles(core);

	if (there <= now)
		return;
	if (served < SERVED_REMOTE_CACHE) {
		core->near = (struct near){stall_of(core, served), near_exposed(core, served, there - now), core->retired, core->spare};
		return;
	}
	core->last_long = core->retired;
	core_wait(core, &core->now->stall_memory, there - now);
}

void core_loaded(struct core *core, uint64_t value)
{
	core->last_value = value;
	core->value_at = core->flow;
	core->value_chained = core->chained;
	core->value_known = true;
}

/* Data. */

static struct tlb_entry *translate_data(struct core *core, uint64_t address, bool depends)
{
	struct page_filter_entry *known = &core->page_filter[(address >> 12) % PAGE_FILTER_SETS];
	uint64_t page = address >> 12 | core->space_tag;

	if (known->page != page || !tlb_holds(known->entry, address, core->context.space)) {
		struct tlb_entry *entry = core_translate(core, core->dtlb, address, depends);
		*known = (struct page_filter_entry){.page = page, .entry = entry};
	} else {
		known->entry->stamp = ++core->tick;
	}
	return known->entry;
}

/* A device's register is never cached: a load waits for the device, a store until it is under way. The local APIC is in the core. */
static void access_device(struct core *core, const struct tlb_entry *page, uint64_t address, bool store)
{
	const struct profile *p = core->profile;

	core->device_block = core->previous;
	if (physical_address(page, address) >> 12 == LOCAL_APIC >> 12) {
		core->now->stall_mode += p->cost_apic;
		return;
	}
	core->now->io_accesses++;
	core->now->stall_mode += store ? p->cost_mmio_write : p->cost_mmio;
}

bool core_access_slow(struct core *core, uint64_t address, bool store)
{
	if (core->blind)
		return false;
	/* The address is what the last load brought that took long: a pointer chase, which hides nothing. */
	bool depends = !store && core->value_known && address - core->last_value < NEAR_BYTES;
	uint64_t dtlb_misses = core->now->dtlb_misses;
	struct tlb_entry *page = translate_data(core, address, depends);
	bool missed = core->now->dtlb_misses != dtlb_misses;

	*(store ? &core->now->stores : &core->now->loads) += 1;
	if (page->device)
		access_device(core, page, address, store);
	if (!page->memory)
		return false;
	uint64_t line = physical_line(page, address);
	slot_t *slot = cache_touch(&core->l1d, line, ++core->tick);
	if (!slot && !store && core->profile->prefetch_l1_stream && lines_cross_page(core, address)) {
		lines_prefetch(core, line);
		lines_prefetch_l1d(core, line);
		slot = cache_peek(&core->l1d, line);
	}
	uint32_t early = slot ? core->l1d_filtered[slot - core->l1d.slots] : 0;
	bool fresh = !slot || early & EARLY;
	if (!slot) {
		cache_expect(&core->l2, line);
		core->now->l1d_misses++;
		core_mark(core, HOT_l1d_misses);
		enum served served = lines_load(core, line, store, &slot);
		/* Stores wait in the store buffer; nobody waits for them. */
		bool awaited = was_awaited(core, line);
		if (awaited || !store)
			charge_load(core, served, depends, awaited);
		missed = true;
	} else if (store && slot_state(*slot) != LINE_MODIFIED) {
		lines_own(core, line, slot);
	} else if (early & EARLY && !store) {
		uint64_t there = core->l1d_there[slot - core->l1d.slots];
		enum served served = (enum served)(early >> EARLY_SHIFT & EARLY_SERVED);
		if (there == NOT_ASKED)
			charge_early(core, served);
		else
			charge_asked(core, served, there);
	}
	filter_remember_slot(core->data_filter, core->l1d_filtered, &core->l1d, slot, address >> LINE_SHIFT | core->space_tag, page,
		slot_state(*slot) == LINE_MODIFIED);
	if (missed)
		core->value_known = false;
	if (fresh && !store && core->profile->prefetch_l1_stream)
		lines_follow(core, address, line, page);
	return missed && !store;
}

void core_prefetch(struct core *core, uint64_t address, bool own, bool far)
{
	if (core->blind)
		return;
	core->asking = true;
	struct tlb_entry *page = translate_data(core, address, false);
	core->asking = false;
	if (page->device || !page->memory)
		return;
	uint64_t line = physical_line(page, address);
	slot_t *slot = cache_touch(&core->l1d, line, ++core->tick);
	if (slot && own && slot_state(*slot) != LINE_MODIFIED)
		lines_own(core, line, slot);
	else if (!slot && far)
		lines_prefetch(core, line);
	else if (!slot)
		lines_ask(core, line, own);
}

/* How many elements from the one at `address` on lie in one line with it; 1 for one that runs over its line's end. */
static uint64_t within_line(uint64_t address, uint64_t bytes, bool down)
{
	uint64_t offset = address & ((1 << LINE_SHIFT) - 1), room = (1 << LINE_SHIFT) - offset;
	int shift = __builtin_ctzll(bytes);

	if (room < bytes)
		return 1;
	return down ? (offset >> shift) + 1 : room >> shift;
}

static void access_element(struct core *core, uint64_t address, uint64_t bytes, bool store)
{
	uint64_t last = address + bytes - 1;

	core_access(core, address, store);
	if (address >> LINE_SHIFT == last >> LINE_SHIFT)
		return;
	core_access(core, last, store);
	*(store ? &core->now->stores : &core->now->loads) -= 1;
}

/* What an access that changes nothing but the counts of loads and stores leaves as it was. */
static uint64_t events_of_data(const struct counters *now)
{
	return now->l1d_misses + now->l1d_upgrades + now->dtlb_misses + now->io_accesses + now->stall_mode;
}

/* The next element. Returns whether all of it was at hand: then another one in these lines changes nothing but the counts. */
static bool repeat_once(struct core *core, struct repeated *r)
{
	uint64_t events = events_of_data(core->now), step = r->down ? -(uint64_t)r->bytes : r->bytes;

	if (r->loads)
		access_element(core, r->from, r->bytes, false);
	access_element(core, r->to, r->bytes, true);
	r->from += step;
	r->to += step;
	r->count--;
	return events_of_data(core->now) == events;
}

static void repeat_counted(struct core *core, struct repeated *r, uint64_t count)
{
	uint64_t length = count * r->bytes;

	core->now->loads += r->loads ? count : 0;
	core->now->stores += count;
	r->from += r->down ? -length : length;
	r->to += r->down ? -length : length;
	r->count -= count;
}

/* Microcode moves whole vectors, if its bytes are few by a short way: what that takes where all is in L1. */
static uint64_t repeat_cycles(const struct profile *p, uint64_t bytes)
{
	if (bytes <= p->cost_repeat_short_bytes)
		return p->cost_repeat_short;
	return p->cost_repeat_start + (bytes + p->cost_repeat_bytes - 1) / p->cost_repeat_bytes;
}

void core_repeated(struct core *core, struct repeated r)
{
	core->now->repeat_cycles += repeat_cycles(core->profile, r.count * r.bytes);
	core->repeating = true;
	while (r.count) {
		uint64_t run = within_line(r.to, r.bytes, r.down), loads = r.loads ? within_line(r.from, r.bytes, r.down) : run;
		run = loads < run ? loads : run;
		run = r.count < run ? r.count : run;
		repeat_once(core, &r);
		if (run > 1 && repeat_once(core, &r))
			repeat_counted(core, &r, run - 2);
	}
	core->repeating = false;
}
