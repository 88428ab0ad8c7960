/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plug-in's reader of profiles: each value in its field, and what is out of range. test_profiles.py tries whole profiles. */
#include <string.h>

#include "check.h"

static const char *const keys[] = {
#define X(field, key) key,
	PROFILE_KEYS(X)
#undef X
};
#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))

static char text[1 << 14];

static void write_profile(const struct profile *profile)
{
	const uint32_t *value = (const uint32_t *)profile;
	size_t at = (size_t)snprintf(text, sizeof(text), "# a comment\n\n");

	for (size_t i = 0; i < KEY_COUNT; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %u\n", keys[i], value[i]);
}

static void every_value_finds_its_field(void)
{
	struct profile given = default_profile(), found;
	char error[100];

	write_profile(&given);
	EQUAL(profile_parse(text, &found, error, sizeof(error)), 0);
	CHECK(!memcmp(&given, &found, sizeof(found)));
	/* In whatever order. */
	char *last = strrchr(text, '\n');
	*last = '\0';
	char *line = strrchr(text, '\n'), moved[sizeof(text)];
	*line = '\0';
	snprintf(moved, sizeof(moved), "%.100s\n%.10000s", line + 1, text);
	memset(&found, 0xff, sizeof(found));
	EQUAL(profile_parse(moved, &found, error, sizeof(error)), 0);
	CHECK(!memcmp(&given, &found, sizeof(found)));
}

/* With `field` at this value the profile is refused, and `named` says so; NULL: it is accepted. */
static void try_value(size_t field, uint32_t value, const char *named)
{
	struct profile changed = default_profile(), found;
	char error[200] = "", little[8];

	memcpy((char *)&changed + field, &value, sizeof(value));
	write_profile(&changed);
	int result = profile_parse(text, &found, error, sizeof(error));
	if (!named) {
		EQUAL(result, 0);
		return;
	}
	if (result != -1 || !strstr(error, named)) {
		fprintf(stderr, "%s: %d, %s\n", named, result, error);
		exit(1);
	}
	/* However little room there is for the message. */
	EQUAL(profile_parse(text, &found, little, sizeof(little)), (uint64_t)-1);
	EQUAL(strlen(little), sizeof(little) - 1);
}

#define TRY(field, value, named) try_value(offsetof(struct profile, field), value, named)

static void limits(void)
{
	TRY(l1d_sets, 64, NULL);
	TRY(l1d_sets, 128, "l1d.sets");
	TRY(l1i_sets, 128, "l1i.sets");
	TRY(l1d_sets, 3, "l1d");
	TRY(l1d_ways, 0, "l1d");
	TRY(l1d_ways, 12, NULL);
	TRY(l2_sets, 1000, "l2");
	TRY(l2_latency, 4, NULL);
	TRY(l2_latency, 3, "l2.latency");
	TRY(llc_latency, 3, "llc.latency");
	TRY(llc_latency_shared, 3, "llc.latency");
	TRY(llc_latency_modified, 3, "llc.latency");
	TRY(memory_latency_local, 3, "memory.latency");
	TRY(memory_latency_remote, 3, "memory.latency");
	TRY(memory_latency_remote_cache, 3, "memory.latency");
	TRY(llc_sets, 3 * 7 * 11, NULL);
	TRY(llc_sets, 0, "llc.sets");
	TRY(llc_ways, 65, "llc.ways");
	TRY(llc_policy, 3, "llc.policy");
	TRY(dtlb_4k_entries, 0, "dtlb.4k");
	TRY(dtlb_4k_entries, 66, "dtlb.4k");
	TRY(dtlb_4k_ways, 5, "dtlb.4k");
	TRY(dtlb_1g_entries, 0, NULL);
	TRY(stlb_entries, 0, "stlb");
	TRY(stlb_1g_entries, 0, NULL);
	TRY(stlb_code_entries, 64, "stlb.code"); /* without ways */
	TRY(core_chain_permille, 1001, "core.chain_permille");
	TRY(core_call_cycles, 0, "core.call_cycles");
	TRY(core_taken_permille, 0, "core.taken_permille");
	TRY(core_line_ops, 0, NULL);
	TRY(core_overlap_permille, 1000, NULL);
	TRY(core_overlap_permille, 1001, "core.overlap_permille");
	TRY(walk_exposed_permille, 1001, "walk.exposed_permille");
	TRY(branch_history, 32, NULL);
	TRY(branch_history, 33, "branch");
	TRY(branch_bimodal_bits, 21, "branch");
	TRY(branch_return_stack, 0, "branch.return_stack");
	TRY(branch_return_stack, 65, "branch.return_stack");
	TRY(walk_pde_entries, 65, "walk");
	TRY(walk_nested_entries, 128, NULL);
	TRY(walk_nested_entries, 129, "walk");
}

static void broken_text(void)
{
	const struct {
		const char *text, *error;
	} cases[] = {
		{"core.width", "core.width: no value"},
		{"core.width \n", "core.width:  is no whole number"},
		{"core.width four\n", "core.width: four is no whole number"},
		{"core.width 4 4\n", "core.width: 4 4 is no whole number"},
		{"core.width 4294967296\n", "core.width: 4294967296 is no whole number"},
		{"core.width -4\n", "core.width: -4 is no whole number"},
		{"core.width 4\ncore.width 4\n", "core.width: given twice"},
		{"core.breadth 4\n", "core.breadth: no such key"},
		{"core.width 4\n", "core.rob: missing"},
		{"", "core.width: missing"},
	};
	struct profile found;
	char error[100];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		EQUAL(profile_parse(cases[i].text, &found, error, sizeof(error)), (uint64_t)-1);
		if (strcmp(error, cases[i].error)) {
			fprintf(stderr, "\"%s\", not \"%s\"\n", error, cases[i].error);
			exit(1);
		}
	}
}

int main(void)
{
	every_value_finds_its_field();
	limits();
	broken_text();
	return 0;
}
