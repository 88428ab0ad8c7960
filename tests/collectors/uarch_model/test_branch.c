/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Branch prediction: sequences worked out by hand, and random ones against McFarling's predictor in a naive form. */
#include <string.h>

#include "naive_predictor.h"

static bool direction(struct predictor *p, uint64_t pc, bool taken)
{
	predictor_look(p, pc);
	return predictor_resolve_direction(p, taken);
}

static struct predictor new_predictor(const struct profile *profile)
{
	struct predictor predictor;

	CHECK(predictor_init(&predictor, profile));
	return predictor;
}

/* Without history both tables are the same, so one counter of two bits decides. It begins at 2, "weakly taken". */
static void one_counter(void)
{
	const struct {
		bool taken, guessed;
	} steps[] = {
		{true, true},   /* 2 → 3 */
		{true, true},   /* 3 → 3 */
		{false, false}, /* 3 → 2 */
		{true, true},   /* 2 → 3: one exception did not unlearn it */
		{false, false}, /* 3 → 2 */
		{false, false}, /* 2 → 1 */
		{false, true},  /* 1 → 0 */
		{false, true},  /* 0 → 0 */
		{true, false},  /* 0 → 1 */
		{false, true},  /* 1 → 0 */
	};
	struct profile profile = default_profile();

	profile.branch_history = 0;
	struct predictor p = new_predictor(&profile);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		EQUAL(direction(&p, 0x400123, steps[i].taken), steps[i].guessed);
	predictor_free(&p);
}

static uint32_t misses_of_pattern(uint32_t history, const char *pattern, int rounds, int counted_from)
{
	struct profile profile = default_profile();
	uint32_t misses = 0;

	profile.branch_history = history;
	struct predictor p = new_predictor(&profile);
	for (int round = 0; round < rounds; round++)
		for (const char *at = pattern; *at; at++)
			misses += !direction(&p, 0x7f0012345678, *at == '1') && round >= counted_from;
	predictor_free(&p);
	return misses;
}

/* What repeats within the history is learned; what a counter alone sees is not. */
static void patterns(void)
{
	EQUAL(misses_of_pattern(12, "10", 200, 100), 0);
	EQUAL(misses_of_pattern(12, "11110", 200, 100), 0);
	EQUAL(misses_of_pattern(12, "1101000", 200, 100), 0);
	EQUAL(misses_of_pattern(0, "11110", 200, 100), 100);
	EQUAL(misses_of_pattern(32, "1", 200, 0), 0);
	EQUAL(misses_of_pattern(12, "0", 200, 20), 0);
}

static void targets(void)
{
	struct profile profile = default_profile();

	profile.branch_history = 0;
	struct predictor p = new_predictor(&profile);
	CHECK(!predictor_resolve(&p, BRANCH_INDIRECT, 0x1000, 0x1010, 0x5000));
	CHECK(predictor_resolve(&p, BRANCH_INDIRECT, 0x1000, 0x1010, 0x5000));
	CHECK(!predictor_resolve(&p, BRANCH_INDIRECT, 0x1000, 0x1010, 0x6000));
	CHECK(predictor_resolve(&p, BRANCH_INDIRECT, 0x1000, 0x1010, 0x6000));
	/* Direct ones are always right: their target stands in the code. */
	CHECK(predictor_resolve(&p, BRANCH_JUMP, 0x1000, 0x1010, 0x5000));
	CHECK(predictor_resolve(&p, BRANCH_CALL, 0x1000, 0x1010, 0x5000));
	predictor_free(&p);
	/* With history, targets that take turns are learned. */
	profile.branch_history = 12;
	p = new_predictor(&profile);
	uint32_t misses = 0;
	for (int i = 0; i < 300; i++)
		misses += !predictor_resolve(&p, BRANCH_INDIRECT, 0x1000, 0x1010, i % 3 ? 0x5000 : 0x6004) && i > 100;
	EQUAL(misses, 0);
	predictor_free(&p);
}

/* `size` calls come back right, in whatever depth; of more, the oldest are lost. */
static void returns(uint32_t size)
{
	struct profile profile = default_profile();

	profile.branch_return_stack = size;
	struct predictor p = new_predictor(&profile);
	for (int round = 0; round < 5; round++) {
		for (uint32_t i = 1; i <= size; i++)
			predictor_resolve(&p, i % 2 ? BRANCH_CALL : BRANCH_INDIRECT_CALL, 0x1000, i * 16, 0x5000);
		for (uint32_t i = size; i >= 1; i--)
			CHECK(predictor_resolve(&p, BRANCH_RETURN, 0x2000, 0x2001, i * 16));
		/* One call first, so that the next round begins elsewhere in the ring. */
		predictor_resolve(&p, BRANCH_CALL, 0x1000, 0x1010, 0x5000);
	}
	for (uint32_t i = 1; i <= size + 3; i++)
		predictor_resolve(&p, BRANCH_CALL, 0x1000, i * 16, 0x5000);
	for (uint32_t i = size + 3; i > 3; i--)
		CHECK(predictor_resolve(&p, BRANCH_RETURN, 0x2000, 0x2001, i * 16));
	CHECK(!predictor_resolve(&p, BRANCH_RETURN, 0x2000, 0x2001, 3 * 16));
	predictor_free(&p);
}

static void against_the_naive_one(const struct profile *profile, uint32_t seed)
{
	static struct naive_predictor naive;
	struct random random = {seed};
	struct predictor p = new_predictor(profile);
	uint32_t right = 0, steps = 60000;

	naive_predictor_init(&naive, profile);
	for (uint32_t i = 0; i < steps; i++) {
		uint32_t site = random_below(&random, 40);
		uint64_t pc = 0xffffffff81000000ull + site * 0x10937ull, to = 0x400000 + random_below(&random, site % 5 + 1) * 0x444;
		enum branch_kind kind =
			random_below(&random, 4) ? BRANCH_CONDITIONAL : (enum branch_kind)random_below(&random, BRANCH_OTHER + 1);
		bool found, expected;
		if (kind == BRANCH_CONDITIONAL) {
			/* Some always go one way, some mostly, some follow the step before. */
			bool taken = site % 3 == 0 ? site % 2 : site % 3 == 1 ? random_below(&random, 10) != 0 : (p.history & 1) == 0;
			found = direction(&p, pc, taken);
			expected = naive_direction(&naive, pc, taken);
		} else {
			if (kind == BRANCH_RETURN)
				to = random_once_in(&random, 3) ? to : naive.pile[0];
			found = predictor_resolve(&p, kind, pc, pc + 9, to);
			expected = naive_resolve(&naive, kind, pc, pc + 9, to);
		}
		EQUAL(found, expected);
		right += found;
	}
	CHECK(right > steps / 2 && right < steps);
	predictor_free(&p);
}

int main(void)
{
	struct profile profile = default_profile();

	one_counter();
	patterns();
	targets();
	returns(1);
	returns(2);
	returns(7);
	returns(64);
	against_the_naive_one(&profile, 1);
	/* Small tables, where branches meet; and none worth the name. */
	profile.branch_history = 5;
	profile.branch_bimodal_bits = 4;
	profile.branch_global_bits = 6;
	profile.branch_target_bits = 3;
	profile.branch_return_stack = 4;
	against_the_naive_one(&profile, 2);
	profile.branch_history = 32;
	profile.branch_bimodal_bits = profile.branch_target_bits = 0;
	profile.branch_return_stack = 1;
	against_the_naive_one(&profile, 3);
	profile.branch_history = 0;
	against_the_naive_one(&profile, 4);
	return 0;
}
