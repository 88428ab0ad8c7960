/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const keys[] = {
#define X(field, key) key,
	PROFILE_KEYS(X)
#undef X
};
enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]) };
_Static_assert(sizeof(struct profile) == KEY_COUNT * sizeof(uint32_t), "a profile is filled as an array");

static int key_number(const char *key)
{
	for (int i = 0; i < KEY_COUNT; i++)
		if (strcmp(keys[i], key) == 0)
			return i;
	return -1;
}

static bool is_power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

/* A cache or TLB of `ways` ways; returns what is wrong with it, or NULL. */
static const char *check_shape(uint32_t entries, uint32_t ways)
{
	if (entries == 0)
		return NULL;
	if (ways == 0 || ways > 4096 || entries % ways)
		return "the ways must divide the entries";
	if (!is_power_of_two(entries / ways))
		return "the number of sets must be a power of two";
	return NULL;
}

static int check(const struct profile *p, char *error, size_t size)
{
	const struct {
		const char *key;
		uint32_t entries, ways;
		bool required;
	} shapes[] = {
		{"l1i", p->l1i_sets * p->l1i_ways, p->l1i_ways, true},
		{"l1d", p->l1d_sets * p->l1d_ways, p->l1d_ways, true},
		{"l2", p->l2_sets * p->l2_ways, p->l2_ways, true},
		{"dtlb.4k", p->dtlb_4k_entries, p->dtlb_4k_ways, true},
		{"dtlb.2m", p->dtlb_2m_entries, p->dtlb_2m_ways, true},
		{"dtlb.1g", p->dtlb_1g_entries, p->dtlb_1g_ways, false},
		{"itlb.4k", p->itlb_4k_entries, p->itlb_4k_ways, true},
		{"itlb.2m", p->itlb_2m_entries, p->itlb_2m_ways, true},
		{"stlb", p->stlb_entries, p->stlb_ways, true},
		{"stlb.1g", p->stlb_1g_entries, p->stlb_1g_ways, false},
		{"stlb.code", p->stlb_code_entries, p->stlb_code_ways, false},
	};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		const char *wrong =
			shapes[i].required && !shapes[i].entries ? "must not be empty" : check_shape(shapes[i].entries, shapes[i].ways);
		if (wrong)
			return snprintf(error, size, "%s: %s", shapes[i].key, wrong), -1;
	}
	/* The filter before L1 is indexed by virtual address: index bits must lie in the page offset, as they do in hardware. */
	if (p->l1d_sets > 64 || p->l1i_sets > 64)
		return snprintf(error, size, "%s: at most 64 sets", p->l1d_sets > 64 ? "l1d.sets" : "l1i.sets"), -1;
	const uint32_t latencies[] = {p->l2_latency, p->llc_latency, p->llc_latency_shared, p->llc_latency_modified,
		p->memory_latency_local, p->memory_latency_remote, p->memory_latency_remote_cache};
	for (size_t i = 0; i < sizeof(latencies) / sizeof(latencies[0]); i++)
		if (latencies[i] < p->l1d_latency)
			return snprintf(error, size, "l2.latency, llc.latency*, memory.latency*: less than l1d.latency"), -1;
	if (!p->llc_sets || !p->llc_ways || p->llc_ways > 64)
		return snprintf(error, size, "llc.sets, llc.ways: need at least one set and 1 to 64 ways"), -1;
	if (p->llc_policy > LLC_VICTIM)
		return snprintf(error, size, "llc.policy: 0, 1 or 2, not %u", p->llc_policy), -1;
	if (!p->core_width || !p->core_rob || !p->core_call_cycles || !p->core_taken_permille)
		return snprintf(error, size, "core.width, core.rob, core.call_cycles, core.taken_permille: must not be 0"), -1;
	if (p->core_exposed_l2_permille > 1000 || p->core_overlap_permille > 1000 || p->walk_exposed_permille > 1000 ||
		p->core_chain_permille > 1000)
		return snprintf(error, size,
			       "core.chain_permille, core.exposed_l2_permille, core.overlap_permille, walk.exposed_permille: at most 1000"),
		       -1;
	if (!p->cost_repeat_bytes || !p->core_vector_store_permille)
		return snprintf(error, size, "cost.repeat_bytes, core.vector_store_permille: must not be 0"), -1;
	if (p->branch_history > 32 || p->branch_bimodal_bits > 20 || p->branch_global_bits > 20 || p->branch_target_bits > 20)
		return snprintf(error, size, "branch: at most 32 bits of history and 2^20 entries a table"), -1;
	if (p->branch_return_stack == 0 || p->branch_return_stack > 64)
		return snprintf(error, size, "branch.return_stack: 1 to 64"), -1;
	if (p->walk_pde_entries > 64 || p->walk_pdpte_entries > 64 || p->walk_pml4e_entries > 64 || p->walk_nested_entries > 128)
		return snprintf(error, size, "walk: at most 64 entries a paging-structure cache, 128 nested"), -1;
	return 0;
}

static int parse_line(char *line, struct profile *profile, bool *seen, char *error, size_t size)
{
	char *space = strchr(line, ' '), *end;

	if (!space)
		return snprintf(error, size, "%s: no value", line), -1;
	*space = '\0';
	int number = key_number(line);
	if (number < 0)
		return snprintf(error, size, "%s: no such key", line), -1;
	if (seen[number])
		return snprintf(error, size, "%s: given twice", line), -1;
	errno = 0;
	unsigned long value = strtoul(space + 1, &end, 10);
	if (end == space + 1 || *end || errno || value > UINT32_MAX || space[1] == '-')
		return snprintf(error, size, "%s: %s is no whole number", line, space + 1), -1;
	seen[number] = true;
	((uint32_t *)profile)[number] = (uint32_t)value;
	return 0;
}

int profile_parse(const char *text, struct profile *profile, char *error, size_t size)
{
	bool seen[KEY_COUNT] = {false};
	char *copy = strdup(text), *rest = copy;
	int result = copy ? 0 : -1;

	if (!copy)
		snprintf(error, size, "no memory");
	for (char *line; !result && (line = strsep(&rest, "\n"));)
		if (*line && *line != '#')
			result = parse_line(line, profile, seen, error, size);
	for (int i = 0; !result && i < KEY_COUNT; i++)
		if (!seen[i])
			result = (snprintf(error, size, "%s: missing", keys[i]), -1);
	free(copy);
	return result ? result : check(profile, error, size);
}
