/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One processor core of the model: private caches, TLBs, walker, predictor, and the counters of what they did. It is driven by
 * one thread with blocks of instructions and data accesses, and knows nothing of QEMU.
 *
 * Nearly all accesses touch the line that their L1 set used last. For these a filter in front answers, which is exact: such an
 * access changes neither the order of the set nor anything below it, only the TLB entry's time of last use.
 */
#ifndef VSPROF_CORE_H
#define VSPROF_CORE_H

#include "branch.h"
#include "cache.h"
#include "counters.h"
#include "hot.h"
#include "profile.h"
#include "tlb.h"
#include "uncore.h"
#include "walk.h"

#define FILTER_SETS 64
#define STREAMS 16

/* A run of instructions that is entered at its begin and left at its end. */
struct block {
    uint64_t pc, next, target; /* begin, behind the last instruction, and where a direct branch goes */
    uint64_t first_line, last_line; /* virtual */
    uint32_t instructions;
    uint8_t kind; /* enum branch_kind of the last instruction */
    bool user;
    uint8_t atomics, pauses;
};

struct filter_entry {
    uint64_t line; /* virtual line and address space */
    struct tlb_entry *page;
    uint64_t page_key;
    bool writable; /* modified already: a further store changes nothing */
};

struct stream {
    uint64_t page, last_used;
    int8_t line, direction;
    uint8_t confidence;
};

struct core {
    /* What each access reads comes first. */
    struct counters *now; /* those of the present mode */
    uint64_t space_tag;   /* address space, in the upper bits of a filter's line */
    uint64_t tick;
    struct filter_entry data_filter[FILTER_SETS], code_filter[FILTER_SETS];

    uint64_t retired;
    const struct block *previous; /* the block that ran before */
    enum mode mode;
    bool guest;

    const struct profile *profile;
    struct uncore *uncore;
    uint32_t index;
    struct cache l1i, l1d, l2;
    struct tlb dtlb[PAGE_SIZES], itlb[PAGE_SIZES], stlb, stlb_1g, stlb_code;
    struct walker walker;
    struct address_space space;
    uint32_t generation[256]; /* by address space */
    struct tlb_context context;
    struct predictor predictor;
    struct stream stream[STREAMS];

    uint64_t last_long;  /* `retired` at the last long miss: those near it are in its shadow */
    uint64_t last_value; /* what the last missing load got: an address near it depends on it */
    bool value_known;
    uint64_t walks_failed;

    struct hot *hot;         /* NULL: nobody asks where it happens */
    uint32_t thread;         /* id of the emulated thread that runs */
    uint64_t sample_at;      /* `retired` at which the next block is sampled */
    uint32_t sample_every;

    struct counters counters[MODE_COUNT];
};

bool core_init(struct core *core, const struct profile *profile, struct uncore *uncore, uint32_t index, struct memory memory);
void core_free(struct core *core);

/* The address space changed: CR3 loaded. Outdates all TLB entries of the space but those of global pages. */
void core_new_address_space(struct core *core, const struct address_space *space, uint16_t number);
/* The processor goes on in another address space, whose entries stay valid (VMRUN and back). */
void core_switch_address_space(struct core *core, const struct address_space *space, uint16_t number);
/* All entries of a guest's address space are void (the VMCB's TLB control). */
void core_flush_address_space(struct core *core, uint16_t number);
void core_forget_page(struct core *core, uint64_t address);
/* Forget what is known of the instruction stream: after a flush of blocks, whose memory may be gone. */
void core_forget_blocks(struct core *core);

/* Returns true if a load missed L1D: then tell the value with core_loaded, if it can be known. */
bool core_access_slow(struct core *core, uint64_t address, bool store);
void core_loaded(struct core *core, uint64_t value);
void core_block_slow(struct core *core, const struct block *block);
void core_fetch_slow(struct core *core, uint64_t line);
void core_branch(struct core *core, const struct block *from, uint64_t to);

/* The block that runs is a sample of where instructions are spent; choose when the next is due (`sample_at`). */
void core_sample(struct core *core);

/* For other cores' threads: take `line` away, or make it shared. Returns the state it had here. */
enum line_state core_snooped(struct core *core, uint64_t line, bool take_away);

/* One data access within a line. Returns what core_access_slow does. */
static inline bool core_access(struct core *core, uint64_t address, bool store)
{
    struct filter_entry *entry = &core->data_filter[(address >> LINE_SHIFT) % FILTER_SETS];

    if (store)
        core->now->stores++;
    else
        core->now->loads++;
    if (__builtin_expect(entry->line == (address >> LINE_SHIFT | core->space_tag), 1) &&
        __builtin_expect(entry->page->key == entry->page_key && (!store || entry->writable), 1)) {
        entry->page->stamp = ++core->tick;
        return false;
    }
    return core_access_slow(core, address, store);
}

static inline void core_fetch(struct core *core, uint64_t line)
{
    struct filter_entry *entry = &core->code_filter[line % FILTER_SETS];

    core->now->l1i_fetches++;
    if (__builtin_expect(entry->line == (line | core->space_tag) && entry->page->key == entry->page_key, 1)) {
        entry->page->stamp = ++core->tick;
        return;
    }
    core_fetch_slow(core, line);
}

/* A block is entered. */
static inline void core_block(struct core *core, const struct block *block)
{
    enum mode mode = (enum mode)(core->guest << 1 | block->user);
    const struct block *previous = core->previous;

    if (__builtin_expect(mode != core->mode || block->atomics || block->pauses, 0))
        core_block_slow(core, block);
    if (previous->kind != BRANCH_NONE || block->pc != previous->next)
        core_branch(core, previous, block->pc);
    core->now->instructions += block->instructions;
    core->retired += block->instructions;
    core->previous = block;
    core_fetch(core, block->first_line);
    for (uint64_t line = block->first_line; __builtin_expect(line != block->last_line, 0); line++)
        core_fetch(core, line + 1);
}

#endif
