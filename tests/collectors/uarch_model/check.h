/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the unit tests of the processor model share: checks that say where they failed, random numbers, a profile. */
#ifndef VSPROF_TEST_CHECK_H
#define VSPROF_TEST_CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile.h"

#define CHECK(condition)                                                                        \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                                \
		}                                                                               \
	} while (0)

#define EQUAL(found, expected) check_equal((uint64_t)(found), (uint64_t)(expected), __FILE__, __LINE__, #found)

static inline void check_equal(uint64_t found, uint64_t expected, const char *file, int line, const char *what)
{
	if (found == expected)
		return;
	fprintf(stderr, "%s:%d: %s is %" PRIu64 " (0x%" PRIx64 "), not %" PRIu64 " (0x%" PRIx64 ")\n", file, line, what, found, found,
		expected, expected);
	exit(1);
}

/* The same sequence everywhere: Knuth's MMIX generator, of whose bits the upper ones are good. */
struct random {
	uint64_t state;
};

static inline uint32_t random_below(struct random *random, uint32_t limit)
{
	random->state = random->state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(((random->state >> 32) * limit) >> 32);
}

/* True once in `n`. */
static inline bool random_once_in(struct random *random, uint32_t n)
{
	return random_below(random, n) == 0;
}

/* Round numbers and no prefetchers, so that expected values can be worked out by hand. */
static inline struct profile default_profile(void)
{
	return (struct profile){
		.core_width = 4,
		.core_rob = 100,
		.core_mispredict = 20,
		.core_fetch_ahead = 0,
		.core_call_cycles = 1,
		.core_taken_permille = 1000,
		.core_chain_permille = 200,
		.core_exposed_l2_permille = 500,
		.core_overlap_permille = 250,
		.core_vector_store_permille = 1000,
		.l1i_sets = 64,
		.l1i_ways = 8,
		.l1i_latency = 4,
		.l1d_sets = 64,
		.l1d_ways = 8,
		.l1d_latency = 4,
		.l1d_fill_buffers = 10,
		.l2_sets = 512,
		.l2_ways = 8,
		.l2_latency = 14,
		.llc_sets = 3 * 512,
		.llc_ways = 16,
		.llc_latency = 54,
		.llc_policy = LLC_NON_INCLUSIVE,
		.llc_latency_shared = 84,
		.llc_latency_modified = 104,
		.memory_latency_local = 204,
		.memory_latency_remote = 304,
		.memory_latency_remote_cache = 254,
		.dtlb_4k_entries = 64,
		.dtlb_4k_ways = 4,
		.dtlb_2m_entries = 32,
		.dtlb_2m_ways = 4,
		.dtlb_1g_entries = 4,
		.dtlb_1g_ways = 4,
		.itlb_4k_entries = 128,
		.itlb_4k_ways = 4,
		.itlb_2m_entries = 8,
		.itlb_2m_ways = 8,
		.stlb_entries = 1024,
		.stlb_ways = 8,
		.stlb_latency = 8,
		.stlb_1g_entries = 16,
		.stlb_1g_ways = 4,
		.walk_pde_entries = 32,
		.walk_pdpte_entries = 4,
		.walk_pml4e_entries = 2,
		.walk_nested_entries = 16,
		.walk_fixed = 10,
		.walk_exposed_permille = 500,
		.branch_history = 12,
		.branch_bimodal_bits = 12,
		.branch_global_bits = 12,
		.branch_target_bits = 10,
		.branch_return_stack = 16,
		.cost_kernel_entry = 200,
		.cost_interrupt = 300,
		.cost_ipi = 700,
		.cost_vm_entry = 1000,
		.cost_atomic = 18,
		.cost_pause = 40,
		.cost_apic = 90,
		.cost_mmio = 1500,
		.cost_mmio_write = 160,
		.cost_port_io = 2500,
		.cost_repeat_short_bytes = 64,
		.cost_repeat_short = 14,
		.cost_repeat_start = 24,
		.cost_repeat_bytes = 32,
		.model_page_walks = 1,
		.model_branches = 1,
		.model_coherence = 1,
	};
}

#endif
