/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "branch.h"

#include <stdlib.h>
#include <string.h>

#define WEAKLY_TAKEN 2

/* A two-bit counter, one up or down. */
static int learn(int counter, int up)
{
	return up ? counter + (counter < 3) : counter - (counter > 0);
}

static void fill_steps(uint8_t step[128])
{
	for (int i = 0; i < 128; i++) {
		int simple = i & 3, choice = i >> 2 & 3, global = i >> 4 & 3, taken = i >> 6;
		int guess = (choice >= 2 ? global : simple) >= 2;
		/* Who chooses learns from a disagreement alone. */
		if ((simple >= 2) != (global >= 2))
			choice = learn(choice, (global >= 2) == taken);
		step[i] = (uint8_t)(learn(simple, taken) | choice << 2 | learn(global, taken) << 4 | (guess == taken) << 6);
	}
}

bool predictor_init(struct predictor *p, const struct profile *profile)
{
	memset(p, 0, sizeof(*p));
	fill_steps(p->step);
	p->local_mask = (1u << profile->branch_bimodal_bits) - 1;
	p->global_mask = (1u << profile->branch_global_bits) - 1;
	p->target_mask = (1u << profile->branch_target_bits) - 1;
	p->history_mask = profile->branch_history >= 32 ? UINT32_MAX : (1u << profile->branch_history) - 1;
	p->stack_size = profile->branch_return_stack;
	p->local = malloc(p->local_mask + 1u);
	p->global = malloc(p->global_mask + 1u);
	p->targets = calloc(p->target_mask + 1u, sizeof(uint64_t));
	if (!p->local || !p->global || !p->targets) {
		predictor_free(p);
		return false;
	}
	memset(p->local, WEAKLY_TAKEN | WEAKLY_TAKEN << 2, p->local_mask + 1u);
	memset(p->global, WEAKLY_TAKEN << 4, p->global_mask + 1u);
	predictor_look(p, 0);
	return true;
}

void predictor_free(struct predictor *p)
{
	free(p->local);
	free(p->global);
	free(p->targets);
	p->local = p->global = NULL;
	p->targets = NULL;
}

static bool resolve_target(struct predictor *p, uint64_t pc, uint64_t to)
{
	uint64_t *target = &p->targets[(predictor_hash(pc) ^ p->history * 0x9e37u) & p->target_mask];
	bool right = *target == to;

	*target = to;
	p->history = (p->history << 2 ^ predictor_hash(to >> 2)) & p->history_mask;
	return right;
}

static void push(struct predictor *p, uint64_t next)
{
	p->stack_top = p->stack_top + 1 == p->stack_size ? 0 : p->stack_top + 1;
	p->stack[p->stack_top] = next;
}

static uint64_t pop(struct predictor *p)
{
	uint64_t next = p->stack[p->stack_top];

	p->stack_top = p->stack_top == 0 ? p->stack_size - 1 : p->stack_top - 1;
	return next;
}

bool predictor_resolve(struct predictor *p, enum branch_kind kind, uint64_t pc, uint64_t next, uint64_t to)
{
	switch (kind) {
	case BRANCH_CALL:
		push(p, next);
		return true;
	case BRANCH_INDIRECT:
		return resolve_target(p, pc, to);
	case BRANCH_INDIRECT_CALL:
		push(p, next);
		return resolve_target(p, pc, to);
	case BRANCH_RETURN:
		/* By its place in the page: see SAME_PLACE in core.h. */
		return ((pop(p) ^ to) & 0xfff) == 0;
	default:
		return true;
	}
}
