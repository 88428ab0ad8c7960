/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions: lines of code, and how control goes from block to block. */
#include "core_parts.h"

#define FRONT_AHEAD (8 * CHAIN_PART) /* cycles: some thirty instructions decoded and not yet begun */

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
	struct tlb_entry *page = core_translate(core, core->itlb, address, false);
	if (!page->memory)
		return;
	uint64_t line = physical_line(page, address);
	slot_t *slot = cache_touch(&core->l1i, line, ++core->tick);
	if (!slot) {
		enum line_state state = LINE_INVALID;
		cache_expect(&core->l2, line);
		core->now->l1i_misses++;
		core_mark(core, HOT_l1i_misses);
		uint8_t *held = uncore_hold(core->uncore, line);
		enum served served = lines_fetch(core, line, false, &state);
		uncore_let_go(held);
		slot_t evicted;
		slot = cache_insert(&core->l1i, line, LINE_SHARED, ++core->tick, &evicted);
		filter_forget_slot(core->code_filter, core->l1i_filtered, &core->l1i, (size_t)(slot - core->l1i.slots));
		core->now->stall_frontend += waited_for_code(core, virtual_line, served_latency(core->profile, served));
		lines_prefetch_l2(core, line, served);
		if (core->profile->prefetch_l1i_next && ((line + 1) & 63))
			lines_prefetch(core, line + 1);
	}
	filter_remember_slot(core->code_filter, core->l1i_filtered, &core->l1i, slot, virtual_line | core->space_tag, page, false);
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
		if (core->calls)
			calls_change_mode(core->calls, block->user, entered, block_next(core->previous));
	}
	if (!goes_on(core, block))
		count_special(core, block);
	/* Once more, now that nothing of this block's kind is left to do. */
	core->way = block->way;
	core_block(core, block);
	core->way = block->user;
}

/*
 * The wrong way is gone until it is known where the branch goes, so that what it waits for is hidden by nothing: `known` cycles, the branch
 * resolution time of interval analysis (see cpi.h).
 */
static void mispredicted(struct core *core, uint32_t known)
{
	core->now->branch_misses++;
	core_mark(core, HOT_branch_misses);
	core->now->stall_branch += core->profile->core_mispredict + known;
	core->steered_at = core->retired;
}

void core_mispredicted(struct core *core, const struct block *block)
{
	mispredicted(core, core->previous->resolve);
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
	if (!core->branches_modelled || core->blind || predictor_resolve(&core->predictor, kind, from->pc, block_next(from), to))
		return;
	/* A return's address comes from the stack. */
	mispredicted(core, kind == BRANCH_RETURN ? core->profile->l1d_latency : 0);
}

/*
 * What instructions, their chains and waiting for lines of data took, in CHAIN_PARTs: a front end goes on meanwhile. It does so in page
 * walks, string instructions and changes of mode, too. These are left out, so branches just behind them are charged somewhat too much.
 */
static uint64_t elapsed(const struct core *core)
{
	return core->flow + core->chained + core->waited * CHAIN_PART;
}

/*
 * A front end takes one taken branch in a cycle or somewhat more, and some need longer for a call or a return. It may be ahead of the flow
 * of instructions, as far as the queue between them goes; where branches come so densely that it is not, they are what limits.
 */
static void transfer(struct core *core, enum branch_kind kind)
{
	const struct profile *p = core->profile;
	bool calls = kind == BRANCH_CALL || kind == BRANCH_INDIRECT_CALL || kind == BRANCH_RETURN;
	uint64_t passed = elapsed(core) - core->transferred_at;
	uint64_t jumps = core->pieces - core->pieces_at + !calls;
	uint64_t cost = jumps * p->core_taken_permille * CHAIN_PART / 1000 + (calls ? p->core_call_cycles * CHAIN_PART : 0);
	uint64_t ahead = core->front_ahead + passed, left = ahead > cost ? ahead - cost : 0;

	core->pieces_at = core->pieces;
	core->front_ahead = left > FRONT_AHEAD ? FRONT_AHEAD : left;
	if (cost > ahead)
		core_chain(core, cost - ahead);
	core->transferred_at = elapsed(core);
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
		transfer(core, (enum branch_kind)core->previous->kind);
	const struct block *from = core->previous;
	branch(core, from, block->pc);
	if (core->calls)
		calls_follow(core->calls, (enum branch_kind)from->kind, from->user, block_next(from), block->user, block->pc);
	core_run(core, block);
}
