/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a block takes where nothing misses: what the core's width, the lines of code that it lies in, its slow instructions and its
 * chains of dependent ones make of it. Found once, when the block is translated.
 */
#ifndef VSPROF_PACE_H
#define VSPROF_PACE_H

#include "chain.h"
#include "core.h"
#include "profile.h"

struct pace {
	const struct profile *profile;
	uint32_t slow;     /* cycles of instructions beside which hardly another runs */
	uint64_t line;     /* of code: the one that the last instruction begins in */
	uint32_t ops;      /* of that line */
	uint32_t delivery; /* CHAIN_PARTs that the front end takes for the lines before it */
	struct chain chain;
};

void pace_begin(struct pace *pace, const struct profile *profile);
/* The block's next instruction, which lies at `pc`. */
void pace_add(struct pace *pace, uint64_t pc, const uint8_t *bytes, size_t length);
/* All of them are known: sets the block's flow, spare, chain and resolve. Its other fields must be set. */
void pace_end(const struct pace *pace, struct block *block);

/*
 * CHAIN_PARTs that the front end takes for `ops` of one line of code. Where a line has more than the cache of decoded instructions
 * delivers at once (core.line_ops; 0: as many as there are), each further group of them takes core.line_cycles.
 */
uint32_t pace_of_line(const struct profile *profile, uint32_t ops);

#endif
