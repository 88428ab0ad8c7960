/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One processor core of the model: private caches, TLBs, walker, predictor, and the counters of what they did. It is driven by
 * one thread with blocks of instructions and data accesses, and knows nothing of QEMU.
 *
 * Nearly all accesses hit L1 and the first-level TLB. For these a filter in front answers, direct-mapped by virtual line: it
 * knows where in L1 the line is and which TLB entry maps it, and sets their times of last use, which is all that a hit changes.
 * Whatever takes a line or a page away takes it out of the filter too, so the filter is exact.
 */
#ifndef VSPROF_CORE_H
#define VSPROF_CORE_H

#include "branch.h"
#include "cache.h"
#include "calls.h"
#include "counters.h"
#include "hot.h"
#include "profile.h"
#include "tlb.h"
#include "uncore.h"
#include "walk.h"

#define FILTER_BITS 10
#define FILTER_SETS (1 << FILTER_BITS)
#define FILTER_ENTRY_BITS 5 /* of bytes */
#define FILTER_EMPTY UINT64_MAX
#define FILTER_PART (FILTER_SETS / 64) /* sets: a bit in a TLB entry's `filtered` */
#define PAGE_FILTER_SETS 128
#define CODE_PAGES 128
#define STREAMS 16
#define NO_LINE UINT64_MAX
/* Each access and each line of code is a tick, a miss some more: a loop around one load takes two or three, around a CMPXCHG a few more. */
#define SPIN_TICKS 8
#define L1_STREAMS 8

/* A run of instructions that is entered at its begin and left at its end. Small: half a line of cache, for there are many. */
struct block {
	uint64_t pc, target; /* its begin, and where a direct branch at its end goes */
	uint16_t length;     /* bytes */
	uint16_t instructions;
	uint8_t kind; /* enum branch_kind of the last instruction */
	bool user;
	uint8_t atomics, pauses : 4, ports : 4; /* how many of the instructions; ports: IN, OUT */
	uint8_t spare;   /* SPARE_PARTs of `flow` in which the core could have begun more: behind dense lines, and in the chain's part */
	uint8_t resolve; /* of a conditional branch: cycles beyond `flow` until its condition is known */
	uint16_t flow;   /* CHAIN_PARTs that it takes if nothing misses, see pace.h */
	uint16_t chain;  /* of a loop in one block: cycles by which its chain takes longer each time, in CHAIN_PARTs */
	bool fused;      /* the last two instructions are one to the core: a comparison or the like, and a branch */
	uint8_t way;     /* user, and SPECIAL_WAY if there are atomics, pauses or ports: what core_block must look at, in one byte */
};

#define CHAIN_PART 64
#define SPARE_PART 16     /* of a cycle */
#define MOST_OF_A_KIND 15 /* of pauses and of ports that are counted in a block */

/*
 * QEMU keeps one translation of a piece of code for all processes that have it mapped, wherever they have it: a library's block
 * has the address that it had in the process for which it was translated first. Only the place in its page is always right.
 */
#define SAME_PLACE 0xfffull
#define MOST_FILL_BUFFERS 64

/* Address behind the last instruction. */
static inline uint64_t block_next(const struct block *block)
{
	return block->pc + block->length;
}

#define SPECIAL_WAY 2
#define UNKNOWN_WAY 4

struct filter_entry {
	uint64_t line;       /* virtual line and address space; FILTER_EMPTY: none */
	uint64_t store_line; /* the same if it is modified already, so that a further store changes nothing */
	stamp_t *stamp;      /* of the line's slot in L1 */
	struct tlb_entry *page;
};
_Static_assert(sizeof(struct filter_entry) == 1 << FILTER_ENTRY_BITS, "filter_entry_of counts on it");

/* Pages at equal places of larger regions are common (stacks, tables by processor): lines of theirs should not meet in one set. */
static inline uint32_t filter_set(uint64_t line)
{
	return (uint32_t)line % FILTER_SETS;
}

/* The place of an address in a filter: by its line, but in two instructions less than an index takes. */
static inline struct filter_entry *filter_entry_of(struct filter_entry *filter, uint64_t address)
{
	return (struct filter_entry *)((char *)filter +
				       (address >> (LINE_SHIFT - FILTER_ENTRY_BITS) & (FILTER_SETS - 1) << FILTER_ENTRY_BITS));
}

/* The data pages used of late, for accesses that pass the line filter. */
struct page_filter_entry {
	uint64_t page; /* virtual page of 4 KiB and address space */
	struct tlb_entry *entry;
};

/* Where a page of user code really lies in the present address space. */
struct code_page {
	uint64_t page; /* by the blocks' addresses, with the address space */
	uint64_t real;
};

struct stream {
	uint64_t page, last_used;
	int8_t line, direction;
	uint8_t confidence;
};

/* Ascending or descending lines of loads, by virtual line and address space. */
struct l1_stream {
	uint64_t line;
	int8_t direction;
	uint8_t confidence;
};

/* A load whose cost is charged with the next one's: instructions behind it may hide it. */
struct near {
	uint64_t *stall;         /* NULL: there is none */
	uint64_t cycles;         /* what it costs if nothing hides it */
	uint64_t retired, spare; /* the core's then */
};

struct core {
	/* What each access reads comes first. */
	struct counters *now;         /* those of the present mode */
	uint64_t space_tag;           /* address space, in the upper bits of a filter's line */
	uint64_t retired;             /* instructions in all */
	uint64_t flow;                /* what they take if nothing misses, in CHAIN_PARTs */
	uint64_t spare;               /* the part of `flow` in which more could have begun, in SPARE_PARTs */
	uint64_t pieces;              /* of code that the front end went on to: taken conditional branches, and lines within blocks */
	uint64_t tick;                /* the time by which lines and pages age */
	uint64_t code_line;           /* the line last fetched, as in a filter */
	uint64_t sample_at;           /* `retired` at which the next block is sampled */
	const struct block *previous; /* the block that ran before */
	uint8_t way;                  /* that of the blocks of the present mode */
	bool guest;
	bool branches_modelled;
	enum mode mode;
	struct predictor predictor;
	_Alignas(64) struct filter_entry data_filter[FILTER_SETS]; /* no entry in two lines of the real cache */
	struct filter_entry code_filter[FILTER_SETS];
	struct page_filter_entry page_filter[PAGE_FILTER_SETS];
	struct code_page code_page[CODE_PAGES];

	const struct profile *profile;
	struct uncore *uncore;
	uint32_t index;
	struct cache l1i, l1d, l2;
	uint16_t *l1i_filtered, *l1d_filtered;   /* by slot: the filter entry that may know it; and EARLY, see core_parts.h */
	uint64_t *l1d_there;                     /* by slot: when a line is there that an instruction asked for, by core_cycles() */
	uint64_t fill_buffer[MOST_FILL_BUFFERS]; /* when each is free: L1D's, as far as prefetch instructions use them */
	struct tlb dtlb[PAGE_SIZES], itlb[PAGE_SIZES], stlb, stlb_1g, stlb_code;
	struct walker walker;
	struct address_space space;
	uint32_t generation[256]; /* by address space */
	struct tlb_context context;
	struct tlb_entry no_page; /* what an address has that no page is mapped to; in no TLB */
	bool asking;              /* it is a prefetch instruction's address that is translated */
	struct stream stream[STREAMS];
	struct l1_stream l1_stream[L1_STREAMS];
	uint32_t next_l1_stream; /* the one to be forgotten next */

	/*
	 * The line that another core took away while this one kept looking at it, as who spins for a lock or for a word from another thread
	 * does; NO_LINE: none. And within how many of `tick` a line was looked at that is kept looked at: SPIN_TICKS; 0: none ever is.
	 */
	uint64_t awaited, spin_ticks;
	bool blind;          /* what runs is not modelled: misses are not looked into, and leave caches, TLBs and predictors as they are */
	bool repeating;      /* the accesses are those of a repeated string instruction */
	uint64_t waited;     /* cycles for data, in all modes */
	uint64_t filled_at;  /* when the last line came from memory, in cycles of flow, chains and waiting */
	uint64_t fill_queue; /* how many cycles those under way took then */
	uint64_t last_long;  /* `retired` at the last long miss: those near it are in its shadow */
	uint64_t last_near;  /* the same of loads that the LLC or another core of the node served */
	struct near near;    /* the last load that L2 or the LLC served, until what came behind it is known */
	uint64_t last_value; /* what the last load got that missed L1 or the first-level TLB: an address near it depends on it */
	uint64_t value_at, value_chained; /* `flow` and `chained` then */
	bool value_known;
	uint64_t steered_at; /* `retired` when the front end was last set on another way than it had gone ahead on; none: UINT64_MAX */
	const struct block *device_block;   /* the block that ran when a device was accessed last */
	uint64_t transferred_at, pieces_at; /* time and `pieces` at the last jump, call or return */
	uint64_t front_ahead;               /* by how much the front end was ahead of the flow then, in CHAIN_PARTs */
	uint64_t chained;                   /* chain_cycles of all modes, in CHAIN_PARTs */
	uint64_t walks_failed;
	uint64_t (*real_pc)(struct core *core); /* the address at which the block that runs was entered; NULL: blocks have their own */

	struct hot *hot;     /* NULL: nobody asks where it happens */
	struct calls *calls; /* NULL: nobody asks who called it */
	uint32_t thread;     /* id of the emulated thread that runs */
	uint32_t sample_every;
	uint64_t sample_due; /* `sample_at` may be earlier, where somebody else wants the core's attention */

	struct counters counters[MODE_COUNT];
};

/* Room for a core, aligned as it must be and all zero; NULL without memory. To be freed by free(). */
struct core *core_new(void);
bool core_init(struct core *core, const struct profile *profile, struct uncore *uncore, uint32_t index, struct memory memory);
void core_free(struct core *core);

/* The address space changed: CR3 loaded. Outdates all TLB entries of the space but those of global pages. */
void core_new_address_space(struct core *core, const struct address_space *space, uint16_t number);
/* The processor goes on in another address space, whose entries stay valid (VMRUN and back). */
void core_switch_address_space(struct core *core, const struct address_space *space, uint16_t number);
/* All that is known of an address space, but not the present one, is void, global pages and nested tables too (VMCB's TLB control). */
void core_flush_address_space(struct core *core, uint16_t number);
void core_forget_page(struct core *core, uint64_t address);
/* Forget all translations of all spaces. */
void core_flush_all(struct core *core);
/* From the next block on it is a guest that runs, or the host. */
void core_enter(struct core *core, bool guest);
/* Forget what is known of the instruction stream: after a flush of blocks, whose memory may be gone. */
void core_forget_blocks(struct core *core);

/* What is not done at each access or block is kept out of the code that is: it would cost that registers to save. */
#define SELDOM __attribute__((noinline))

/* Returns true if a load missed L1D or the first-level TLB: then tell the value with core_loaded, if it can be known. */
SELDOM bool core_access_slow(struct core *core, uint64_t address, bool store);
void core_loaded(struct core *core, uint64_t value);
/* Charge the last load that L2 or the LLC served, as otherwise the next one does that misses L1D: nothing more is to hide it. */
void core_settle(struct core *core);
/*
 * A prefetch instruction ran: a line is asked for, to be the core's `own` or not, into L1D or, if it is `far`, into L2 alone. Nobody waits,
 * but for a translation as any access does.
 */
void core_prefetch(struct core *core, uint64_t address, bool own, bool far);
/* Parts of core_block, up to its end. */
SELDOM void core_block_slow(struct core *core, const struct block *block);
SELDOM void core_branch_slow(struct core *core, const struct block *block);
SELDOM void core_mispredicted(struct core *core, const struct block *block);
SELDOM void core_fetch_slow(struct core *core, uint64_t line, uint64_t last);
/* Attention is paid: take the block that runs as a sample if one is due, and choose when the next will be. */
void core_sample(struct core *core);

/*
 * A repeated MOVS or STOS ran: `count` elements of `bytes` (a power of two) went to `to` and beyond, or `down` from there; with
 * `loads` they came from `from`. That a value so copied is the address of the next load is not expected.
 */
struct repeated {
	uint64_t from, to, count;
	uint32_t bytes;
	bool loads, down;
};
void core_repeated(struct core *core, struct repeated r);

/* Cycles that all of the core's instructions took so far, in all modes: the total of cpi_stack, in whole cycles. */
uint64_t core_cycles(const struct core *core);

/* For other cores' threads: take `line` away, or make it shared. Returns the state it had here. */
enum line_state core_snooped(struct core *core, uint64_t line, bool take_away);

/*
 * Whether the filter knows that an access of `bytes` at most hits: then all of it is done. Otherwise nothing is. Where the last byte
 * may lie in the next line, that line is looked for: it never is in this one's place.
 */
static inline bool core_hits(struct core *core, uint64_t address, bool store, unsigned int bytes)
{
	struct filter_entry *entry = filter_entry_of(core->data_filter, address);
	uint64_t line = (address + bytes - 1) >> LINE_SHIFT | core->space_tag;

	if (__builtin_expect((store ? entry->store_line : entry->line) != line, 0))
		return false;
	*(store ? &core->now->stores : &core->now->loads) += 1;
	entry->page->stamp = ++core->tick;
	*entry->stamp = (stamp_t)core->tick;
	return true;
}

/* One data access within a line. Returns what core_access_slow does. */
static inline bool core_access(struct core *core, uint64_t address, bool store)
{
	return !core_hits(core, address, store, 1) && core_access_slow(core, address, store);
}

/* So many CHAIN_PARTs of a cycle beyond the flow of instructions. */
static inline void core_chain(struct core *core, uint64_t parts)
{
	uint64_t chained = core->chained + parts;

	core->now->chain_cycles += chained / CHAIN_PART - core->chained / CHAIN_PART;
	core->chained = chained;
}

/* The lines of code from `line` to `last`. */
static inline void core_fetch(struct core *core, uint64_t line, uint64_t last)
{
	for (;; line++) {
		uint64_t tagged = line | core->space_tag;
		struct filter_entry *entry = filter_entry_of(core->code_filter, line << LINE_SHIFT);

		if (__builtin_expect(entry->line != tagged, 0)) {
			core_fetch_slow(core, line, last);
			return;
		}
		core->code_line = tagged;
		entry->page->stamp = ++core->tick;
		*entry->stamp = (stamp_t)core->tick;
		if (__builtin_expect(line == last, 1))
			return;
	}
}

/*
 * What is known of a block when it is translated is known to the compiler here: a function for each kind of block has no branch for
 * it, which is one less to predict where thousands of blocks come by.
 */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Control has come to `block`, which has one line or more and ends in a conditional branch or not; how it came is settled. */
static ALWAYS_INLINE void core_run_as(struct core *core, const struct block *block, bool conditional, bool one_line)
{
	uint64_t first = block->pc >> LINE_SHIFT, last = one_line ? first : (block_next(block) - 1) >> LINE_SHIFT;

	core->now->instructions += block->instructions;
	core->now->l1i_fetches += last - first + 1;
	core->retired += block->instructions;
	core->spare += block->spare;
	core->pieces += last - first;
	uint64_t flow = core->flow + block->flow;
	core->now->flow_cycles += flow / CHAIN_PART - core->flow / CHAIN_PART;
	core->flow = flow;
	core->previous = block;
	if (conditional) {
		core->now->fused += block->fused;
		predictor_look(&core->predictor, block->pc);
	}
	core_fetch(core, first, last);
}

static inline void core_run(struct core *core, const struct block *block)
{
	core_run_as(core, block, block->kind == BRANCH_CONDITIONAL, false);
}

/*
 * A block is entered. Most come from a conditional branch or just follow; whatever else is to be done, a function of its own does,
 * with the rest of the work: what is called last of all needs no registers saved here.
 */
static ALWAYS_INLINE void core_block_as(struct core *core, const struct block *block, bool conditional, bool one_line, bool loop)
{
	const struct block *from = core->previous;
	bool taken = (block->pc ^ block_next(from)) & SAME_PLACE;

	if (__builtin_expect(block->way != core->way, 0)) {
		core_block_slow(core, block);
		return;
	}
	if (loop && from == block)
		core_chain(core, block->chain);
	if (from->kind == BRANCH_CONDITIONAL && !(taken && ((block->pc ^ from->target) & SAME_PLACE))) {
		core->now->branches++;
		core->pieces += taken;
		if (core->branches_modelled && __builtin_expect(!predictor_resolve_direction(&core->predictor, taken), 0)) {
			core_mispredicted(core, block);
			return;
		}
	} else if (from->kind != BRANCH_NONE || __builtin_expect(taken, 0)) {
		core_branch_slow(core, block);
		return;
	}
	core_run_as(core, block, conditional, one_line);
}

static inline void core_block(struct core *core, const struct block *block)
{
	core_block_as(core, block, block->kind == BRANCH_CONDITIONAL, false, block->chain);
}

#endif
