/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Branch prediction: a tournament of a bimodal and a global-history predictor for directions (McFarling, "Combining Branch
 * Predictors", 1993), a history-hashed table of targets for indirect jumps and calls, a stack of return addresses.
 * Real predictors of the modelled processors are unpublished and better; the model says so in its page.
 */
#ifndef VSPROF_BRANCH_H
#define VSPROF_BRANCH_H

#include <stdbool.h>
#include <stdint.h>

#include "profile.h"

enum branch_kind {
	BRANCH_NONE, /* the block just ends: control goes on behind it */
	BRANCH_CONDITIONAL,
	BRANCH_JUMP,     /* direct */
	BRANCH_CALL,     /* direct */
	BRANCH_INDIRECT, /* jump */
	BRANCH_INDIRECT_CALL,
	BRANCH_RETURN,
	BRANCH_REPEAT, /* a string instruction that repeats: it may be left, and entered again, before it is done */
	BRANCH_OTHER   /* system call, IRET…: nothing that a predictor predicts */
};

struct predictor {
	uint8_t *local_next, *global_next; /* entries of the branch that comes next */
	uint8_t *local;                    /* by address: bits 0-1 the bimodal counter, bits 2-3 that which chooses */
	uint8_t *global;                   /* by address and history: a two-bit counter, in bits 4-5 */
	uint32_t local_mask, global_mask, history_mask, history;
	/*
	 * What two counters and an outcome lead to: indexed by local | global | taken << 6, it gives the new ones in the same places,
	 * and in bit 6 whether the guess was right. One look-up in the place of branches: what a predictor sees is hard to predict for
	 * the processor that runs it, too.
	 */
	uint8_t step[128];
	uint64_t *targets;
	uint32_t target_mask;
	uint32_t stack_size, stack_top;
	uint64_t stack[64];
};

bool predictor_init(struct predictor *predictor, const struct profile *profile);
void predictor_free(struct predictor *predictor);

/*
 * A control transfer other than a conditional branch: at `pc` (address of its block) of `kind`, it went to `to`; behind it the
 * code goes on at `next`. Returns whether it had been predicted, and learns.
 */
bool predictor_resolve(struct predictor *predictor, enum branch_kind kind, uint64_t pc, uint64_t next, uint64_t to);

static inline uint32_t predictor_hash(uint64_t pc)
{
	return (uint32_t)(pc ^ pc >> 16);
}

/*
 * The block at `pc`, which ends in a conditional branch, is entered: its entries are asked for now, to be at hand when control leaves
 * it. No other branch may come between.
 */
static inline void predictor_look(struct predictor *p, uint64_t pc)
{
	uint32_t hash = predictor_hash(pc);

	p->local_next = &p->local[hash & p->local_mask];
	p->global_next = &p->global[(hash ^ p->history) & p->global_mask];
	__builtin_prefetch(p->local_next, 1);
	__builtin_prefetch(p->global_next, 1);
}

/* It was taken or not: whether that had been predicted. */
static inline bool predictor_resolve_direction(struct predictor *p, bool taken)
{
	uint8_t *local = p->local_next, *global = p->global_next, step = p->step[*local | *global | taken << 6];

	*local = step & 15;
	*global = step & 48;
	p->history = (p->history << 1 | taken) & p->history_mask;
	return step >> 6;
}

#endif
