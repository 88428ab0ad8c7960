/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#define SPACE_SHIFT 58 /* a virtual line number has 58 bits */
#define NEAR_BYTES 4096
#define LOCAL_APIC 0xfee00000ull /* where Linux leaves it */
#define FILLS_UNDER_WAY 16 /* lines that one core can have asked memory for: as in Intel's superqueue (Optimization Reference Manual) */
/* In l1d_filtered: a prefetcher brought the line, from where, and nobody used it yet. */
#define EARLY (1u << 15)
#define EARLY_SHIFT FILTER_BITS
#define EARLY_SERVED 7
_Static_assert(SERVED_COUNT <= EARLY_SERVED && EARLY_SERVED << EARLY_SHIFT < EARLY, "where it came from fits between");
#define ALL_TLBS(core)                                                                                                              \
	{&(core)->dtlb[0], &(core)->dtlb[1], &(core)->dtlb[2], &(core)->itlb[0], &(core)->itlb[1], &(core)->itlb[2], &(core)->stlb, \
		&(core)->stlb_1g, &(core)->stlb_code}

uint16_t block_chain(const struct profile *profile, uint32_t instructions, uint32_t chain, uint32_t rounds)
{
	uint64_t takes = (uint64_t)chain * CHAIN_PART / rounds, flow = (uint64_t)instructions * 1000 * CHAIN_PART / profile->core_ipc_milli;

	return takes <= flow ? 0 : takes - flow > UINT16_MAX ? UINT16_MAX : (uint16_t)(takes - flow);
}

static const struct block nowhere = {.kind = BRANCH_OTHER, .length = 1};

static void clear_page_filters(struct core *core)
{
	for (int i = 0; i < PAGE_FILTER_SETS; i++)
		core->page_filter[i].page = UINT64_MAX;
	for (int i = 0; i < CODE_PAGES; i++)
		core->code_page[i].page = UINT64_MAX;
	core->code_line = UINT64_MAX;
}

static void clear_filters(struct core *core)
{
	for (int i = 0; i < FILTER_SETS; i++) {
		core->data_filter[i].line = core->data_filter[i].store_line = FILTER_EMPTY;
		core->code_filter[i].line = core->code_filter[i].store_line = FILTER_EMPTY;
	}
	clear_page_filters(core);
}

/* A slot of L1 gets another line, or none. */
static void forget_slot(struct filter_entry *filter, const uint16_t *filtered, const struct cache *cache, size_t slot)
{
	struct filter_entry *entry = &filter[filtered[slot] % FILTER_SETS];

	if (entry->stamp == &cache->stamps[slot]) {
		__atomic_store_n(&entry->line, FILTER_EMPTY, __ATOMIC_RELAXED);
		__atomic_store_n(&entry->store_line, FILTER_EMPTY, __ATOMIC_RELAXED);
	}
}

static void remember_slot(struct filter_entry *filter, uint16_t *filtered, const struct cache *cache, const slot_t *slot, uint64_t line,
	struct tlb_entry *page, bool writable)
{
	size_t at = (size_t)(slot - cache->slots);
	uint16_t set = (uint16_t)filter_set(line);

	/* Gone at once: to bring it in, a very small LLC had to drop it again, or another core took it in between. */
	if (!*slot)
		return;
	/* Under another virtual address, or as another process's. */
	if (filtered[at] != set)
		forget_slot(filter, filtered, cache, at);
	filtered[at] = set;
	page->filtered |= 1ull << set / FILTER_PART;
	filter[set] = (struct filter_entry){
		.line = line,
		.store_line = writable ? line : FILTER_EMPTY,
		.stamp = &cache->stamps[at],
		.page = page,
	};
}

/* No filter may vouch for the page of `entry` any longer; `parts` is where. */
static void forget_lines(struct filter_entry *filter, const struct tlb_entry *entry, uint64_t parts)
{
	for (; parts; parts &= parts - 1) {
		struct filter_entry *part = &filter[__builtin_ctzll(parts) * FILTER_PART];
		for (int i = 0; i < FILTER_PART; i++)
			if (part[i].page == entry)
				part[i].line = part[i].store_line = FILTER_EMPTY;
	}
}

/* The filters' lines that pages of one TLB vouch for: those of an address space that ends, but for the global ones. */
static void forget_outdated(struct filter_entry *filter, struct tlb *tlb, uint16_t number)
{
	for (uint32_t i = 0; i < tlb->sets * tlb->ways; i++) {
		struct tlb_entry *entry = &tlb->entries[i];
		if (!entry->filtered || entry->generation == TLB_GLOBAL || entry->key >> 52 != (number & 0xfff))
			continue;
		forget_lines(filter, entry, entry->filtered);
		entry->filtered = 0;
	}
}

/* INVLPG, as far as the filters are concerned. */
static void forget_page(struct filter_entry *filter, const struct tlb tlb[PAGE_SIZES], uint64_t address, struct tlb_context context)
{
	for (int size = 0; size < PAGE_SIZES; size++) {
		const struct tlb_entry *entry = tlb_find(&tlb[size], address, (enum page_size)size, context);
		if (entry)
			forget_lines(filter, entry, entry->filtered);
	}
}

static bool init_tlbs(struct core *core, const struct profile *p)
{
	return tlb_init(&core->dtlb[PAGE_4K], p->dtlb_4k_entries, p->dtlb_4k_ways) &&
	       tlb_init(&core->dtlb[PAGE_2M], p->dtlb_2m_entries, p->dtlb_2m_ways) &&
	       tlb_init(&core->dtlb[PAGE_1G], p->dtlb_1g_entries, p->dtlb_1g_ways) &&
	       tlb_init(&core->itlb[PAGE_4K], p->itlb_4k_entries, p->itlb_4k_ways) &&
	       tlb_init(&core->itlb[PAGE_2M], p->itlb_2m_entries, p->itlb_2m_ways) && tlb_init(&core->itlb[PAGE_1G], 0, 0) &&
	       tlb_init(&core->stlb, p->stlb_entries, p->stlb_ways) && tlb_init(&core->stlb_1g, p->stlb_1g_entries, p->stlb_1g_ways) &&
	       tlb_init(&core->stlb_code, p->stlb_code_entries, p->stlb_code_ways);
}

struct core *core_new(void)
{
	struct core *core = aligned_alloc(_Alignof(struct core), sizeof(*core));

	if (core)
		memset(core, 0, sizeof(*core));
	return core;
}

bool core_init(struct core *core, const struct profile *profile, struct uncore *uncore, uint32_t index, struct memory memory)
{
	memset(core, 0, sizeof(*core));
	core->profile = profile;
	core->uncore = uncore;
	core->index = index;
	core->now = &core->counters[HOST_KERNEL];
	core->previous = &nowhere;
	for (int i = 0; i < 256; i++)
		core->generation[i] = 1;
	core->context.generation = 1;
	core->way = UNKNOWN_WAY;
	core->branches_modelled = profile->model_branches;
	core->last_long = (uint64_t)-1 << 32;
	core->sample_at = core->sample_due = core->steered_at = UINT64_MAX;
	walker_init(&core->walker, profile, memory);
	clear_filters(core);
	core->l1i_filtered = calloc((size_t)profile->l1i_sets * profile->l1i_ways, sizeof(uint16_t));
	core->l1d_filtered = calloc((size_t)profile->l1d_sets * profile->l1d_ways, sizeof(uint16_t));
	return core->l1i_filtered && core->l1d_filtered && cache_init(&core->l1i, profile->l1i_sets, profile->l1i_ways) &&
	       cache_init(&core->l1d, profile->l1d_sets, profile->l1d_ways) && cache_init(&core->l2, profile->l2_sets, profile->l2_ways) &&
	       init_tlbs(core, profile) && predictor_init(&core->predictor, profile);
}

void core_free(struct core *core)
{
	free(core->l1i_filtered);
	free(core->l1d_filtered);
	cache_free(&core->l1i);
	cache_free(&core->l1d);
	cache_free(&core->l2);
	for (int i = 0; i < PAGE_SIZES; i++) {
		tlb_free(&core->dtlb[i]);
		tlb_free(&core->itlb[i]);
	}
	tlb_free(&core->stlb);
	tlb_free(&core->stlb_1g);
	tlb_free(&core->stlb_code);
	predictor_free(&core->predictor);
}

/* An event of the block that runs. */
static void mark(struct core *core, enum hot_kind kind)
{
	if (core->hot)
		hot_add(core->hot, core->previous->pc, core->thread, (uint8_t)core->mode, kind);
}

void core_sample(struct core *core)
{
	/* Not at equal distances, or a loop of that length would be sampled in one place: +- half, by a linear congruential step. */
	uint32_t random = (uint32_t)(core->sample_due * 1103515245u + 12345u) >> 8;

	core->sample_at = core->sample_due;
	if (core->retired < core->sample_due)
		return;
	core->sample_at = core->sample_due = core->retired + core->sample_every / 2 + random % (core->sample_every + 1);
	mark(core, HOT_samples);
}

/* Address spaces. */

void core_switch_address_space(struct core *core, const struct address_space *space, uint16_t number)
{
	core->space = *space;
	core->context.space = number;
	core->context.generation = core->generation[number & 255];
	core->space.tag = (uint32_t)(number & 0xfff) << 16 | (core->context.generation & 0xffff);
	core->space_tag = (uint64_t)number << SPACE_SHIFT;
}

static void outdate(struct core *core, uint16_t number)
{
	/* The walker's tags have 16 bits of the generation: what is left of the last one of that number must go. */
	if (!(++core->generation[number & 255] & 0xffff))
		walker_clear(&core->walker);
}

void core_flush_address_space(struct core *core, uint16_t number)
{
	struct tlb *all[] = ALL_TLBS(core);

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		tlb_forget_space(all[i], number);
	walker_forget_guest(&core->walker, number);
	outdate(core, number);
	clear_filters(core);
}

void core_new_address_space(struct core *core, const struct address_space *space, uint16_t number)
{
	outdate(core, number);
	/* The kernel's pages are global: most of what the filters know stays true. */
	for (int size = 0; size < PAGE_SIZES; size++) {
		forget_outdated(core->data_filter, &core->dtlb[size], number);
		forget_outdated(core->code_filter, &core->itlb[size], number);
	}
	clear_page_filters(core);
	core_switch_address_space(core, space, number);
}

void core_forget_page(struct core *core, uint64_t address)
{
	struct tlb *all[] = ALL_TLBS(core);

	forget_page(core->data_filter, core->dtlb, address, core->context);
	forget_page(core->code_filter, core->itlb, address, core->context);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		tlb_forget(all[i], address, core->context);
	/* The tables above the page may be others now. */
	walker_forget_tables(&core->walker, core->space.tag);
	clear_page_filters(core);
}

void core_flush_all(struct core *core)
{
	struct tlb *all[] = ALL_TLBS(core);

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		tlb_clear(all[i]);
	walker_clear(&core->walker);
	clear_filters(core);
}

void core_enter(struct core *core, bool guest)
{
	core->guest = guest;
	core->way = UNKNOWN_WAY;
}

void core_forget_blocks(struct core *core)
{
	core->previous = &nowhere;
	core->device_block = NULL;
}

uint64_t core_cycles(const struct core *core)
{
	uint64_t cycles = core->retired * 1000 / core->profile->core_ipc_milli;

	for (int mode = 0; mode < MODE_COUNT; mode++) {
		const struct counters *c = &core->counters[mode];
		cycles += c->stall_l2 + c->stall_llc + c->stall_memory + c->stall_frontend + c->stall_dtlb + c->stall_itlb +
			  c->stall_branch + c->stall_mode + c->repeat_cycles + c->chain_cycles;
	}
	return cycles;
}

/* Caches below L1. */

static void insert_into_l2(struct core *core, uint64_t line, enum line_state state)
{
	slot_t evicted;

	cache_insert(&core->l2, line, state, ++core->tick, &evicted);
	if (evicted)
		uncore_evicted(core->uncore, core->index, evicted);
}

/* Where it may be known already. */
static void put_into_l2(struct core *core, uint64_t line, enum line_state state)
{
	slot_t *known = cache_touch(&core->l2, line, ++core->tick);

	if (known) {
		if (slot_state(*known) < state)
			*known = slot_make(line, state);
		return;
	}
	insert_into_l2(core, line, state);
}

/* Cycles so far, without those of modes, branches and translation: by these it is known how fast lines follow each other. */
static uint64_t present(const struct core *core)
{
	return (core->retired * 1000 * CHAIN_PART / core->profile->core_ipc_milli + core->chained) / CHAIN_PART + core->waited;
}

static void wait_for_data(struct core *core, uint64_t *stall, uint64_t cycles)
{
	*stall += cycles;
	core->waited += cycles;
}

/* A line comes from memory, whoever asked for it: where so many are under way that no more can be asked for, the core waits. */
static void fill_from_memory(struct core *core)
{
	uint64_t takes = core->profile->memory_line_cycles, most = takes * FILLS_UNDER_WAY, at = present(core);
	uint64_t passed = at - core->filled_at;

	core->fill_queue = (core->fill_queue > passed ? core->fill_queue - passed : 0) + takes;
	core->filled_at = at;
	if (core->fill_queue > most)
		wait_for_data(core, &core->now->stall_memory, core->fill_queue - most);
}

static void prefetch(struct core *core, uint64_t line)
{
	enum line_state state;

	if (cache_peek(&core->l2, line))
		return;
	core->now->prefetches++;
	if (uncore_request(core->uncore, core->index, line, false, &state) >= SERVED_REMOTE_CACHE)
		fill_from_memory(core);
	insert_into_l2(core, line, state);
}

static struct stream *find_stream(struct core *core, uint64_t page)
{
	for (int i = 0; i < STREAMS; i++)
		if (core->stream[i].page == page)
			return &core->stream[i];
	return NULL;
}

static struct stream *oldest_stream(struct core *core)
{
	struct stream *oldest = &core->stream[0];

	for (int i = 1; i < STREAMS; i++)
		oldest = core->stream[i].last_used < oldest->last_used ? &core->stream[i] : oldest;
	return oldest;
}

/* The stream of a page that was not known: one that ran to the border of the page before goes on here. */
static struct stream *next_page(struct core *core, uint64_t page, int8_t at)
{
	struct stream *before = at == 0 ? find_stream(core, page - 1) : at == 63 ? find_stream(core, page + 1) : NULL;

	if (before && before->line == 63 - at && before->direction == (at ? -1 : 1)) {
		before->page = page;
		before->line = (int8_t)(at ? 64 : -1);
		before->confidence = before->confidence > 0; /* nothing of this page was asked for yet */
		return before;
	}
	before = oldest_stream(core);
	*before = (struct stream){.page = page, .line = at};
	return before;
}

/* Ascending or descending lines of one page: run ahead of them, up to the page's border. */
static void follow_stream(struct core *core, uint64_t line)
{
	uint64_t page = line >> (12 - LINE_SHIFT);
	int8_t at = (int8_t)(line & 63);
	struct stream *stream = find_stream(core, page);

	if (!stream) {
		stream = next_page(core, page, at);
	}
	int8_t step = (int8_t)(at - stream->line);
	stream->last_used = core->tick;
	stream->line = at;
	if (step != 1 && step != -1) {
		stream->confidence = 0;
		return;
	}
	stream->confidence = step == stream->direction ? (uint8_t)(stream->confidence + (stream->confidence < 3)) : 1;
	stream->direction = step;
	if (stream->confidence < 2)
		return;
	/* One that ran at its line before has asked for all but the farthest. */
	int farthest = (int)core->profile->prefetch_l2_stream;
	for (int ahead = stream->confidence > 2 ? farthest : 1; ahead <= farthest; ahead++) {
		int to = at + step * ahead;
		if (to < 0 || to > 63)
			return;
		prefetch(core, (page << (12 - LINE_SHIFT)) + (uint64_t)to);
	}
}

static void count_served(struct core *core, enum served served)
{
	struct counters *now = core->now;

	now->l2_misses++;
	mark(core, HOT_l2_misses);
	now->llc_hits_shared += served == SERVED_SHARED;
	now->llc_hits_modified += served == SERVED_MODIFIED;
	if (served >= SERVED_REMOTE_CACHE) {
		now->llc_misses++;
		mark(core, HOT_llc_misses);
		now->remote_cache += served == SERVED_REMOTE_CACHE;
		now->memory_local += served == SERVED_LOCAL;
		now->memory_remote += served == SERVED_REMOTE;
		fill_from_memory(core);
	}
}

/* A demand request that missed L1: from L2, or from beyond and then kept there. */
static enum served fetch_line(struct core *core, uint64_t line, bool own, enum line_state *state)
{
	slot_t *known = cache_touch(&core->l2, line, ++core->tick);
	enum served served = SERVED_L2;

	core->now->l2_accesses++;
	if (known) {
		*state = slot_state(*known);
		if (own && *state == LINE_SHARED)
			core->now->l1d_upgrades += uncore_upgrade(core->uncore, core->index, line);
		if (own)
			*state = LINE_MODIFIED;
	} else {
		served = uncore_request(core->uncore, core->index, line, own, state);
		count_served(core, served);
		insert_into_l2(core, line, *state);
	}
	return served;
}

/* What L2's prefetchers make of a demand request, when it is done: nothing that they bring in may push it out on its way to L1. */
static void prefetch_into_l2(struct core *core, uint64_t line, enum served served)
{
	if (served != SERVED_L2 && core->profile->prefetch_l2_adjacent)
		prefetch(core, line ^ 1);
	if (core->profile->prefetch_l2_stream)
		follow_stream(core, line);
}

/* `early` is EARLY, and where it came from, if a prefetcher asked for it. */
static slot_t *insert_into_l1d(struct core *core, uint64_t line, enum line_state state, uint32_t early)
{
	slot_t evicted, *slot = cache_insert(&core->l1d, line, state, ++core->tick, &evicted);
	size_t at = (size_t)(slot - core->l1d.slots);

	forget_slot(core->data_filter, core->l1d_filtered, &core->l1d, at);
	core->l1d_filtered[at] = (uint16_t)(core->l1d_filtered[at] % FILTER_SETS | early);
	if (evicted && slot_state(evicted) == LINE_MODIFIED)
		put_into_l2(core, slot_line(evicted), LINE_MODIFIED);
	return slot;
}

static enum served load_line(struct core *core, uint64_t line, bool own, slot_t **slot)
{
	enum line_state state = LINE_INVALID;
	enum served served = fetch_line(core, line, own, &state);

	*slot = insert_into_l1d(core, line, state, 0);
	prefetch_into_l2(core, line, served);
	return served;
}

/* Into L1D, by way of L2, whose own prefetchers take it for a request as any. */
static void prefetch_into_l1d(struct core *core, uint64_t line)
{
	enum served served = SERVED_L2;
	enum line_state state;

	if (cache_peek(&core->l1d, line))
		return;
	slot_t *known = cache_touch(&core->l2, line, ++core->tick);
	if (known) {
		state = slot_state(*known);
	} else {
		core->now->prefetches++;
		served = uncore_request(core->uncore, core->index, line, false, &state);
		if (served >= SERVED_REMOTE_CACHE)
			fill_from_memory(core);
		insert_into_l2(core, line, state);
	}
	insert_into_l1d(core, line, state, EARLY | served << EARLY_SHIFT);
	prefetch_into_l2(core, line, served);
}

static struct l1_stream *find_l1_stream(struct core *core, uint64_t line, int *step)
{
	struct l1_stream *found = NULL;

	for (int i = 0; i < L1_STREAMS; i++) {
		struct l1_stream *one = &core->l1_stream[i];
		if (line - one->line + 1 <= 2)
			found = one;
	}
	if (found)
		*step = (int)(line - found->line);
	return found;
}

/*
 * Whether a load of `address` comes over its page's border with a stream. Prefetchers by virtual address have brought that line to L2 in time
 * (Intel's next-page prefetcher; AMD's since Zen 3). Here it can be asked for no earlier: until then nothing knows where the page is.
 */
static bool stream_crosses(const struct core *core, uint64_t address)
{
	uint64_t line = address >> LINE_SHIFT | core->space_tag;
	int direction = (line & 63) == 0 ? 1 : (line & 63) == 63 ? -1 : 0;

	for (int i = 0; direction && i < L1_STREAMS; i++) {
		const struct l1_stream *one = &core->l1_stream[i];
		if (one->confidence > 1 && one->direction == direction && one->line + (uint64_t)(int64_t)direction == line)
			return true;
	}
	return false;
}

/*
 * A load came to the virtual line of `address` for the first time since it is in L1D. Where it follows the one before, those behind it
 * are asked for, as far as the translation at hand goes. A stream goes on from page to page, for what follows is known by virtual lines;
 * on a new page all of them are asked for, for of that page none was yet.
 */
static void follow_l1_stream(struct core *core, uint64_t address, uint64_t line, const struct tlb_entry *page)
{
	uint64_t virtual_line = address >> LINE_SHIFT | core->space_tag;
	int step = 0, farthest = (int)core->profile->prefetch_l1_stream;
	struct l1_stream *stream = find_l1_stream(core, virtual_line, &step);

	if (!stream) {
		stream = &core->l1_stream[core->next_l1_stream++ % L1_STREAMS];
		*stream = (struct l1_stream){.line = virtual_line};
		return;
	}
	if (!step)
		return;
	stream->confidence = step == stream->direction ? (uint8_t)(stream->confidence + (stream->confidence < 2)) : 1;
	stream->direction = (int8_t)step;
	stream->line = virtual_line;
	bool on_new_page = (virtual_line & 63) == (step > 0 ? 0 : 63);
	for (int ahead = stream->confidence > 1 && !on_new_page ? farthest : 1; ahead <= farthest; ahead++) {
		int64_t distance = (int64_t)step * ahead;
		if ((address ^ (address + (uint64_t)(distance * 64))) >> page_shift[page->size])
			return;
		prefetch_into_l1d(core, line + (uint64_t)distance);
	}
}

static enum line_state snoop(struct cache *cache, uint64_t line, bool take_away, slot_t **found)
{
	slot_t *slot = cache_peek(cache, line);

	*found = slot;
	if (!slot)
		return LINE_INVALID;
	enum line_state state = slot_state(__atomic_load_n(slot, __ATOMIC_RELAXED));
	if (take_away || state != LINE_SHARED)
		__atomic_store_n(slot, take_away ? 0 : slot_make(line, LINE_SHARED), __ATOMIC_RELAXED);
	return state;
}

enum line_state core_snooped(struct core *core, uint64_t line, bool take_away)
{
	slot_t *data, *code, *second;
	enum line_state state = snoop(&core->l1d, line, take_away, &data), below = snoop(&core->l2, line, take_away, &second);

	if (data) {
		size_t at = (size_t)(data - core->l1d.slots);
		if (take_away)
			forget_slot(core->data_filter, core->l1d_filtered, &core->l1d, at);
		else
			__atomic_store_n(
				&core->data_filter[core->l1d_filtered[at] % FILTER_SETS].store_line, FILTER_EMPTY, __ATOMIC_RELAXED);
	}
	/* A line may be left in L1I alone: it is a shared one all the same. */
	if (snoop(&core->l1i, line, take_away, &code) != LINE_INVALID) {
		if (take_away) {
			forget_slot(core->code_filter, core->l1i_filtered, &core->l1i, (size_t)(code - core->l1i.slots));
			__atomic_store_n(&core->code_line, UINT64_MAX, __ATOMIC_RELAXED);
		}
		if (below == LINE_INVALID)
			below = LINE_SHARED;
	}
	return state > below ? state : below;
}

/* Cycles. Which misses cost what: see docs/collectors/uarch_model.md. */

static uint64_t *stall_of(struct core *core, enum served served)
{
	struct counters *now = core->now;

	return served == SERVED_L2 ? &now->stall_l2 : served >= SERVED_REMOTE_CACHE ? &now->stall_memory : &now->stall_llc;
}

static void charge_load(struct core *core, enum served served, bool depends)
{
	const struct profile *p = core->profile;
	uint64_t latency = served_latency(p, served), extra = latency - p->l1d_latency, waited = 0, cycles = extra;
	bool beyond = served >= SERVED_REMOTE_CACHE, shadowed = core->retired - core->last_long < p->core_rob;

	/* What is near is partly hidden by other work; one long miss fills the reorder buffer, and others are served in its shadow. */
	if (!beyond)
		cycles = extra * p->core_exposed_l2_permille / 1000;
	else if (shadowed)
		cycles = extra * p->core_overlap_permille / 1000;
	/*
     * From the load that it waits for to this one it takes the whole latency, in which the instructions between them run, those of
     * a chain one after the other.
     */
	if (depends) {
		uint64_t flow = (core->retired - core->value_at) * 1000 * CHAIN_PART / p->core_ipc_milli;
		uint64_t between = (flow + core->chained - core->value_chained) / CHAIN_PART;
		waited = latency > between ? latency - between : 0;
	}
	if (beyond && (!shadowed || waited > cycles))
		core->last_long = core->retired;
	if (waited > cycles)
		cycles = waited;
	wait_for_data(core, stall_of(core, served), cycles);
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
		wait_for_data(core, &core->now->stall_l2, p->l2_line_cycles);
	if (served != SERVED_L2)
		wait_for_data(core, stall_of(core, served),
			extra * (served >= SERVED_REMOTE_CACHE ? p->core_overlap_permille : p->core_exposed_l2_permille) / 1000);
}

void core_loaded(struct core *core, uint64_t value)
{
	core->last_value = value;
	core->value_at = core->retired;
	core->value_chained = core->chained;
	core->value_known = true;
}

/* Translation. */

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
		cycles += served_latency(core->profile, load_line(core, line, false, &slot));
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
		mark(core, walks == &core->now->dtlb_walks ? HOT_dtlb_walks : HOT_itlb_walks);
		core->now->walk_cycles += cycles;
		*stall += cycles * exposed / 1000;
		struct tlb_entry held = fresh;
		fit((const struct tlb[PAGE_SIZES]){*second, *second, core->stlb_1g}, address, &held);
		tlb_insert(held.size == PAGE_1G ? &core->stlb_1g : second, address, &held, core->context, core->tick, &evicted);
	}
	fit(tlb, address, &fresh);
	struct tlb_entry *entry = tlb_insert(&tlb[fresh.size], address, &fresh, core->context, core->tick, &evicted);
	forget_lines(tlb == core->itlb ? core->code_filter : core->data_filter, entry, evicted.filtered);
	if (tlb == core->itlb)
		core->code_line = UINT64_MAX;
	return entry;
}

static struct tlb_entry *translate(struct core *core, struct tlb tlb[PAGE_SIZES], uint64_t address, bool depends)
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

static uint64_t physical_address(const struct tlb_entry *entry, uint64_t address)
{
	return entry->frame | (address & ((1ull << page_shift[entry->size]) - 1));
}

static uint64_t physical_line(const struct tlb_entry *entry, uint64_t address)
{
	return physical_address(entry, address) >> LINE_SHIFT;
}

/* Data. */

static struct tlb_entry *translate_data(struct core *core, uint64_t address, bool depends)
{
	struct page_filter_entry *known = &core->page_filter[(address >> 12) % PAGE_FILTER_SETS];
	uint64_t page = address >> 12 | core->space_tag;

	if (known->page != page || !tlb_holds(known->entry, address, core->context.space)) {
		struct tlb_entry *entry = translate(core, core->dtlb, address, depends);
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
	if (!slot && !store && core->profile->prefetch_l1_stream && stream_crosses(core, address)) {
		prefetch(core, line);
		prefetch_into_l1d(core, line);
		slot = cache_peek(&core->l1d, line);
	}
	uint32_t early = slot ? core->l1d_filtered[slot - core->l1d.slots] : 0;
	bool fresh = !slot || early & EARLY;
	if (!slot) {
		cache_expect(&core->l2, line);
		core->now->l1d_misses++;
		mark(core, HOT_l1d_misses);
		enum served served = load_line(core, line, store, &slot);
		/* Stores wait in the store buffer; nobody waits for them. */
		if (!store)
			charge_load(core, served, depends);
		missed = true;
	} else if (store && slot_state(*slot) != LINE_MODIFIED) {
		if (slot_state(*slot) == LINE_SHARED)
			core->now->l1d_upgrades += uncore_upgrade(core->uncore, core->index, line);
		*slot = slot_make(line, LINE_MODIFIED);
	} else if (early & EARLY && !store) {
		charge_early(core, (enum served)(early >> EARLY_SHIFT & EARLY_SERVED));
	}
	remember_slot(core->data_filter, core->l1d_filtered, &core->l1d, slot, address >> LINE_SHIFT | core->space_tag, page,
		slot_state(*slot) == LINE_MODIFIED);
	if (missed)
		core->value_known = false;
	if (fresh && !store && core->profile->prefetch_l1_stream)
		follow_l1_stream(core, address, line, page);
	return missed && !store;
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

/* Instructions. */

/* The kernel's code lies where it lies; a program's must be looked for, once for each page and address space. */
static uint64_t real_address(struct core *core, uint64_t virtual_line)
{
	uint64_t page = virtual_line >> (12 - LINE_SHIFT), tagged = page | core->space_tag;
	struct code_page *known = &core->code_page[page % CODE_PAGES];

	if (!core->real_pc || !core->previous->user)
		return virtual_line << LINE_SHIFT;
	if (known->page != tagged)
		*known = (struct code_page){.page = tagged, .real = page + (core->real_pc(core) >> 12) - (core->previous->pc >> 12)};
	return known->real << 12 | (virtual_line << LINE_SHIFT & 0xfff);
}

/*
 * A front end that follows the branch predictor ahead of the back end asks for code before it is needed (fetch-directed prefetching).
 * Where it had gone the wrong way, it begins anew: the first line of the right one is waited for.
 */
static uint32_t waited_for_code(const struct core *core, uint64_t virtual_line, uint32_t latency)
{
	const struct block *block = core->previous;
	uint32_t ahead = core->profile->core_fetch_ahead;

	if (core->steered_at + block->instructions == core->retired && virtual_line == block->pc >> LINE_SHIFT)
		return latency;
	return latency > ahead ? latency - ahead : 0;
}

/* A line that the filter does not know. */
static void fetch(struct core *core, uint64_t virtual_line)
{
	core->code_line = core->blind ? UINT64_MAX : virtual_line | core->space_tag;
	if (core->blind)
		return;
	uint64_t address = real_address(core, virtual_line);
	struct tlb_entry *page = translate(core, core->itlb, address, false);
	if (!page->memory)
		return;
	uint64_t line = physical_line(page, address);
	slot_t *slot = cache_touch(&core->l1i, line, ++core->tick);
	if (!slot) {
		enum line_state state = LINE_INVALID;
		cache_expect(&core->l2, line);
		core->now->l1i_misses++;
		mark(core, HOT_l1i_misses);
		enum served served = fetch_line(core, line, false, &state);
		slot_t evicted;
		slot = cache_insert(&core->l1i, line, LINE_SHARED, ++core->tick, &evicted);
		forget_slot(core->code_filter, core->l1i_filtered, &core->l1i, (size_t)(slot - core->l1i.slots));
		core->now->stall_frontend += waited_for_code(core, virtual_line, served_latency(core->profile, served));
		prefetch_into_l2(core, line, served);
		if (core->profile->prefetch_l1i_next && ((line + 1) & 63))
			prefetch(core, line + 1);
	}
	remember_slot(core->code_filter, core->l1i_filtered, &core->l1i, slot, virtual_line | core->space_tag, page, false);
}

void core_fetch_slow(struct core *core, uint64_t line, uint64_t last)
{
	/* The line last fetched may be known to no filter: where it was gone at once, or is no memory. */
	if ((line | core->space_tag) != core->code_line)
		fetch(core, line);
	if (line != last)
		core_fetch(core, line + 1, last);
}

/* Blocks. */

/*
 * QEMU leaves a block at an instruction in its middle that accesses a device, and goes on behind it with another block, of what is left:
 * that was counted with the first, and nothing came between.
 */
static bool goes_on(const struct core *core, const struct block *block)
{
	const struct block *from = core->previous;
	uint64_t offset = (block->pc - from->pc) & SAME_PLACE;
	bool direct = from->kind == BRANCH_CONDITIONAL || from->kind == BRANCH_JUMP || from->kind == BRANCH_CALL;

	return core->device_block == from && offset && offset < from->length && !(direct && !((block->pc ^ from->target) & SAME_PLACE));
}

static void count_special(struct core *core, const struct block *block)
{
	const struct profile *p = core->profile;

	core->now->atomics += block->atomics;
	core->now->pauses += block->pauses;
	core->now->stall_mode += (uint64_t)block->atomics * p->cost_atomic + (uint64_t)block->pauses * p->cost_pause;
	/* A guest's leave it: the host does them, as it sees fit. */
	if (!core->guest) {
		core->now->io_accesses += block->ports;
		core->now->stall_mode += (uint64_t)block->ports * p->cost_port_io;
	}
}

void core_block_slow(struct core *core, const struct block *block)
{
	const struct profile *p = core->profile;
	enum mode mode = (enum mode)(core->guest << 1 | block->user);

	if (mode != core->mode) {
		bool entered = (core->mode & 1) && !(mode & 1) && (core->mode >> 1) == (mode >> 1);
		core->mode = mode;
		core->now = &core->counters[mode];
		core->now->kernel_entries += entered;
		core->now->stall_mode += entered ? p->cost_kernel_entry : 0;
	}
	if (!goes_on(core, block))
		count_special(core, block);
	/* Once more, now that nothing of this block's kind is left to do. */
	core->way = block->way;
	core_block(core, block);
	core->way = block->user;
}

static void mispredicted(struct core *core)
{
	core->now->branch_misses++;
	mark(core, HOT_branch_misses);
	core->now->stall_branch += core->profile->core_mispredict;
	core->steered_at = core->retired;
}

void core_mispredicted(struct core *core, const struct block *block)
{
	mispredicted(core);
	core_run(core, block);
}

/* How control left the block `from` for `to`. */
static void branch(struct core *core, const struct block *from, uint64_t to)
{
	enum branch_kind kind = (enum branch_kind)from->kind;

	if (kind == BRANCH_OTHER || kind == BRANCH_REPEAT)
		return;
	/* Neither behind the block nor where it branches to: an interrupt or a fault came between. */
	if (kind == BRANCH_NONE || kind == BRANCH_CONDITIONAL ||
		((kind == BRANCH_JUMP || kind == BRANCH_CALL) && ((to ^ from->target) & SAME_PLACE))) {
		core->now->interrupts++;
		core->now->stall_mode += core->profile->cost_interrupt;
		core->steered_at = core->retired;
		return;
	}
	core->now->branches++;
	if (core->branches_modelled && !core->blind && !predictor_resolve(&core->predictor, kind, from->pc, block_next(from), to))
		mispredicted(core);
}

/* No front end takes more than one such branch in a cycle: where few instructions lie between two of them, it is what limits. */
static void transfer(struct core *core)
{
	uint64_t milli = (core->retired - core->transferred_at) * 1000, ipc_milli = core->profile->core_ipc_milli;

	core->transferred_at = core->retired;
	if (milli < ipc_milli)
		core_chain(core, CHAIN_PART - milli * CHAIN_PART / ipc_milli);
}

void core_branch_slow(struct core *core, const struct block *block)
{
	if (goes_on(core, block)) {
		core->previous = block;
		if (block->kind == BRANCH_CONDITIONAL)
			predictor_look(&core->predictor, block->pc);
		return;
	}
	if (core->previous->kind >= BRANCH_JUMP && core->previous->kind <= BRANCH_RETURN)
		transfer(core);
	branch(core, core->previous, block->pc);
	core_run(core, block);
}
