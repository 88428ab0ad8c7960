/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines on their way: from L2 and beyond into L1D and L2, asked for by the program or by prefetchers, and taken away by other cores. */
#include "core_parts.h"

#define FILLS_UNDER_WAY 16 /* lines that one core can have asked memory for: as in Intel's superqueue (Optimization Reference Manual) */

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
	return (core->flow + core->chained) / CHAIN_PART + core->waited;
}

void core_wait(struct core *core, uint64_t *stall, uint64_t cycles)
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
		core_wait(core, &core->now->stall_memory, core->fill_queue - most);
}

void lines_prefetch(struct core *core, uint64_t line)
{
	enum line_state state;

	if (cache_peek(&core->l2, line))
		return;
	core->now->prefetches++;
	uint8_t *held = uncore_hold(core->uncore, line);
	enum served served = uncore_request(core->uncore, core->index, line, false, &state);
	insert_into_l2(core, line, state);
	uncore_let_go(held);
	if (served >= SERVED_REMOTE_CACHE)
		fill_from_memory(core);
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
		lines_prefetch(core, (page << (12 - LINE_SHIFT)) + (uint64_t)to);
	}
}

static void count_served(struct core *core, enum served served)
{
	struct counters *now = core->now;

	now->l2_misses++;
	core_mark(core, HOT_l2_misses);
	now->llc_hits_shared += served == SERVED_SHARED;
	now->llc_hits_modified += served == SERVED_MODIFIED;
	if (served >= SERVED_REMOTE_CACHE) {
		now->llc_misses++;
		core_mark(core, HOT_llc_misses);
		now->remote_cache += served == SERVED_REMOTE_CACHE;
		now->memory_local += served == SERVED_LOCAL;
		now->memory_remote += served == SERVED_REMOTE;
		fill_from_memory(core);
	}
}

/* A demand request that missed L1: from L2, or from beyond and then kept there. With the line held. */
enum served lines_fetch(struct core *core, uint64_t line, bool own, enum line_state *state)
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
void lines_prefetch_l2(struct core *core, uint64_t line, enum served served)
{
	if (served != SERVED_L2 && core->profile->prefetch_l2_adjacent)
		lines_prefetch(core, line ^ 1);
	if (core->profile->prefetch_l2_stream)
		follow_stream(core, line);
}

/* `early` is EARLY, and where it came from, if a prefetcher asked for it. */
static slot_t *insert_into_l1d(struct core *core, uint64_t line, enum line_state state, uint32_t early)
{
	slot_t evicted, *slot = cache_insert(&core->l1d, line, state, ++core->tick, &evicted);
	size_t at = (size_t)(slot - core->l1d.slots);

	filter_forget_slot(core->data_filter, core->l1d_filtered, &core->l1d, at);
	core->l1d_filtered[at] = (uint16_t)(core->l1d_filtered[at] % FILTER_SETS | early);
	core->l1d_there[at] = NOT_ASKED;
	if (evicted && slot_state(evicted) == LINE_MODIFIED)
		put_into_l2(core, slot_line(evicted), LINE_MODIFIED);
	return slot;
}

enum served lines_load(struct core *core, uint64_t line, bool own, slot_t **slot)
{
	enum line_state state = LINE_INVALID;
	uint8_t *held = uncore_hold(core->uncore, line);
	enum served served = lines_fetch(core, line, own, &state);

	*slot = insert_into_l1d(core, line, state, 0);
	uncore_let_go(held);
	lines_prefetch_l2(core, line, served);
	return served;
}

/* A store to a line that is in L1D, but not the core's own yet. One that another core took meanwhile is left: the next access misses it. */
void lines_own(struct core *core, uint64_t line, slot_t *slot)
{
	uint8_t *held = uncore_hold(core->uncore, line);
	slot_t now = __atomic_load_n(slot, __ATOMIC_RELAXED);

	if (now && slot_line(now) == line) {
		if (slot_state(now) == LINE_SHARED)
			core->now->l1d_upgrades += uncore_upgrade(core->uncore, core->index, line);
		__atomic_store_n(slot, slot_make(line, LINE_MODIFIED), __ATOMIC_RELAXED);
	}
	uncore_let_go(held);
}

/* Into L1D, by way of L2, whose own prefetchers take it for a request as any. Returns where it came from. */
static enum served bring_early(struct core *core, uint64_t line, bool own, slot_t **slot)
{
	enum served served = SERVED_L2;
	enum line_state state;
	uint8_t *held = uncore_hold(core->uncore, line);
	slot_t *known = cache_touch(&core->l2, line, ++core->tick);

	if (known) {
		state = slot_state(*known);
		if (own && state == LINE_SHARED)
			core->now->l1d_upgrades += uncore_upgrade(core->uncore, core->index, line);
		if (own)
			state = LINE_MODIFIED;
	} else {
		core->now->prefetches++;
		served = uncore_request(core->uncore, core->index, line, own, &state);
		insert_into_l2(core, line, state);
	}
	*slot = insert_into_l1d(core, line, state, EARLY | served << EARLY_SHIFT);
	uncore_let_go(held);
	if (served >= SERVED_REMOTE_CACHE)
		fill_from_memory(core);
	lines_prefetch_l2(core, line, served);
	return served;
}

void lines_prefetch_l1d(struct core *core, uint64_t line)
{
	slot_t *slot;

	if (!cache_peek(&core->l1d, line))
		bring_early(core, line, false, &slot);
}

/* Of L1D's fill buffers the one that is free first. */
static uint64_t *fill_buffer(struct core *core)
{
	uint64_t *first = core->fill_buffer;

	for (uint32_t i = 1; i < core->profile->l1d_fill_buffers; i++)
		first = core->fill_buffer[i] < *first ? &core->fill_buffer[i] : first;
	return first;
}

/* Where all of them are taken, the line's request waits for the first one; meanwhile the reorder buffer fills, and then the core waits. */
void lines_ask(struct core *core, uint64_t line, bool own)
{
	const struct profile *p = core->profile;
	uint64_t *buffer = fill_buffer(core), now = core_cycles(core), waits = *buffer > now ? *buffer - now : 0;
	slot_t *slot;
	enum served served = bring_early(core, line, own, &slot);

	*buffer = core->l1d_there[slot - core->l1d.slots] = now + waits + served_latency(p, served) - p->l1d_latency;
	if (waits > p->core_rob / p->core_width)
		core_wait(core, stall_of(core, served), waits - p->core_rob / p->core_width);
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
bool lines_cross_page(const struct core *core, uint64_t address)
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
void lines_follow(struct core *core, uint64_t address, uint64_t line, const struct tlb_entry *page)
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
		lines_prefetch_l1d(core, line + (uint64_t)distance);
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
		/* See filter_remember_slot: what it reads last was written here first. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (take_away) {
			if ((stamp_t)((stamp_t)core->tick - core->l1d.stamps[at]) < core->spin_ticks)
				__atomic_store_n(&core->awaited, line, __ATOMIC_RELAXED);
			filter_forget_slot(core->data_filter, core->l1d_filtered, &core->l1d, at);
		} else {
			__atomic_store_n(
				&core->data_filter[core->l1d_filtered[at] % FILTER_SETS].store_line, FILTER_EMPTY, __ATOMIC_RELAXED);
		}
	}
	/* A line may be left in L1I alone: it is a shared one all the same. */
	if (snoop(&core->l1i, line, take_away, &code) != LINE_INVALID) {
		if (take_away) {
			filter_forget_slot(core->code_filter, core->l1i_filtered, &core->l1i, (size_t)(code - core->l1i.slots));
			__atomic_store_n(&core->code_line, UINT64_MAX, __ATOMIC_RELAXED);
		}
		if (below == LINE_INVALID)
			below = LINE_SHARED;
	}
	return state > below ? state : below;
}
