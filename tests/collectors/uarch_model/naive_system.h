/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reference for core.c and uncore.c: cores without any filter. Each access looks through lists: of translations, of lines,
 * each entry with the time of its last use. Slow, and as plain as the description of the model.
 */
#ifndef VSPROF_TEST_NAIVE_SYSTEM_H
#define VSPROF_TEST_NAIVE_SYSTEM_H

#include "core.h"
#include "naive_predictor.h"
#include "tables.h"

#define NAIVE_CORES 3
#define NAIVE_SPACES 8
#define NAIVE_LINES 2048
#define NAIVE_PAGES 256

struct naive_line {
	uint64_t line, used;
	enum line_state state;
	bool early; /* a prefetcher brought it, or an instruction asked for it, and nobody used it yet */
	bool asked; /* it was an instruction; when it is there */
	uint64_t there;
	enum served from;
};

struct naive_lines {
	uint32_t sets, ways, count;
	struct naive_line held[NAIVE_LINES];
};

struct naive_page {
	uint64_t number, frame, used;
	enum page_size size;
	uint32_t space, generation;
	bool global, memory, device;
};

struct naive_tlb {
	uint32_t sets, ways, count;
	struct naive_page held[NAIVE_PAGES];
};

struct naive_stream {
	uint64_t page, used;
	int line, direction, confidence;
};

/* A line of no address space, as a virtual one. */
struct naive_l1_stream {
	uint64_t line;
	uint32_t space;
	int direction, confidence;
};

struct naive_system;

struct naive_core {
	struct naive_system *system;
	uint32_t index, node;
	struct naive_lines l1i, l1d, l2;
	struct naive_tlb dtlb[PAGE_SIZES], itlb[PAGE_SIZES], stlb, stlb_1g, stlb_code;
	struct naive_caches walker;
	struct naive_predictor predictor;
	struct naive_stream stream[16];
	struct naive_l1_stream l1_stream[8];
	uint64_t fill_buffer[64];
	bool asking; /* it is a prefetch instruction's address that is translated */
	uint32_t l1_streams;
	uint64_t waited, filled_at, fill_queue;
	bool steered; /* the way to the block that runs was not the expected one */
	const struct tables *tables;
	uint32_t space, generation[NAIVE_SPACES];
	bool repeats;      /* a repeated string instruction runs */
	bool guest, moves; /* `moves`: programs' code lies elsewhere than its blocks say, see naive_slide */
	enum mode mode;
	const struct block *previous, *device_block;
	uint64_t transferred_at, retired, flow, last_long, last_value, value_at, value_chained, chained,
		walks_failed;       /* chained: in 64ths of a cycle */
	uint64_t last_near, pieces, /* taken conditional branches and lines within blocks since the last transfer */
		front;              /* the front end's lead then, in 64ths of a cycle */
	uint64_t room, close_cycles, close_at,
		close_room; /* room: the blocks' spare; the others: the last miss that something near served */
	uint64_t *close_stall;
	bool long_seen, near_seen, value_known;
	struct counters counters[MODE_COUNT];
};

struct naive_system {
	struct profile profile;
	uint64_t time, ram_bytes;
	uint32_t core_count;
	uint64_t second_node; /* first line of its memory; 0: there is one node */
	struct naive_lines llc[2];
	struct naive_core core[NAIVE_CORES];
};

static inline struct counters *naive_now(struct naive_core *core)
{
	return &core->counters[core->mode];
}

/* Lists of lines. */

static inline void naive_lines_init(struct naive_lines *lines, uint32_t sets, uint32_t ways)
{
	CHECK(sets * ways <= NAIVE_LINES);
	lines->sets = sets;
	lines->ways = ways;
	lines->count = 0;
}

static inline struct naive_line *naive_line(struct naive_lines *lines, uint64_t line)
{
	for (uint32_t i = 0; i < lines->count; i++)
		if (lines->held[i].line == line)
			return &lines->held[i];
	return NULL;
}

static inline struct naive_line *naive_use(struct naive_system *system, struct naive_lines *lines, uint64_t line)
{
	struct naive_line *found = naive_line(lines, line);

	if (found)
		found->used = ++system->time;
	return found;
}

static inline void naive_drop(struct naive_lines *lines, uint64_t line)
{
	struct naive_line *found = naive_line(lines, line);

	if (found)
		*found = lines->held[--lines->count];
}

/* Put a line in; what had to go has state LINE_INVALID if nothing had to. */
static inline struct naive_line naive_put(struct naive_system *system, struct naive_lines *lines, uint64_t line, enum line_state state)
{
	struct naive_line *oldest = NULL, gone = {.state = LINE_INVALID};
	uint32_t in_set = 0;

	for (uint32_t i = 0; i < lines->count; i++) {
		if (lines->held[i].line % lines->sets != line % lines->sets)
			continue;
		in_set++;
		if (!oldest || lines->held[i].used < oldest->used)
			oldest = &lines->held[i];
	}
	if (in_set < lines->ways)
		oldest = &lines->held[lines->count++];
	else
		gone = *oldest;
	*oldest = (struct naive_line){.line = line, .state = state, .used = ++system->time};
	return gone;
}

/* Between cores. */

static inline enum line_state naive_ask(struct naive_core *core, uint64_t line, bool take_away)
{
	struct naive_lines *lists[] = {&core->l1d, &core->l2, &core->l1i};
	enum line_state strongest = LINE_INVALID;

	for (int i = 0; i < 3; i++) {
		struct naive_line *found = naive_line(lists[i], line);
		if (!found)
			continue;
		if (found->state > strongest)
			strongest = found->state;
		if (take_away)
			naive_drop(lists[i], line);
		else
			found->state = LINE_SHARED;
	}
	return strongest;
}

/* The other cores of the core's own node, or those of other nodes. */
static inline enum line_state naive_ask_others(struct naive_core *core, uint64_t line, bool take_away, bool near)
{
	enum line_state strongest = LINE_INVALID;

	for (uint32_t i = 0; i < core->system->core_count; i++) {
		if (i == core->index || !core->system->profile.model_coherence || (core->system->core[i].node == core->node) != near)
			continue;
		enum line_state state = naive_ask(&core->system->core[i], line, take_away);
		if (state > strongest)
			strongest = state;
	}
	return strongest;
}

static inline enum line_state naive_ask_other_nodes(struct naive_core *core, uint64_t line, bool take_away)
{
	struct naive_lines *llc = &core->system->llc[!core->node];
	enum line_state strongest = naive_ask_others(core, line, take_away, false);

	if (!core->system->profile.model_coherence || !naive_line(llc, line))
		return strongest;
	if (take_away)
		naive_drop(llc, line);
	return strongest ? strongest : LINE_SHARED;
}

static inline void naive_keep_in_llc(struct naive_system *system, uint32_t node, uint64_t line)
{
	if (naive_use(system, &system->llc[node], line))
		return;
	struct naive_line gone = naive_put(system, &system->llc[node], line, LINE_SHARED);
	if (gone.state == LINE_INVALID || system->profile.llc_policy != LLC_INCLUSIVE)
		return;
	for (uint32_t i = 0; i < system->core_count; i++)
		if (system->core[i].node == node)
			naive_ask(&system->core[i], gone.line, true);
}

static inline enum served naive_request(struct naive_core *core, uint64_t line, bool own, enum line_state *state)
{
	struct naive_system *system = core->system;
	enum line_state others = naive_ask_others(core, line, own, true), far = naive_ask_other_nodes(core, line, own);
	bool in_llc = naive_use(system, &system->llc[core->node], line) != NULL;
	uint32_t home = system->second_node && line >= system->second_node;

	if (system->profile.llc_policy == LLC_VICTIM)
		naive_drop(&system->llc[core->node], line);
	else
		naive_keep_in_llc(system, core->node, line);
	*state = own ? LINE_MODIFIED : others || far ? LINE_SHARED : LINE_EXCLUSIVE;
	switch (others) {
	case LINE_MODIFIED:
		return SERVED_MODIFIED;
	case LINE_EXCLUSIVE:
		return SERVED_SHARED;
	case LINE_SHARED:
		return in_llc ? SERVED_LLC : SERVED_SHARED;
	default:
		return in_llc ? SERVED_LLC : far ? SERVED_REMOTE_CACHE : home == core->node ? SERVED_LOCAL : SERVED_REMOTE;
	}
}

static inline bool naive_upgrade(struct naive_core *core, uint64_t line)
{
	bool here = naive_ask_others(core, line, true, true), far = naive_ask_other_nodes(core, line, true);

	return here || far;
}

static inline uint64_t naive_latency(const struct profile *p, enum served served)
{
	const uint32_t latency[] = {
		[SERVED_L2] = p->l2_latency,
		[SERVED_LLC] = p->llc_latency,
		[SERVED_SHARED] = p->llc_latency_shared,
		[SERVED_MODIFIED] = p->llc_latency_modified,
		[SERVED_REMOTE_CACHE] = p->memory_latency_remote_cache,
		[SERVED_LOCAL] = p->memory_latency_local,
		[SERVED_REMOTE] = p->memory_latency_remote,
	};

	return latency[served];
}

/* Below L1. */

static inline void naive_put_l2(struct naive_core *core, uint64_t line, enum line_state state)
{
	struct naive_system *system = core->system;
	struct naive_line *found = naive_use(system, &core->l2, line);

	if (found) {
		found->state = found->state > state ? found->state : state;
		return;
	}
	struct naive_line gone = naive_put(system, &core->l2, line, state);
	if (gone.state == LINE_MODIFIED || (gone.state != LINE_INVALID && system->profile.llc_policy == LLC_VICTIM))
		naive_keep_in_llc(system, core->node, gone.line);
}

static inline void naive_wait(struct naive_core *core, uint64_t *stall, uint64_t cycles)
{
	*stall += cycles;
	core->waited += cycles;
}

static inline bool naive_beyond(enum served served)
{
	return served == SERVED_LOCAL || served == SERVED_REMOTE || served == SERVED_REMOTE_CACHE;
}

static inline uint64_t naive_present(const struct naive_core *core)
{
	return (core->flow + core->chained) / 64 + core->waited;
}

/* All of them, in all modes. */
static inline uint64_t naive_cycles(const struct naive_core *core)
{
	uint64_t sum = core->flow / 64;

	for (int mode = 0; mode < MODE_COUNT; mode++) {
		const struct counters *c = &core->counters[mode];
		sum += c->stall_l2 + c->stall_llc + c->stall_memory + c->stall_frontend + c->stall_dtlb + c->stall_itlb + c->stall_branch;
		sum += c->stall_mode + c->repeat_cycles + c->chain_cycles;
	}
	return sum;
}

static inline uint64_t *naive_stall(struct naive_core *core, enum served served)
{
	struct counters *now = naive_now(core);

	return naive_beyond(served) ? &now->stall_memory : served == SERVED_L2 ? &now->stall_l2 : &now->stall_llc;
}

/* Lines come out of memory one after the other; 16 may wait for that. */
static inline void naive_fill(struct naive_core *core, enum served served)
{
	const struct profile *p = &core->system->profile;
	uint64_t now = naive_present(core);

	if (!naive_beyond(served))
		return;
	for (; core->filled_at < now && core->fill_queue; core->filled_at++)
		core->fill_queue--;
	core->filled_at = now;
	core->fill_queue += p->memory_line_cycles;
	if (core->fill_queue > 16ull * p->memory_line_cycles)
		naive_wait(core, &naive_now(core)->stall_memory, core->fill_queue - 16ull * p->memory_line_cycles);
}

static inline void naive_prefetch(struct naive_core *core, uint64_t line)
{
	enum line_state state;

	if (naive_line(&core->l2, line))
		return;
	naive_now(core)->prefetches++;
	naive_fill(core, naive_request(core, line, false, &state));
	naive_put_l2(core, line, state);
}

static inline void naive_follow_stream(struct naive_core *core, uint64_t line)
{
	struct naive_stream *stream = NULL;
	int at = (int)(line % 64);

	for (int i = 0; i < 16 && !stream; i++)
		if (core->stream[i].page == line / 64)
			stream = &core->stream[i];
	/* One that went up to the page's begin, or down to its end. */
	for (int i = 0; i < 16 && !stream; i++) {
		struct naive_stream *one = &core->stream[i];
		if (at == 0 && one->page + 1 == line / 64 && one->line == 63 && one->direction == 1) {
			stream = one;
			*one = (struct naive_stream){.page = line / 64, .line = -1, .direction = 1, .confidence = one->confidence > 0};
		} else if (at == 63 && one->page == line / 64 + 1 && one->line == 0 && one->direction == -1) {
			stream = one;
			*one = (struct naive_stream){.page = line / 64, .line = 64, .direction = -1, .confidence = one->confidence > 0};
		}
	}
	if (!stream) {
		stream = &core->stream[0];
		for (int i = 1; i < 16; i++)
			if (core->stream[i].used < stream->used)
				stream = &core->stream[i];
		*stream = (struct naive_stream){.page = line / 64, .line = at};
	}
	int step = at - stream->line;
	stream->used = ++core->system->time;
	stream->line = at;
	if (step != 1 && step != -1) {
		stream->confidence = 0;
		return;
	}
	stream->confidence = step == stream->direction ? stream->confidence + 1 : 1;
	stream->direction = step;
	int most = (int)core->system->profile.prefetch_l2_stream;
	for (int ahead = stream->confidence > 2 ? most : 1; stream->confidence >= 2 && ahead <= most; ahead++)
		if (at + ahead * step >= 0 && at + ahead * step <= 63)
			naive_prefetch(core, line + (uint64_t)(int64_t)(ahead * step));
}

static inline enum served naive_fetch_line(struct naive_core *core, uint64_t line, bool own, enum line_state *state)
{
	struct counters *now = naive_now(core);
	struct naive_line *found = naive_use(core->system, &core->l2, line);
	enum served served = SERVED_L2;

	now->l2_accesses++;
	if (found) {
		*state = found->state;
		if (own && *state == LINE_SHARED)
			now->l1d_upgrades += naive_upgrade(core, line);
		if (own)
			*state = LINE_MODIFIED;
	} else {
		served = naive_request(core, line, own, state);
		now->l2_misses++;
		now->llc_hits_shared += served == SERVED_SHARED;
		now->llc_hits_modified += served == SERVED_MODIFIED;
		now->llc_misses += served == SERVED_LOCAL || served == SERVED_REMOTE || served == SERVED_REMOTE_CACHE;
		now->memory_local += served == SERVED_LOCAL;
		now->memory_remote += served == SERVED_REMOTE;
		now->remote_cache += served == SERVED_REMOTE_CACHE;
		naive_fill(core, served);
		naive_put_l2(core, line, *state);
	}
	return served;
}

static inline void naive_prefetch_l2(struct naive_core *core, uint64_t line, enum served served)
{
	if (served != SERVED_L2 && core->system->profile.prefetch_l2_adjacent)
		naive_prefetch(core, line % 2 ? line - 1 : line + 1);
	if (core->system->profile.prefetch_l2_stream)
		naive_follow_stream(core, line);
}

static inline enum served naive_load_line(struct naive_core *core, uint64_t line, bool own)
{
	enum line_state state;
	enum served served = naive_fetch_line(core, line, own, &state);
	struct naive_line gone = naive_put(core->system, &core->l1d, line, state);

	if (gone.state == LINE_MODIFIED)
		naive_put_l2(core, gone.line, LINE_MODIFIED);
	naive_prefetch_l2(core, line, served);
	return served;
}

static inline void naive_prefetch_l1(struct naive_core *core, uint64_t line)
{
	struct naive_line *found;
	enum line_state state;
	enum served served = SERVED_L2;

	if (naive_line(&core->l1d, line))
		return;
	found = naive_use(core->system, &core->l2, line);
	if (found) {
		state = found->state;
	} else {
		naive_now(core)->prefetches++;
		served = naive_request(core, line, false, &state);
		naive_fill(core, served);
		naive_put_l2(core, line, state);
	}
	struct naive_line gone = naive_put(core->system, &core->l1d, line, state);
	found = naive_line(&core->l1d, line);
	found->early = true;
	found->asked = false;
	found->from = served;
	if (gone.state == LINE_MODIFIED)
		naive_put_l2(core, gone.line, LINE_MODIFIED);
	naive_prefetch_l2(core, line, served);
}

/* Whether a stream of loads comes over the border of a page of 4 KiB here. */
static inline bool naive_crosses(const struct naive_core *core, uint64_t address)
{
	for (int i = 0; i < 8; i++) {
		const struct naive_l1_stream *one = &core->l1_stream[i];
		if (one->space != core->space || one->confidence < 2 || (one->direction != 1 && one->direction != -1))
			continue;
		uint64_t next = one->line + (uint64_t)(int64_t)one->direction;
		if (next == address / 64 && next / 64 != one->line / 64)
			return true;
	}
	return false;
}

static inline void naive_follow_l1(struct naive_core *core, uint64_t address, uint64_t line, uint64_t page_bytes)
{
	struct naive_l1_stream *stream = NULL;
	uint64_t here = address / 64;

	for (int i = 0; i < 8; i++) {
		struct naive_l1_stream *one = &core->l1_stream[i];
		if (one->space == core->space && (one->line == here || one->line == here - 1 || one->line == here + 1))
			stream = one;
	}
	if (!stream) {
		core->l1_stream[core->l1_streams++ % 8] = (struct naive_l1_stream){.line = here, .space = core->space};
		return;
	}
	if (stream->line == here)
		return;
	int step = stream->line < here ? 1 : -1, farthest = (int)core->system->profile.prefetch_l1_stream;
	stream->confidence = step == stream->direction ? stream->confidence + 1 : 1;
	stream->direction = step;
	stream->line = here;
	bool within = (here - (uint64_t)(int64_t)step) / 64 == here / 64;
	for (int ahead = stream->confidence > 1 && within ? farthest : 1; ahead <= farthest; ahead++) {
		uint64_t to = address + (uint64_t)(int64_t)(step * ahead * 64);
		if (to / page_bytes != address / page_bytes)
			return;
		naive_prefetch_l1(core, line + (uint64_t)(int64_t)(step * ahead));
	}
}

/* Translation. */

static inline uint64_t naive_bytes(enum page_size size)
{
	return size == PAGE_4K ? KIB4 : size == PAGE_2M ? MIB2 : GIB1;
}

static inline void naive_tlb_init(struct naive_tlb *tlb, uint32_t entries, uint32_t ways)
{
	CHECK(entries <= NAIVE_PAGES);
	tlb->sets = entries ? entries / ways : 0;
	tlb->ways = ways;
	tlb->count = 0;
}

static inline struct naive_page *naive_page(struct naive_core *core, struct naive_tlb *tlb, uint64_t address, enum page_size size)
{
	for (uint32_t i = 0; i < tlb->count; i++) {
		struct naive_page *page = &tlb->held[i];
		if (page->size == size && page->number == address / naive_bytes(size) && page->space == core->space &&
			(page->global || page->generation == core->generation[core->space]))
			return page;
	}
	return NULL;
}

/* As a page of the next smaller size, as often as there is no TLB for its size. */
static inline struct naive_page naive_split(struct naive_page page, uint64_t address, bool has_1g)
{
	if (page.size == PAGE_1G && !has_1g) {
		page.size = PAGE_2M;
		page.frame += address % GIB1 / MIB2 * MIB2;
	}
	return page;
}

static inline struct naive_page *naive_put_page(struct naive_core *core, struct naive_tlb *tlb, uint64_t address, struct naive_page page)
{
	uint32_t in_set = 0, at = tlb->count;

	page.number = address / naive_bytes(page.size);
	page.used = core->system->time;
	for (uint32_t i = 0; i < tlb->count; i++) {
		if (tlb->held[i].number % tlb->sets != page.number % tlb->sets)
			continue;
		if (in_set++ == 0 || tlb->held[i].used < tlb->held[at].used)
			at = i;
	}
	if (in_set < tlb->ways)
		at = tlb->count++;
	tlb->held[at] = page;
	return &tlb->held[at];
}

static inline struct naive_page naive_walk_page(struct naive_core *core, uint64_t address, uint64_t *cycles)
{
	const struct profile *p = &core->system->profile;
	struct naive_page page = {
		.frame = address % (64 * GIB1) / KIB4 * KIB4,
		.size = PAGE_4K,
		.space = core->space,
		.generation = core->generation[core->space],
		.memory = true,
	};

	*cycles = p->walk_fixed;
	if (!p->model_page_walks)
		return page;
	struct naive_walk walk = naive_walk(core->tables, &core->walker, core->space, core->generation[core->space], address);
	if (walk.mapped) {
		page.frame = walk.frame;
		page.size = walk.size;
		page.global = walk.global;
		page.memory = walk.frame < core->system->ram_bytes;
		page.device = !page.memory;
	} else {
		page.memory = false;
		core->walks_failed++;
	}
	naive_now(core)->walk_references += walk.references;
	for (uint32_t i = 0; i < walk.references; i++) {
		uint64_t line = walk.reference[i] / 64;
		*cycles +=
			naive_use(core->system, &core->l1d, line) ? p->l1d_latency : naive_latency(p, naive_load_line(core, line, false));
	}
	return page;
}

static inline struct naive_page *naive_translate(struct naive_core *core, uint64_t address, bool code, bool depends)
{
	const struct profile *p = &core->system->profile;
	struct naive_tlb *first = code ? core->itlb : core->dtlb, *second = code && core->stlb_code.sets ? &core->stlb_code : &core->stlb;
	struct counters *now = naive_now(core);
	struct naive_page *found = NULL, page;
	uint64_t cycles;

	core->system->time++;
	for (enum page_size size = PAGE_4K; size < PAGE_SIZES && !found; size++)
		found = naive_page(core, &first[size], address, size);
	if (found) {
		found->used = core->system->time;
		return found;
	}
	++*(code ? &now->itlb_misses : &now->dtlb_misses);
	found = naive_page(core, second, address, PAGE_4K);
	if (!found)
		found = naive_page(core, second, address, PAGE_2M);
	if (!found)
		found = naive_page(core, &core->stlb_1g, address, PAGE_1G);
	if (found) {
		found->used = core->system->time;
		page = *found;
		cycles = p->stlb_latency;
	} else {
		static struct naive_page none;
		page = naive_walk_page(core, address, &cycles);
		++*(code ? &now->itlb_walks : &now->dtlb_walks);
		now->walk_cycles += cycles;
		if (core->asking && !page.memory && !page.device) {
			*(code ? &now->stall_itlb : &now->stall_dtlb) += depends ? cycles : cycles * p->walk_exposed_permille / 1000;
			return &none;
		}
		struct naive_page held = naive_split(page, address, core->stlb_1g.sets);
		naive_put_page(core, held.size == PAGE_1G ? &core->stlb_1g : second, address, held);
	}
	*(code ? &now->stall_itlb : &now->stall_dtlb) += depends ? cycles : cycles * p->walk_exposed_permille / 1000;
	page = naive_split(page, address, first[PAGE_1G].sets);
	return naive_put_page(core, &first[page.size], address, page);
}

static inline uint64_t naive_physical_line(const struct naive_page *page, uint64_t address)
{
	return (page->frame + address % naive_bytes(page->size)) / 64;
}

/* What drives it: the same calls as core.h has. */

/* The last miss that something near served is paid for, but for the part of what ran behind it in which the core had room. */
static inline void naive_settle(struct naive_core *core)
{
	uint64_t ran = core->retired - core->close_at, room = core->room - core->close_room, most = core->system->profile.core_rob;

	if (ran > most)
		room = room * most / ran;
	for (; core->close_cycles && room >= 16; room -= 16)
		core->close_cycles--;
	if (core->close_cycles)
		naive_wait(core, core->close_stall, core->close_cycles);
	core->close_cycles = 0;
}

static inline void naive_charge(struct naive_core *core, enum served served, bool depends)
{
	const struct profile *p = &core->system->profile;
	uint64_t latency = naive_latency(p, served), cycles = latency - p->l1d_latency, wait = 0;
	bool long_miss = served == SERVED_LOCAL || served == SERVED_REMOTE || served == SERVED_REMOTE_CACHE;
	bool shadow = long_miss && core->long_seen && core->retired - core->last_long < p->core_rob;

	if (!long_miss)
		cycles = cycles * p->core_exposed_l2_permille / 1000;
	if (!long_miss && served != SERVED_L2) {
		if (core->near_seen && core->retired < core->last_near + p->core_rob / 3)
			cycles = cycles * p->core_overlap_permille / 1000;
		else
			core->last_near = core->retired;
		core->near_seen = true;
	}
	naive_settle(core);
	if (shadow)
		cycles = cycles * p->core_overlap_permille / 1000;
	if (depends) {
		uint64_t parts = core->flow - core->value_at + core->chained - core->value_chained;
		wait = latency;
		for (; wait && parts >= 64; parts -= 64)
			wait--;
	}
	if (long_miss && (!shadow || wait > cycles)) {
		core->last_long = core->retired;
		core->long_seen = true;
	}
	struct counters *now = naive_now(core);
	uint64_t *stall = long_miss ? &now->stall_memory : served == SERVED_L2 ? &now->stall_l2 : &now->stall_llc;
	if (wait > cycles || long_miss) {
		naive_wait(core, stall, wait > cycles ? wait : cycles);
		return;
	}
	core->close_stall = stall;
	core->close_cycles = cycles;
	core->close_at = core->retired;
	core->close_room = core->room;
}

static inline void naive_charge_early(struct naive_core *core, enum served served)
{
	const struct profile *p = &core->system->profile;
	uint64_t extra = naive_latency(p, served) - p->l1d_latency;
	struct counters *now = naive_now(core);

	if (!core->repeats)
		naive_wait(core, &now->stall_l2, p->l2_line_cycles);
	if (naive_beyond(served))
		naive_wait(core, &now->stall_memory, extra * p->core_overlap_permille / 1000);
	else if (served != SERVED_L2)
		naive_wait(core, &now->stall_llc, extra * p->core_exposed_l2_permille / 1000);
}

/* A prefetch instruction. */
static inline void naive_prefetch_instruction(struct naive_core *core, uint64_t address, bool own, bool far)
{
	core->asking = true;
	struct naive_page *page = naive_translate(core, address, false, false);
	core->asking = false;
	enum line_state state;
	enum served served = SERVED_L2;

	if (page->device || !page->memory)
		return;
	uint64_t line = naive_physical_line(page, address);
	struct naive_line *found = naive_use(core->system, &core->l1d, line);
	if (found) {
		if (own && found->state == LINE_SHARED && naive_upgrade(core, line))
			naive_now(core)->l1d_upgrades++;
		if (own)
			found->state = LINE_MODIFIED;
		return;
	}
	if (far) {
		naive_prefetch(core, line);
		return;
	}
	uint64_t asked_at = naive_cycles(core);
	found = naive_use(core->system, &core->l2, line);
	if (found) {
		state = found->state;
		if (own && state == LINE_SHARED)
			naive_now(core)->l1d_upgrades += naive_upgrade(core, line);
		state = own ? LINE_MODIFIED : state;
	} else {
		naive_now(core)->prefetches++;
		served = naive_request(core, line, own, &state);
		naive_fill(core, served);
		naive_put_l2(core, line, state);
	}
	struct naive_line gone = naive_put(core->system, &core->l1d, line, state);
	found = naive_line(&core->l1d, line);
	/* The buffer that is free first. */
	uint64_t *buffer = &core->fill_buffer[0];
	for (uint32_t i = 1; i < core->system->profile.l1d_fill_buffers; i++)
		if (core->fill_buffer[i] < *buffer)
			buffer = &core->fill_buffer[i];
	uint64_t fills_rob = core->system->profile.core_rob / core->system->profile.core_width;
	uint64_t begins = *buffer > asked_at ? *buffer : asked_at;
	*buffer = begins + naive_latency(&core->system->profile, served) - core->system->profile.l1d_latency;
	found->early = found->asked = true;
	found->there = *buffer;
	found->from = served;
	if (gone.state == LINE_MODIFIED)
		naive_put_l2(core, gone.line, LINE_MODIFIED);
	naive_prefetch_l2(core, line, served);
	if (begins > asked_at + fills_rob)
		naive_wait(core, naive_stall(core, served), begins - asked_at - fills_rob);
}

/* What of the way of a line that was asked for is left when it is loaded. */
static inline void naive_charge_asked(struct naive_core *core, enum served served, uint64_t there)
{
	const struct profile *p = &core->system->profile;

	naive_settle(core);
	uint64_t left = there > naive_cycles(core) ? there - naive_cycles(core) : 0, cycles = left;
	if (!left)
		return;
	if (naive_beyond(served)) {
		core->last_long = core->retired;
		core->long_seen = true;
		naive_wait(core, &naive_now(core)->stall_memory, left);
		return;
	}
	cycles = left * p->core_exposed_l2_permille / 1000;
	if (served != SERVED_L2) {
		if (core->near_seen && core->retired < core->last_near + p->core_rob / 3)
			cycles = cycles * p->core_overlap_permille / 1000;
		else
			core->last_near = core->retired;
		core->near_seen = true;
	}
	core->close_stall = naive_stall(core, served);
	core->close_cycles = cycles;
	core->close_at = core->retired;
	core->close_room = core->room;
}

static inline bool naive_access(struct naive_core *core, uint64_t address, bool store)
{
	struct counters *now = naive_now(core);
	struct naive_page *page;
	struct naive_line *found;
	bool depends = !store && core->value_known && address >= core->last_value && address < core->last_value + 4096;
	uint64_t dtlb_misses = now->dtlb_misses;

	++*(store ? &now->stores : &now->loads);
	page = naive_translate(core, address, false, depends);
	uint64_t at = page->frame + address % naive_bytes(page->size);
	if (page->device)
		core->device_block = core->previous;
	if (page->device && at / KIB4 == 0xfee00000 / KIB4) {
		now->stall_mode += core->system->profile.cost_apic;
	} else if (page->device) {
		now->io_accesses++;
		now->stall_mode += store ? core->system->profile.cost_mmio_write : core->system->profile.cost_mmio;
	}
	if (!page->memory)
		return false;
	bool slow = now->dtlb_misses > dtlb_misses;
	uint64_t line = naive_physical_line(page, address);
	found = naive_use(core->system, &core->l1d, line);
	if (!found && !store && core->system->profile.prefetch_l1_stream && naive_crosses(core, address)) {
		naive_prefetch(core, line);
		naive_prefetch_l1(core, line);
		found = naive_line(&core->l1d, line);
	}
	bool fresh = !found || found->early, waits = found && found->early && !store;
	if (found)
		found->early = false;
	if (!found) {
		now->l1d_misses++;
		enum served served = naive_load_line(core, line, store);
		if (!store)
			naive_charge(core, served, depends);
		slow = true;
	} else if (store) {
		if (found->state == LINE_SHARED && naive_upgrade(core, line))
			now->l1d_upgrades++;
		found->state = LINE_MODIFIED;
	} else if (waits && found->asked) {
		naive_charge_asked(core, found->from, found->there);
	} else if (waits) {
		naive_charge_early(core, found->from);
	}
	if (slow)
		core->value_known = false;
	if (fresh && !store && core->system->profile.prefetch_l1_stream)
		naive_follow_l1(core, address, line, naive_bytes(page->size));
	return slow && !store;
}

static inline void naive_loaded(struct naive_core *core, uint64_t value)
{
	core->last_value = value;
	core->value_at = core->flow;
	core->value_chained = core->chained;
	core->value_known = true;
}

static inline void naive_repeat_begins(struct naive_core *core, uint64_t bytes)
{
	const struct profile *p = &core->system->profile;
	uint64_t cycles = bytes <= p->cost_repeat_short_bytes ? p->cost_repeat_short : p->cost_repeat_start;

	for (uint64_t moved = 0; bytes > p->cost_repeat_short_bytes && moved < bytes; moved += p->cost_repeat_bytes)
		cycles++;
	naive_now(core)->repeat_cycles += cycles;
}

/* How far behind its blocks' addresses a program's code lies, in the address space with these tables. */
static inline uint64_t naive_slide(uint64_t root)
{
	return root / KIB4 % 3 * (16 * MIB2 + 5 * KIB4);
}

static inline void naive_fetch(struct naive_core *core, uint64_t address)
{
	const struct profile *p = &core->system->profile;
	bool begins = core->steered && address / 64 == core->previous->pc / 64;
	struct naive_page *page;
	enum line_state state;

	if (core->moves && core->previous->user)
		address += naive_slide(core->tables->root);
	page = naive_translate(core, address, true, false);
	if (!page->memory)
		return;
	uint64_t line = naive_physical_line(page, address);
	if (naive_use(core->system, &core->l1i, line))
		return;
	naive_now(core)->l1i_misses++;
	enum served served = naive_fetch_line(core, line, false, &state);
	naive_put(core->system, &core->l1i, line, LINE_SHARED);
	uint32_t latency = naive_latency(p, served), ahead = begins ? 0 : p->core_fetch_ahead;
	naive_now(core)->stall_frontend += latency > ahead ? latency - ahead : 0;
	naive_prefetch_l2(core, line, served);
	if (p->prefetch_l1i_next && line % 64 != 63)
		naive_prefetch(core, line + 1);
}

/* The same place in a page: which page it is, QEMU's blocks of code that is shared don't know. */
static inline bool naive_same(uint64_t one, uint64_t other)
{
	return one % KIB4 == other % KIB4;
}

/* How long after the branch at its end comes it is known where that goes. */
static inline uint64_t naive_known_late(const struct naive_core *core, const struct block *from)
{
	return from->kind == BRANCH_CONDITIONAL ? from->resolve : from->kind == BRANCH_RETURN ? core->system->profile.l1d_latency : 0;
}

static inline void naive_leave(struct naive_core *core, const struct block *from, uint64_t to)
{
	const struct profile *p = &core->system->profile;
	enum branch_kind kind = (enum branch_kind)from->kind;
	uint64_t next = from->pc + from->length;
	struct counters *now = naive_now(core);
	bool expected, right = true;

	if (kind == BRANCH_OTHER || kind == BRANCH_REPEAT || (kind == BRANCH_NONE && naive_same(to, next)))
		return;
	expected = kind == BRANCH_CONDITIONAL                   ? naive_same(to, next) || naive_same(to, from->target)
		   : kind == BRANCH_JUMP || kind == BRANCH_CALL ? naive_same(to, from->target)
								: kind != BRANCH_NONE;
	if (!expected) {
		core->steered = true;
		now->interrupts++;
		now->stall_mode += p->cost_interrupt;
		return;
	}
	now->branches++;
	core->pieces += kind == BRANCH_CONDITIONAL && !naive_same(to, next);
	if (p->model_branches)
		right = kind == BRANCH_CONDITIONAL ? naive_direction(&core->predictor, from->pc, !naive_same(to, next))
						   : naive_resolve(&core->predictor, kind, from->pc, next, to);
	now->branch_misses += !right;
	core->steered = !right;
	now->stall_branch += right ? 0 : p->core_mispredict + naive_known_late(core, from);
}

/* Into the block that accessed a device and was left there; but not by its own branch. */
static inline bool naive_goes_on(const struct naive_core *core, const struct block *block)
{
	const struct block *from = core->previous;
	bool branches = from && from->kind != BRANCH_NONE && from->kind <= BRANCH_CALL && naive_same(block->pc, from->target);

	if (!from || core->device_block != from || branches)
		return false;
	for (uint64_t at = from->pc + 1; at < from->pc + from->length; at++)
		if (naive_same(at, block->pc))
			return true;
	return false;
}

static inline void naive_chain(struct naive_core *core, uint64_t parts)
{
	naive_now(core)->chain_cycles += (core->chained + parts) / 64 - core->chained / 64;
	core->chained += parts;
}

static inline bool naive_transfers(const struct block *from)
{
	switch ((enum branch_kind)from->kind) {
	case BRANCH_JUMP:
	case BRANCH_CALL:
	case BRANCH_INDIRECT:
	case BRANCH_INDIRECT_CALL:
	case BRANCH_RETURN:
		return true;
	default:
		return false;
	}
}

/* In 64ths of a cycle: what instructions and their chains took, and waiting for data. */
static inline uint64_t naive_passed(const struct naive_core *core)
{
	return core->flow + core->chained + core->waited * 64;
}

/* Each taken branch and each further line takes the front end its time, a call or return another; it is ahead by up to eight cycles. */
static inline void naive_transfer(struct naive_core *core, enum branch_kind kind)
{
	const struct profile *p = &core->system->profile;
	uint64_t cost = 0;

	if (kind == BRANCH_CALL || kind == BRANCH_INDIRECT_CALL || kind == BRANCH_RETURN)
		cost = 64 * p->core_call_cycles;
	else
		core->pieces++;
	cost += core->pieces * p->core_taken_permille * 64 / 1000;
	core->pieces = 0;
	core->front += naive_passed(core) - core->transferred_at;
	naive_chain(core, cost > core->front ? cost - core->front : 0);
	core->front -= cost > core->front ? core->front : cost;
	if (core->front > 8 * 64)
		core->front = 8 * 64;
	core->transferred_at = naive_passed(core);
}

static inline void naive_block(struct naive_core *core, const struct block *block)
{
	const struct profile *p = &core->system->profile;
	bool was_user = core->mode == HOST_USER || core->mode == GUEST_USER, was_guest = core->mode >= GUEST_KERNEL;
	struct counters *now;

	core->mode = core->guest ? (block->user ? GUEST_USER : GUEST_KERNEL) : (block->user ? HOST_USER : HOST_KERNEL);
	now = naive_now(core);
	if (was_user && !block->user && was_guest == core->guest) {
		now->kernel_entries++;
		now->stall_mode += p->cost_kernel_entry;
	}
	if (naive_goes_on(core, block)) {
		core->previous = block;
		return;
	}
	now->atomics += block->atomics;
	now->pauses += block->pauses;
	now->stall_mode += (uint64_t)block->atomics * p->cost_atomic + (uint64_t)block->pauses * p->cost_pause;
	now->io_accesses += core->guest ? 0 : block->ports;
	now->stall_mode += core->guest ? 0 : (uint64_t)block->ports * p->cost_port_io;
	if (core->previous == block)
		naive_chain(core, block->chain);
	if (core->previous && naive_transfers(core->previous))
		naive_transfer(core, (enum branch_kind)core->previous->kind);
	core->steered = false;
	if (core->previous)
		naive_leave(core, core->previous, block->pc);
	core->previous = block;
	now->instructions += block->instructions;
	core->retired += block->instructions;
	now->flow_cycles -= core->flow / 64;
	core->flow += block->flow;
	core->room += block->spare;
	now->flow_cycles += core->flow / 64;
	now->fused += block->fused;
	for (uint64_t line = block->pc / 64; line <= (block->pc + block->length - 1) / 64; line++) {
		now->l1i_fetches++;
		core->pieces += line > block->pc / 64;
		naive_fetch(core, line * 64);
	}
}

static inline void naive_switch_space(struct naive_core *core, const struct tables *tables, uint32_t number)
{
	core->tables = tables;
	core->space = number;
}

static inline void naive_new_space(struct naive_core *core, const struct tables *tables, uint32_t number)
{
	core->generation[number]++;
	naive_switch_space(core, tables, number);
}

static inline void naive_forget_pages(struct naive_tlb *tlb, uint32_t space)
{
	for (uint32_t i = 0; i < tlb->count;)
		if (tlb->held[i].space == space)
			tlb->held[i] = tlb->held[--tlb->count];
		else
			i++;
}

static inline void naive_flush_space(struct naive_core *core, uint32_t number)
{
	for (int i = 0; i < PAGE_SIZES; i++) {
		naive_forget_pages(&core->dtlb[i], number);
		naive_forget_pages(&core->itlb[i], number);
	}
	naive_forget_pages(&core->stlb, number);
	naive_forget_pages(&core->stlb_1g, number);
	naive_forget_pages(&core->stlb_code, number);
	naive_forget(&core->walker, 0, number, 0);
	core->generation[number]++;
}

static inline void naive_flush_all(struct naive_core *core)
{
	for (int i = 0; i < PAGE_SIZES; i++)
		core->dtlb[i].count = core->itlb[i].count = 0;
	core->stlb.count = core->stlb_1g.count = core->stlb_code.count = 0;
	core->walker.count = 0;
}

static inline void naive_forget_page(struct naive_core *core, uint64_t address)
{
	struct naive_tlb *all[] = {&core->dtlb[0], &core->dtlb[1], &core->dtlb[2], &core->itlb[0], &core->itlb[1], &core->itlb[2],
		&core->stlb, &core->stlb_1g, &core->stlb_code};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (enum page_size size = PAGE_4K; size < PAGE_SIZES; size++) {
			struct naive_page *page = naive_page(core, all[i], address, size);
			if (page)
				*page = all[i]->held[--all[i]->count];
		}
	for (int level = 1; level <= 3; level++)
		naive_forget(&core->walker, level, core->space, core->generation[core->space]);
}

static inline void naive_core_init(struct naive_system *system, uint32_t index)
{
	struct naive_core *core = &system->core[index];
	const struct profile *p = &system->profile;

	core->system = system;
	core->index = index;
	for (int i = 0; i < NAIVE_SPACES; i++)
		core->generation[i] = 1;
	naive_lines_init(&core->l1i, p->l1i_sets, p->l1i_ways);
	naive_lines_init(&core->l1d, p->l1d_sets, p->l1d_ways);
	naive_lines_init(&core->l2, p->l2_sets, p->l2_ways);
	naive_tlb_init(&core->dtlb[PAGE_4K], p->dtlb_4k_entries, p->dtlb_4k_ways);
	naive_tlb_init(&core->dtlb[PAGE_2M], p->dtlb_2m_entries, p->dtlb_2m_ways);
	naive_tlb_init(&core->dtlb[PAGE_1G], p->dtlb_1g_entries, p->dtlb_1g_ways);
	naive_tlb_init(&core->itlb[PAGE_4K], p->itlb_4k_entries, p->itlb_4k_ways);
	naive_tlb_init(&core->itlb[PAGE_2M], p->itlb_2m_entries, p->itlb_2m_ways);
	naive_tlb_init(&core->itlb[PAGE_1G], 0, 0);
	naive_tlb_init(&core->stlb, p->stlb_entries, p->stlb_ways);
	naive_tlb_init(&core->stlb_1g, p->stlb_1g_entries, p->stlb_1g_ways);
	naive_tlb_init(&core->stlb_code, p->stlb_code_entries, p->stlb_code_ways);
	naive_caches_init(&core->walker, p);
	naive_predictor_init(&core->predictor, p);
}

static inline struct naive_system *naive_system_new(const struct profile *profile, uint32_t core_count, uint64_t ram_bytes)
{
	struct naive_system *system = calloc(1, sizeof(*system));

	CHECK(system && core_count <= NAIVE_CORES);
	system->profile = *profile;
	system->core_count = core_count;
	system->ram_bytes = ram_bytes;
	for (uint32_t node = 0; node < 2; node++)
		naive_lines_init(&system->llc[node], profile->llc_sets, profile->llc_ways);
	for (uint32_t i = 0; i < core_count; i++)
		naive_core_init(system, i);
	return system;
}

#endif
