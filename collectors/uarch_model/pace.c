/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pace.h"

#include "decode.h"

#define NO_CODE UINT64_MAX

uint32_t pace_of_line(const struct profile *profile, uint32_t ops)
{
	uint32_t flow = ops * CHAIN_PART / profile->core_width, groups = profile->core_line_ops;

	if (!groups || ops <= groups)
		return flow;
	uint32_t delivered = CHAIN_PART * (1 + (ops - 1) / groups * profile->core_line_cycles);
	return delivered > flow ? delivered : flow;
}

static uint32_t slow_cycles(const struct profile *p, enum slow slow)
{
	const uint32_t cycles[] = {
		[SLOW_NONE] = 0,
		[SLOW_RDTSC] = p->cost_rdtsc,
		/* It waits for what is before it, as LFENCE does. */
		[SLOW_RDTSCP] = p->cost_rdtsc + p->cost_lfence,
		[SLOW_LFENCE] = p->cost_lfence,
		[SLOW_MFENCE] = p->cost_mfence,
		[SLOW_POPF] = p->cost_popf,
		[SLOW_XSAVE] = p->cost_xsave,
		[SLOW_XRSTOR] = p->cost_xrstor,
		[SLOW_WRFSBASE] = p->cost_wrfsbase,
	};

	return cycles[slow];
}

void pace_begin(struct pace *pace, const struct profile *profile)
{
	pace->profile = profile;
	pace->slow = pace->ops = pace->delivery = 0;
	pace->line = NO_CODE;
	chain_begin(&pace->chain);
}

void pace_add(struct pace *pace, uint64_t pc, const uint8_t *bytes, size_t length)
{
	if (pc >> LINE_SHIFT != pace->line) {
		pace->delivery += pace_of_line(pace->profile, pace->ops);
		pace->line = pc >> LINE_SHIFT;
		pace->ops = 0;
	}
	pace->ops++;
	pace->slow += slow_cycles(pace->profile, decode(bytes, length).slow);
	chain_add(&pace->chain, bytes, length);
}

static uint16_t parts(uint64_t parts)
{
	return parts > UINT16_MAX ? UINT16_MAX : (uint16_t)parts;
}

static uint64_t width_of(const struct pace *pace, const struct block *block)
{
	return (uint64_t)(block->instructions - block->fused) * CHAIN_PART / pace->profile->core_width;
}

/*
 * As long as the core's width lets instructions through, two that are fused as one, or the front end delivers them; and a part of what
 * the longest chain takes beyond. The rest of that chain other blocks hide. Slow instructions are not in it.
 */
static uint64_t flow_without_slow(const struct pace *pace, const struct block *block)
{
	const struct profile *p = pace->profile;
	uint64_t flow = width_of(pace, block), delivery = pace->delivery + pace_of_line(p, pace->ops - block->fused);
	uint64_t slow = (uint64_t)pace->slow * CHAIN_PART, waits = (uint64_t)chain_once(&pace->chain, p) * CHAIN_PART;

	flow = delivery > flow ? delivery : flow;
	return flow + (waits > flow + slow ? (waits - flow - slow) * p->core_chain_permille / 1000 : 0);
}

/* Beside slow instructions nothing else begins, so they come on top and spare nothing. */
static uint8_t spare_of(const struct pace *pace, const struct block *block)
{
	uint64_t spare = (flow_without_slow(pace, block) - width_of(pace, block)) * SPARE_PART / CHAIN_PART;

	return spare > UINT8_MAX ? UINT8_MAX : (uint8_t)spare;
}

/* What a loop in one block takes longer each time round than its flow. */
static uint16_t round_of(const struct pace *pace, const struct block *block)
{
	uint64_t takes = (uint64_t)chain_cycles(&pace->chain, pace->profile) * CHAIN_PART / CHAIN_ROUNDS;

	return takes <= block->flow ? 0 : parts(takes - block->flow);
}

static uint8_t resolve_of(const struct pace *pace, const struct block *block)
{
	uint32_t known = chain_condition(&pace->chain, pace->profile), flow = block->flow / CHAIN_PART;

	return known <= flow ? 0 : known - flow > UINT8_MAX ? UINT8_MAX : (uint8_t)(known - flow);
}

void pace_end(const struct pace *pace, struct block *block)
{
	block->flow = parts(flow_without_slow(pace, block) + (uint64_t)pace->slow * CHAIN_PART);
	block->spare = spare_of(pace, block);
	if (block->kind != BRANCH_CONDITIONAL)
		return;
	block->resolve = resolve_of(pace, block);
	if (block->target == block->pc)
		block->chain = round_of(pace, block);
}
