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
    BRANCH_NONE,        /* the block just ends: control goes on behind it */
    BRANCH_CONDITIONAL,
    BRANCH_JUMP,        /* direct */
    BRANCH_CALL,        /* direct */
    BRANCH_INDIRECT,    /* jump */
    BRANCH_INDIRECT_CALL,
    BRANCH_RETURN,
    BRANCH_OTHER        /* system call, IRET, HLT…: nothing that a predictor predicts */
};

struct predictor {
    uint8_t *bimodal, *global, *chooser; /* two-bit counters */
    uint64_t *targets;
    uint32_t bimodal_mask, global_mask, target_mask, history_mask;
    uint32_t history;
    uint32_t stack_size, stack_top;
    uint64_t stack[64];
};

bool predictor_init(struct predictor *predictor, const struct profile *profile);
void predictor_free(struct predictor *predictor);

/*
 * A control transfer at `pc` (address of its block) of `kind` went to `to`; behind it the code goes on at `next`; `taken` is
 * for conditional ones. Returns whether it had been predicted, and learns.
 */
bool predictor_resolve(struct predictor *predictor, enum branch_kind kind, uint64_t pc, uint64_t next, uint64_t to, bool taken);

#endif
