/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The predictors as their papers draw them: three tables of counters, a table of targets, a pile of return addresses. */
#ifndef VSPROF_TEST_NAIVE_PREDICTOR_H
#define VSPROF_TEST_NAIVE_PREDICTOR_H

#include "branch.h"
#include "check.h"

#define NAIVE_TABLE (1 << 12)

struct naive_predictor {
	int bimodal[NAIVE_TABLE], choice[NAIVE_TABLE], global[NAIVE_TABLE]; /* 0 to 3; from 2 on: taken, or the global one is chosen */
	uint64_t target[NAIVE_TABLE];
	uint32_t bimodal_size, global_size, target_size;
	uint64_t history, history_size;
	uint64_t pile[64]; /* the newest first */
	uint32_t depth;
};

static inline void naive_predictor_init(struct naive_predictor *p, const struct profile *profile)
{
	*p = (struct naive_predictor){
		.bimodal_size = 1u << profile->branch_bimodal_bits,
		.global_size = 1u << profile->branch_global_bits,
		.target_size = 1u << profile->branch_target_bits,
		.history_size = 1ull << profile->branch_history,
		.depth = profile->branch_return_stack,
	};
	CHECK(p->bimodal_size <= NAIVE_TABLE && p->global_size <= NAIVE_TABLE && p->target_size <= NAIVE_TABLE);
	for (int i = 0; i < NAIVE_TABLE; i++)
		p->bimodal[i] = p->choice[i] = p->global[i] = 2;
}

static inline void naive_count(int *counter, bool up)
{
	if (up && *counter < 3)
		++*counter;
	if (!up && *counter > 0)
		--*counter;
}

static inline uint32_t naive_hash(uint64_t pc)
{
	return (uint32_t)(pc ^ pc >> 16);
}

/* Whether the direction of a conditional branch was guessed. */
static inline bool naive_direction(struct naive_predictor *p, uint64_t pc, bool taken)
{
	uint32_t simple = naive_hash(pc) % p->bimodal_size, hashed = (naive_hash(pc) ^ (uint32_t)p->history) % p->global_size;
	bool by_bimodal = p->bimodal[simple] >= 2, by_global = p->global[hashed] >= 2;
	bool guess = p->choice[simple] >= 2 ? by_global : by_bimodal;

	if (by_bimodal != by_global)
		naive_count(&p->choice[simple], by_global == taken);
	naive_count(&p->bimodal[simple], taken);
	naive_count(&p->global[hashed], taken);
	p->history = (p->history * 2 + taken) % p->history_size;
	return guess == taken;
}

static inline void naive_push(struct naive_predictor *p, uint64_t next)
{
	for (uint32_t i = p->depth - 1; i > 0; i--)
		p->pile[i] = p->pile[i - 1];
	p->pile[0] = next;
}

/* What is taken from a pile goes to its bottom, where a ring finds it again when more returns than calls are seen. */
static inline uint64_t naive_pop(struct naive_predictor *p)
{
	uint64_t top = p->pile[0];

	for (uint32_t i = 1; i < p->depth; i++)
		p->pile[i - 1] = p->pile[i];
	p->pile[p->depth - 1] = top;
	return top;
}

static inline bool naive_resolve(struct naive_predictor *p, enum branch_kind kind, uint64_t pc, uint64_t next, uint64_t to)
{
	if (kind == BRANCH_CALL || kind == BRANCH_INDIRECT_CALL)
		naive_push(p, next);
	if (kind == BRANCH_RETURN)
		return naive_pop(p) % 4096 == to % 4096; /* by its place in the page */
	if (kind != BRANCH_INDIRECT && kind != BRANCH_INDIRECT_CALL)
		return true;
	uint64_t *target = &p->target[(naive_hash(pc) ^ (uint32_t)p->history * 0x9e37u) % p->target_size];
	bool right = *target == to;
	*target = to;
	p->history = ((p->history << 2) ^ naive_hash(to >> 2)) % p->history_size;
	return right;
}

#endif
