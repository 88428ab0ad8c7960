/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Windows: what lies in one is in its tables, what lies before and behind is not. With a path as argument it writes a window as
 * JSON there, which pytest reads.
 */
#include "model.h"

#include <string.h>

#include "check.h"

#define KERNEL 0xffffffff81000000ull
#define SAMPLE_EVERY 500

static struct block user_block, kernel_block;

/* The sanitizer reads it: an allocation that is too large shall fail, as it does without it. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static struct model *new_model(uint32_t core_count, uint32_t sample_every)
{
	struct profile profile = default_profile();

	profile.model_page_walks = 0;
	profile.llc_sets = 64;
	struct model *model = model_new(&profile, core_count, (struct memory){.low = NULL}, sample_every);
	CHECK(model);
	return model;
}

/* As QEMU's side drives a core: a look when it is due, then the block and an access of it. */
static void run(struct model *model, uint32_t index, int blocks)
{
	struct core *core = model->core[index];

	for (int i = 0; i < blocks; i++) {
		const struct block *block = i % 4 ? &user_block : &kernel_block;
		if (core->retired >= core->sample_at)
			model_tick(model, index);
		core_block(core, block);
		core_access(core, 0x10000 + core->retired % 7001 * 8, i % 3 == 0);
	}
}

static void start_thread(struct model *model, uint32_t index, uint32_t id, const char *name)
{
	char padded[TASK_NAME] = "";

	memcpy(padded, name, strnlen(name, TASK_NAME));
	model->core[index]->thread = id;
	tasks_switch(model->tasks[index], model->core[index]->counters, id, padded);
}

static void settle_all(struct model *model)
{
	for (uint32_t i = 0; i < model->core_count; i++)
		model_settle(model, i);
	CHECK(model_settled(model));
}

static uint64_t instructions_of_core(const struct model *model, uint32_t index)
{
	uint64_t sum = 0;

	for (int mode = 0; mode < MODE_COUNT; mode++)
		sum += model->end[index][mode].instructions - model->begin[index][mode].instructions;
	return sum;
}

static uint64_t instructions_of_task(const struct model *model, uint32_t index, uint32_t id)
{
	const struct tasks *tasks = model->tasks[index];
	uint64_t sum = 0;

	for (uint32_t i = 0; i < tasks->count; i++)
		for (int mode = 0; mode < MODE_COUNT && tasks->task[i].id == id; mode++)
			sum += tasks->task[i].counters[mode].instructions;
	return sum;
}

static uint64_t hot_of(const struct model *model, uint32_t index, enum hot_kind kind)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < HOT_SPOTS; i++)
		sum += model->hot[index]->spot[i].count[kind];
	return sum;
}

/* All counters: those of a core's threads come to those of the core. */
static void check_sums(const struct model *model)
{
	for (uint32_t c = 0; c < model->core_count; c++) {
		struct counters left[MODE_COUNT] = {{0}}, none = {0};
		for (int mode = 0; mode < MODE_COUNT; mode++) {
			const uint64_t *counts = (const uint64_t *)&left[mode];
			counters_add_difference(&left[mode], &model->end[c][mode], &model->begin[c][mode]);
			for (uint32_t t = 0; t < model->tasks[c]->count; t++)
				counters_add_difference(&left[mode], &none, &model->tasks[c]->task[t].counters[mode]);
			for (int i = 0; i < COUNTER_COUNT; i++)
				EQUAL(counts[i], 0);
		}
	}
}

static void a_window(void)
{
	struct model *model = new_model(2, SAMPLE_EVERY);

	start_thread(model, 0, 10, "before");
	run(model, 0, 1000);
	run(model, 1, 1000);
	EQUAL(model->window, WINDOW_NONE);
	model_begin(model);
	EQUAL(model->window, WINDOW_OPEN);
	EQUAL(model_instructions(model), 0);
	run(model, 0, 100);
	start_thread(model, 0, 11, "within");
	run(model, 0, 200);
	start_thread(model, 0, 10, "before");
	run(model, 0, 50);
	run(model, 1, 70);
	EQUAL(model_instructions(model), 4200);
	model_end(model);
	CHECK(!model_settled(model));
	EQUAL(model->window, WINDOW_CLOSED);
	/* What comes now is not in it, though threads come and go before anybody reads the window. */
	run(model, 0, 300);
	run(model, 1, 1);
	start_thread(model, 0, 12, "behind");
	run(model, 0, 300);
	start_thread(model, 0, 11, "within");
	CHECK(model_settled(model));
	EQUAL(model_instructions(model), 4200);
	EQUAL(instructions_of_core(model, 0), 3500);
	EQUAL(instructions_of_core(model, 1), 700);
	EQUAL(instructions_of_task(model, 0, 10), 1500);
	EQUAL(instructions_of_task(model, 0, 11), 2000);
	EQUAL(instructions_of_task(model, 0, 12), 0);
	EQUAL(instructions_of_task(model, 1, TASK_UNKNOWN), 700);
	check_sums(model);
	CHECK(model->ended_ns > model->begun_ns);
	/* One sample in 500 instructions, +- half. */
	CHECK(hot_of(model, 0, HOT_samples) >= 4 && hot_of(model, 0, HOT_samples) <= 12);
	uint64_t misses = 0;
	for (int mode = 0; mode < MODE_COUNT; mode++)
		misses += model->end[0][mode].l1d_misses - model->begin[0][mode].l1d_misses;
	EQUAL(hot_of(model, 0, HOT_l1d_misses), misses);
	/* The next one begins at nothing, with the thread that runs. */
	model_begin(model);
	run(model, 0, 10);
	model_end(model);
	run(model, 0, 1);
	run(model, 1, 1);
	EQUAL(instructions_of_task(model, 0, 11), 100);
	EQUAL(instructions_of_task(model, 0, 10), 0);
	EQUAL(model_instructions(model), 100);
	check_sums(model);
	model_free(model);
}

/* A core that runs nothing from before the begin until behind the end. */
static void a_core_that_sleeps(void)
{
	struct model *model = new_model(2, SAMPLE_EVERY);

	start_thread(model, 1, 20, "sleeper");
	run(model, 1, 1000);
	model_settle(model, 1);
	model_begin(model);
	run(model, 0, 100);
	model_end(model);
	run(model, 0, 1);
	CHECK(!model_settled(model));
	settle_all(model);
	EQUAL(instructions_of_core(model, 1), 0);
	EQUAL(instructions_of_task(model, 1, 20), 0);
	for (int kind = 0; kind < HOT_KIND_COUNT; kind++)
		EQUAL(hot_of(model, 1, (enum hot_kind)kind), 0);
	check_sums(model);
	/* It wakes, and counts for nothing until the next window. */
	run(model, 1, 100);
	EQUAL(hot_of(model, 1, HOT_l1d_misses), 0);
	EQUAL(instructions_of_task(model, 1, 20), 0);
	model_begin(model);
	run(model, 1, 100);
	model_end(model);
	settle_all(model);
	EQUAL(instructions_of_task(model, 1, 20), 1000);
	check_sums(model);
	model_free(model);
}

/* The end comes while a block runs that then switches threads. */
static void an_end_within_a_switch(void)
{
	struct model *model = new_model(1, SAMPLE_EVERY);

	start_thread(model, 0, 30, "first");
	model_begin(model);
	run(model, 0, 100);
	model_end(model);
	core_access(model->core[0], 0x10000, false);
	start_thread(model, 0, 31, "second");
	run(model, 0, 100);
	const struct tasks *tasks = model->tasks[0];
	for (uint32_t i = 0; i < tasks->count; i++)
		for (int mode = 0; mode < MODE_COUNT; mode++)
			CHECK(tasks->task[i].counters[mode].loads <= 100 && tasks->task[i].counters[mode].instructions <= 1000);
	EQUAL(instructions_of_task(model, 0, 30), 1000);
	EQUAL(instructions_of_task(model, 0, 31), 0);
	model_free(model);
}

static void begins_and_ends_out_of_order(void)
{
	struct model *model = new_model(1, SAMPLE_EVERY);

	model_end(model); /* of no window */
	EQUAL(model->window, WINDOW_NONE);
	CHECK(model_settled(model));
	model_begin(model);
	run(model, 0, 100);
	model_begin(model); /* anew */
	run(model, 0, 20);
	model_end(model);
	run(model, 0, 30);
	model_end(model); /* it is over */
	run(model, 0, 1);
	EQUAL(model_instructions(model), 200);
	check_sums(model);
	/* An end nobody settled, and the next begin. */
	model_begin(model);
	run(model, 0, 10);
	model_end(model);
	model_begin(model);
	run(model, 0, 5);
	EQUAL(model_instructions(model), 50);
	CHECK(model->core[0]->hot != NULL);
	model_end(model);
	settle_all(model);
	check_sums(model);
	model_free(model);
}

static void hooks(void)
{
	struct model *model = new_model(2, SAMPLE_EVERY);

	model->hook_count = 2;
	run(model, 0, 2); /* the last one was a user's */
	run(model, 1, 1); /* the kernel's */
	for (int i = 0; i < 10; i++)
		model_hooked(model, 0, 1, 1000); /* of no window */
	model_begin(model);
	for (int i = 0; i < 5; i++)
		model_hooked(model, 0, 0, 100);
	model_hooked(model, 0, 1, 64);
	model_hooked(model, 1, 1, 1518);
	model_hooked(model, 0, 1, 64);
	model_end(model);
	model_hooked(model, 0, 1, 64); /* of no window again */
	model_end(model);
	EQUAL(model->hooked_end[0][0][HOST_USER].calls - model->hooked_begin[0][0][HOST_USER].calls, 5);
	EQUAL(model->hooked_end[0][1][HOST_USER].calls - model->hooked_begin[0][1][HOST_USER].calls, 2);
	EQUAL(model->hooked_end[0][1][HOST_USER].length - model->hooked_begin[0][1][HOST_USER].length, 128);
	EQUAL(model->hooked_end[1][1][HOST_KERNEL].length - model->hooked_begin[1][1][HOST_KERNEL].length, 1518);
	model_free(model);
}

/* The hooks' part in telling polls apart: a begin, and what says that something was found. */
static void polls(void)
{
	struct model *model = new_model(1, SAMPLE_EVERY);

	model->hook_count = 4;
	model->hook[0].poll = POLL_BEGINS;
	model->hook[1].poll = POLL_FOUND;
	model->hook[2].poll = POLL_FOUND_IF_ANY;
	start_thread(model, 0, 40, "pmd");
	model_begin(model);
	run(model, 0, 2);
	for (uint32_t i = 0; i < 100; i++) {
		model_hooked(model, 0, 0, 0);
		run(model, 0, 20);
		if (i < 70)
			model_hooked(model, 0, i < 10 ? 1 : i < 30 ? 2 : 3, i < 20 ? 7 : 0);
	}
	model_hooked(model, 0, 0, 0);
	model_end(model);
	settle_all(model);
	const struct tasks *tasks = model->tasks[0];
	EQUAL(tasks->task[tasks->present].empty_polls, 80);
	EQUAL(tasks->task[tasks->present].empty.instructions, 80 * 150); /* every fourth block is the kernel's */
	check_sums(model);
	/* The next window begins at nothing. */
	model_begin(model);
	run(model, 0, 20);
	model_hooked(model, 0, 0, 0);
	model_end(model);
	settle_all(model);
	EQUAL(tasks->task[tasks->present].empty_polls, 0);
	model_free(model);
}

static void sizes(void)
{
	struct profile profile = default_profile();

	CHECK(!model_new(&profile, MOST_CORES + 1, (struct memory){.low = NULL}, 0));
	model_free(new_model(MOST_CORES, 0));
	/* More than there can be of memory: no model, and nothing left behind. */
	profile.l2_sets = 1u << 31;
	profile.l2_ways = 4096;
	CHECK(!model_new(&profile, 1, (struct memory){.low = NULL}, 0));
}

/* With what JSON does not take in names, and a core without anything to say. */
static void write_window(const char *path)
{
	struct model *model = new_model(3, SAMPLE_EVERY);
	FILE *out = fopen(path, "w");

	CHECK(out);
	model->hook_count = 2;
	strcpy(model->hook[0].name, "a_hook");
	strcpy(model->hook[1].name, "a_hook"); /* the same function in another process */
	model_begin(model);
	run(model, 0, 10);
	start_thread(model, 0, 1, "quote\" back\\sl\n");
	run(model, 0, 2000);
	start_thread(model, 0, 0, "sixteen letters!");
	run(model, 0, 100);
	model_hooked(model, 0, 0, 64);
	model_hooked(model, 0, 0, 36);
	model_hooked(model, 0, 1, 32);
	model->hook[1].poll = POLL_BEGINS;
	for (int i = 0; i < 3; i++) {
		model_hooked(model, 0, 1, 0);
		run(model, 0, 4);
	}
	start_thread(model, 1, 4294967294u, "\xc3\xa9t\xc3\xa9");
	core_enter(model->core[1], true);
	run(model, 1, 10);
	model_end(model);
	settle_all(model);
	check_sums(model);
	model_write(model, out);
	CHECK(!fclose(out));
	model_free(model);
}

int main(int argc, char **argv)
{
	user_block =
		(struct block){.pc = 0x400000, .length = 40, .instructions = 10, .flow = 320, .kind = BRANCH_OTHER, .user = true, .way = 1};
	kernel_block = (struct block){.pc = KERNEL, .length = 100, .instructions = 10, .flow = 320, .kind = BRANCH_OTHER};
	a_window();
	a_core_that_sleeps();
	an_end_within_a_switch();
	begins_and_ends_out_of_order();
	hooks();
	polls();
	sizes();
	if (argc > 1)
		write_window(argv[1]);
	return 0;
}
