/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What bounds a loop, however wide the processor is: above all the longest chain of dependent instructions that it carries from one
 * time round to the next. In max-plus algebra it is the greatest mean weight of a cycle of the loop's dependences (Cochet-Terrasson
 * and others, "Numerical computation of spectral elements in max-plus algebra", 1998); here it is what several times round add up to.
 */
#ifndef VSPROF_CHAIN_H
#define VSPROF_CHAIN_H

#include "effect.h"
#include "profile.h"

#define CHAIN_MOST 512 /* instructions of a loop: as many as QEMU puts into a block */

struct chain {
	uint32_t count, vector_stores;
	bool known; /* false: some instruction is not in the table, so what the loop waits for is not known */
	struct effect effect[CHAIN_MOST];
};

void chain_begin(struct chain *chain);
void chain_add(struct chain *chain, const uint8_t *bytes, size_t length);
/* Cycles of the longest chain of one time through, with all that it needs at hand; of instructions in the table. */
uint32_t chain_once(const struct chain *chain, const struct profile *profile);
/* The same until the flags are known that it leaves behind, by which a conditional branch at its end goes. */
uint32_t chain_condition(const struct chain *chain, const struct profile *profile);
/* Cycles of CHAIN_ROUNDS times round; 0 if it is not known. */
#define CHAIN_ROUNDS 12 /* so that chains that come to the same register only each second, third or fourth time count as they are */
uint32_t chain_cycles(const struct chain *chain, const struct profile *profile);

#endif
