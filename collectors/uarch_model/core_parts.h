/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of core.c know of each other; core.h is for all others. */
#ifndef VSPROF_CORE_PARTS_H
#define VSPROF_CORE_PARTS_H

#include "core.h"

#define SPACE_SHIFT 58 /* a virtual line number has 58 bits */
/* In l1d_filtered: a prefetcher brought the line, from where, and nobody used it yet. */
#define EARLY (1u << 15)
#define EARLY_SHIFT FILTER_BITS
#define EARLY_SERVED 7
#define NOT_ASKED UINT64_MAX /* in l1d_there: it was not an instruction of the program */
_Static_assert(SERVED_COUNT <= EARLY_SERVED && EARLY_SERVED << EARLY_SHIFT < EARLY, "where it came from fits between");

/* An event of the block that runs. */
static inline void core_mark(struct core *core, enum hot_kind kind)
{
	if (!core->hot)
		return;
	uint32_t stack = core->calls ? calls_node(core->calls, core->mode & 1) : NO_CALLER;
	hot_add(core->hot, core->previous->pc, stack, core->thread, (uint8_t)core->mode, kind);
}

static inline uint64_t physical_address(const struct tlb_entry *entry, uint64_t address)
{
	return entry->frame | (address & ((1ull << page_shift[entry->size]) - 1));
}

static inline uint64_t physical_line(const struct tlb_entry *entry, uint64_t address)
{
	return physical_address(entry, address) >> LINE_SHIFT;
}

/* core_filters.c */

void filters_clear(struct core *core);
/* Of pages alone: lines stay. */
void filters_clear_pages(struct core *core);
/* A slot of L1 gets another line, or none. */
void filter_forget_slot(struct filter_entry *filter, const uint16_t *filtered, const struct cache *cache, size_t slot);
void filter_remember_slot(struct filter_entry *filter, uint16_t *filtered, const struct cache *cache, const slot_t *slot, uint64_t line,
	struct tlb_entry *page, bool writable);
/* No filter may vouch for the page of `entry` any longer; `parts` is where. */
void filter_forget_lines(struct filter_entry *filter, const struct tlb_entry *entry, uint64_t parts);
/* The lines that pages of one TLB vouch for: those of an address space that ends, but for the global ones. */
void filter_forget_space(struct filter_entry *filter, struct tlb *tlb, uint16_t number);
/* INVLPG. */
void filter_forget_page(struct filter_entry *filter, const struct tlb tlb[PAGE_SIZES], uint64_t address, struct tlb_context context);

/* core_lines.c */

/* Where waiting for a line from there is booked. */
static inline uint64_t *stall_of(struct core *core, enum served served)
{
	struct counters *now = core->now;

	return served == SERVED_L2 ? &now->stall_l2 : served >= SERVED_REMOTE_CACHE ? &now->stall_memory : &now->stall_llc;
}

/* Cycles for data, booked as that `stall`. */
void core_wait(struct core *core, uint64_t *stall, uint64_t cycles);
/* A demand request that missed L1: from L2, or from beyond and then kept there. With the line held (uncore_hold), as nothing else here. */
enum served lines_fetch(struct core *core, uint64_t line, bool own, enum line_state *state);
/* The same, and into L1D. */
enum served lines_load(struct core *core, uint64_t line, bool own, slot_t **slot);
/* A store to a line in that slot of L1D, which is not modified yet. */
void lines_own(struct core *core, uint64_t line, slot_t *slot);
/* Into L2, unless it is there. */
void lines_prefetch(struct core *core, uint64_t line);
/* Into L1D, by way of L2. */
void lines_prefetch_l1d(struct core *core, uint64_t line);
/* The same for an instruction that asks for a line that is not there, which is to be the core's `own`. */
void lines_ask(struct core *core, uint64_t line, bool own);
/* What L2's prefetchers make of a demand request, when it is done. */
void lines_prefetch_l2(struct core *core, uint64_t line, enum served served);
/* What L1D's prefetcher makes of a load that came to a line for the first time since it is there. */
void lines_follow(struct core *core, uint64_t address, uint64_t line, const struct tlb_entry *page);
/* Whether a load of `address` comes over its page's border with a stream. */
bool lines_cross_page(const struct core *core, uint64_t address);

/* core_translate.c */

/* The page of an address, by the core's `dtlb` or `itlb`. `depends`: what it waits for hides nothing. */
struct tlb_entry *core_translate(struct core *core, struct tlb tlb[PAGE_SIZES], uint64_t address, bool depends);

#endif
