/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#include "core_parts.h"

#define ALL_TLBS(core)                                                                                                              \
	{&(core)->dtlb[0], &(core)->dtlb[1], &(core)->dtlb[2], &(core)->itlb[0], &(core)->itlb[1], &(core)->itlb[2], &(core)->stlb, \
		&(core)->stlb_1g, &(core)->stlb_code}

static const struct block nowhere = {.kind = BRANCH_OTHER, .length = 1};

static bool init_tlbs(struct core *core, const struct profile *p)
{
	return tlb_init(&core->dtlb[PAGE_4K], p->dtlb_4k_entries, p->dtlb_4k_ways) &&
	       tlb_init(&core->dtlb[PAGE_2M], p->dtlb_2m_entries, p->dtlb_2m_ways) &&
	       tlb_init(&core->dtlb[PAGE_1G], p->dtlb_1g_entries, p->dtlb_1g_ways) &&
	       tlb_init(&core->itlb[PAGE_4K], p->itlb_4k_entries, p->itlb_4k_ways) &&
	       tlb_init(&core->itlb[PAGE_2M], p->itlb_2m_entries, p->itlb_2m_ways) && tlb_init(&core->itlb[PAGE_1G], 0, 0) &&
	       tlb_init(&core->stlb, p->stlb_entries, p->stlb_ways) && tlb_init(&core->stlb_1g, p->stlb_1g_entries, p->stlb_1g_ways) &&
	       tlb_init(&core->stlb_code, p->stlb_code_entries, p->stlb_code_ways);
}

struct core *core_new(void)
{
	struct core *core = aligned_alloc(_Alignof(struct core), sizeof(*core));

	if (core)
		memset(core, 0, sizeof(*core));
	return core;
}

bool core_init(struct core *core, const struct profile *profile, struct uncore *uncore, uint32_t index, struct memory memory)
{
	memset(core, 0, sizeof(*core));
	core->profile = profile;
	core->uncore = uncore;
	core->index = index;
	core->now = &core->counters[HOST_KERNEL];
	core->previous = &nowhere;
	for (int i = 0; i < 256; i++)
		core->generation[i] = 1;
	core->context.generation = 1;
	core->no_page.key = TLB_EMPTY;
	core->way = UNKNOWN_WAY;
	core->branches_modelled = profile->model_branches;
	core->last_long = core->last_near = (uint64_t)-1 << 32;
	core->awaited = NO_LINE;
	core->spin_ticks = SPIN_TICKS;
	core->sample_at = core->sample_due = core->steered_at = UINT64_MAX;
	walker_init(&core->walker, profile, memory);
	filters_clear(core);
	core->l1i_filtered = calloc((size_t)profile->l1i_sets * profile->l1i_ways, sizeof(uint16_t));
	core->l1d_filtered = calloc((size_t)profile->l1d_sets * profile->l1d_ways, sizeof(uint16_t));
	core->l1d_there = calloc((size_t)profile->l1d_sets * profile->l1d_ways, sizeof(uint64_t));
	return core->l1i_filtered && core->l1d_filtered && core->l1d_there &&
	       cache_init(&core->l1i, profile->l1i_sets, profile->l1i_ways) &&
	       cache_init(&core->l1d, profile->l1d_sets, profile->l1d_ways) && cache_init(&core->l2, profile->l2_sets, profile->l2_ways) &&
	       init_tlbs(core, profile) && predictor_init(&core->predictor, profile);
}

void core_free(struct core *core)
{
	free(core->l1i_filtered);
	free(core->l1d_filtered);
	free(core->l1d_there);
	cache_free(&core->l1i);
	cache_free(&core->l1d);
	cache_free(&core->l2);
	for (int i = 0; i < PAGE_SIZES; i++) {
		tlb_free(&core->dtlb[i]);
		tlb_free(&core->itlb[i]);
	}
	tlb_free(&core->stlb);
	tlb_free(&core->stlb_1g);
	tlb_free(&core->stlb_code);
	predictor_free(&core->predictor);
}

void core_sample(struct core *core)
{
	/* Not at equal distances, or a loop of that length would be sampled in one place: +- half, by a linear congruential step. */
	uint32_t random = (uint32_t)(core->sample_due * 1103515245u + 12345u) >> 8;

	core->sample_at = core->sample_due;
	if (core->retired < core->sample_due)
		return;
	core->sample_at = core->sample_due = core->retired + core->sample_every / 2 + random % (core->sample_every + 1);
	core_mark(core, HOT_samples);
}

/* Address spaces. */

void core_switch_address_space(struct core *core, const struct address_space *space, uint16_t number)
{
	core->space = *space;
	core->context.space = number;
	core->context.generation = core->generation[number & 255];
	core->space.tag = (uint32_t)(number & 0xfff) << 16 | (core->context.generation & 0xffff);
	core->space_tag = (uint64_t)number << SPACE_SHIFT;
}

static void outdate(struct core *core, uint16_t number)
{
	/* The walker's tags have 16 bits of the generation: what is left of the last one of that number must go. */
	if (!(++core->generation[number & 255] & 0xffff))
		walker_clear(&core->walker);
}

void core_flush_address_space(struct core *core, uint16_t number)
{
	struct tlb *all[] = ALL_TLBS(core);

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		tlb_forget_space(all[i], number);
	walker_forget_guest(&core->walker, number);
	outdate(core, number);
	filters_clear(core);
}

void core_new_address_space(struct core *core, const struct address_space *space, uint16_t number)
{
	outdate(core, number);
	/* The kernel's pages are global: most of what the filters know stays true. */
	for (int size = 0; size < PAGE_SIZES; size++) {
		filter_forget_space(core->data_filter, &core->dtlb[size], number);
		filter_forget_space(core->code_filter, &core->itlb[size], number);
	}
	filters_clear_pages(core);
	core_switch_address_space(core, space, number);
}

void core_forget_page(struct core *core, uint64_t address)
{
	struct tlb *all[] = ALL_TLBS(core);

	filter_forget_page(core->data_filter, core->dtlb, address, core->context);
	filter_forget_page(core->code_filter, core->itlb, address, core->context);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		tlb_forget(all[i], address, core->context);
	/* The tables above the page may be others now. */
	walker_forget_tables(&core->walker, core->space.tag);
	filters_clear_pages(core);
}

void core_flush_all(struct core *core)
{
	struct tlb *all[] = ALL_TLBS(core);

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		tlb_clear(all[i]);
	walker_clear(&core->walker);
	filters_clear(core);
}

void core_enter(struct core *core, bool guest)
{
	core->guest = guest;
	core->way = UNKNOWN_WAY;
	if (core->calls)
		calls_enter_side(core->calls, guest);
}

void core_forget_blocks(struct core *core)
{
	core->previous = &nowhere;
	core->device_block = NULL;
}

uint64_t core_cycles(const struct core *core)
{
	uint64_t cycles = core->flow / CHAIN_PART;

	for (int mode = 0; mode < MODE_COUNT; mode++) {
		const struct counters *c = &core->counters[mode];
		cycles += c->stall_l2 + c->stall_llc + c->stall_memory + c->stall_frontend + c->stall_dtlb + c->stall_itlb +
			  c->stall_branch + c->stall_mode + c->repeat_cycles + c->chain_cycles;
	}
	return cycles;
}
