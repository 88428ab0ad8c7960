/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "branch.h"

#include <stdlib.h>
#include <string.h>

#define WEAKLY_TAKEN 2

bool predictor_init(struct predictor *p, const struct profile *profile)
{
    memset(p, 0, sizeof(*p));
    p->bimodal_mask = (1u << profile->branch_bimodal_bits) - 1;
    p->global_mask = (1u << profile->branch_global_bits) - 1;
    p->target_mask = (1u << profile->branch_target_bits) - 1;
    p->history_mask = profile->branch_history >= 32 ? UINT32_MAX : (1u << profile->branch_history) - 1;
    p->stack_size = profile->branch_return_stack;
    p->bimodal = malloc(p->bimodal_mask + 1u);
    p->global = malloc(p->global_mask + 1u);
    p->chooser = malloc(p->bimodal_mask + 1u);
    p->targets = calloc(p->target_mask + 1u, sizeof(uint64_t));
    if (!p->bimodal || !p->global || !p->chooser || !p->targets)
        return predictor_free(p), false;
    memset(p->bimodal, WEAKLY_TAKEN, p->bimodal_mask + 1u);
    memset(p->global, WEAKLY_TAKEN, p->global_mask + 1u);
    memset(p->chooser, WEAKLY_TAKEN, p->bimodal_mask + 1u);
    return true;
}

void predictor_free(struct predictor *p)
{
    free(p->bimodal);
    free(p->global);
    free(p->chooser);
    free(p->targets);
    p->bimodal = p->global = p->chooser = NULL;
    p->targets = NULL;
}

static uint32_t hash(uint64_t pc)
{
    return (uint32_t)(pc ^ pc >> 16);
}

/* Step a two-bit counter up or down, without a branch of our own to mispredict. */
static uint8_t learn(uint8_t counter, bool up)
{
    return up ? counter + (counter < 3) : counter - (counter > 0);
}

static bool resolve_direction(struct predictor *p, uint64_t pc, bool taken)
{
    uint32_t at = hash(pc) & p->bimodal_mask, mixed = (hash(pc) ^ p->history) & p->global_mask;
    bool simple = p->bimodal[at] >> 1, global = p->global[mixed] >> 1;
    bool guess = p->chooser[at] >> 1 ? global : simple;

    if (simple != global)
        p->chooser[at] = learn(p->chooser[at], global == taken);
    p->bimodal[at] = learn(p->bimodal[at], taken);
    p->global[mixed] = learn(p->global[mixed], taken);
    p->history = (p->history << 1 | taken) & p->history_mask;
    return guess == taken;
}

static bool resolve_target(struct predictor *p, uint64_t pc, uint64_t to)
{
    uint64_t *target = &p->targets[(hash(pc) ^ p->history * 0x9e37u) & p->target_mask];
    bool right = *target == to;

    *target = to;
    p->history = (p->history << 2 ^ hash(to >> 2)) & p->history_mask;
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

bool predictor_resolve(struct predictor *p, enum branch_kind kind, uint64_t pc, uint64_t next, uint64_t to, bool taken)
{
    switch (kind) {
    case BRANCH_CONDITIONAL:
        return resolve_direction(p, pc, taken);
    case BRANCH_CALL:
        push(p, next);
        return true;
    case BRANCH_INDIRECT:
        return resolve_target(p, pc, to);
    case BRANCH_INDIRECT_CALL:
        push(p, next);
        return resolve_target(p, pc, to);
    case BRANCH_RETURN:
        return pop(p) == to;
    default:
        return true;
    }
}
