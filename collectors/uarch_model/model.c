/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpi.h"

static int64_t real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool add_core(struct model *model, uint32_t index, struct memory memory, uint32_t sample_every)
{
	struct core *core = core_new();

	model->core[index] = model->uncore.core[index] = core;
	model->tasks[index] = calloc(1, sizeof(struct tasks));
	model->hot[index] = calloc(1, sizeof(struct hot));
	model->timeline[index] = malloc(sizeof(struct timeline));
	model->calls[index] = calloc(1, sizeof(struct calls));
	if (!core || !model->tasks[index] || !model->hot[index] || !model->timeline[index] || !model->calls[index] ||
		!core_init(core, &model->profile, &model->uncore, index, memory))
		return false;
	calls_init(model->calls[index]);
	core->calls = model->calls[index];
	tasks_init(model->tasks[index]);
	timeline_init(model->timeline[index], &model->timeline_plan);
	core->thread = TASK_UNKNOWN;
	core->sample_every = sample_every;
	core->sample_at = core->sample_due = sample_every ? sample_every : UINT64_MAX;
	return true;
}

struct model *model_new(const struct profile *profile, uint32_t core_count, struct memory memory, uint32_t sample_every)
{
	struct model *model = calloc(1, sizeof(*model));

	if (!model)
		return NULL;
	model->profile = *profile;
	model->clock = real_ns;
	bool made = uncore_init(&model->uncore, &model->profile, core_count);
	for (uint32_t i = 0; made && i < core_count; i++) {
		model->core_count++;
		made = add_core(model, i, memory, sample_every);
	}
	if (!made) {
		model_free(model);
		return NULL;
	}
	return model;
}

void model_free(struct model *model)
{
	for (uint32_t i = 0; i < model->core_count; i++) {
		if (model->core[i])
			core_free(model->core[i]);
		free(model->core[i]);
		free(model->tasks[i]);
		free(model->hot[i]);
		free(model->timeline[i]);
		free(model->calls[i]);
	}
	uncore_free(&model->uncore);
	free(model);
}

/* Copy the counters of all cores; each single one is read whole, all of them within microseconds. */
static void copy_counters(const struct model *model, struct counters to[MOST_CORES][MODE_COUNT])
{
	for (uint32_t i = 0; i < model->core_count; i++)
		memcpy(to[i], model->core[i]->counters, sizeof(to[i]));
}

static void ask_all(struct model *model, enum request request)
{
	for (uint32_t i = 0; i < model->core_count; i++) {
		/* A begin makes void what was asked before; an end does not, or a core that slept would miss the begin. */
		if (request == REQUEST_BEGIN)
			__atomic_store_n(&model->request[i], request, __ATOMIC_RELEASE);
		else
			__atomic_fetch_or(&model->request[i], request, __ATOMIC_RELEASE);
		/* Due at once: the core's thread looks at its next block. */
		__atomic_store_n(&model->core[i]->sample_at, 0, __ATOMIC_RELAXED);
	}
}

void model_begin(struct model *model)
{
	copy_counters(model, model->begin);
	memcpy(model->hooked_begin, model->hooked, sizeof(model->hooked));
	model->begun_ns = model->clock();
	model->window = WINDOW_OPEN;
	timeline_plan_begin(&model->timeline_plan, model->begun_ns);
	ask_all(model, REQUEST_BEGIN);
}

void model_end(struct model *model)
{
	if (model->window != WINDOW_OPEN)
		return;
	model->window = WINDOW_CLOSED;
	copy_counters(model, model->end);
	memcpy(model->hooked_end, model->hooked, sizeof(model->hooked));
	model->ended_ns = model->clock();
	ask_all(model, REQUEST_END);
}

static void begin_poll(struct model *model, uint32_t index)
{
	struct core *core = model->core[index];
	bool empty = tasks_poll(model->tasks[index], core->counters);

	if (core->hot)
		hot_poll(core->hot, core->thread, empty);
}

void model_hooked(struct model *model, uint32_t index, uint32_t hook, uint32_t length)
{
	struct hook_count *count = &model->hooked[index][hook][model->core[index]->mode];

	count->calls++;
	count->length += length;
	if (model->hook[hook].poll == POLL_BEGINS)
		begin_poll(model, index);
	else if (model->hook[hook].poll == POLL_FOUND || (model->hook[hook].poll == POLL_FOUND_IF_ANY && length))
		tasks_poll_found(model->tasks[index]);
}

uint64_t model_instructions(const struct model *model)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < model->core_count; i++)
		for (int mode = 0; mode < MODE_COUNT; mode++) {
			const struct counters *now =
				model->window == WINDOW_CLOSED ? &model->end[i][mode] : &model->core[i]->counters[mode];
			sum += now->instructions - model->begin[i][mode].instructions;
		}
	return sum;
}

void model_settle(struct model *model, uint32_t index)
{
	struct core *core = model->core[index];
	struct tasks *tasks = model->tasks[index];
	uint8_t request = __atomic_exchange_n(&model->request[index], REQUEST_NONE, __ATOMIC_ACQUIRE);

	if (request & REQUEST_BEGIN) {
		struct task present = tasks->task[tasks->present];
		tasks_init(tasks);
		/* From the window's begin on, though this core looks only now. */
		memcpy(tasks->since, model->begin[index], sizeof(tasks->since));
		if (present.id != TASK_UNKNOWN)
			tasks_switch(tasks, tasks->since, present.id, present.name);
		hot_clear(model->hot[index]);
		calls_forget_nodes(model->calls[index]);
		core->hot = model->hot[index];
	}
	if (request & REQUEST_END) {
		tasks_stop(tasks, model->end[index]);
		hot_release(model->hot[index]);
		core->hot = NULL;
	}
}

void model_tick(struct model *model, uint32_t index)
{
	struct core *core = model->core[index];

	/* In this order: whoever asks something while the next sample is chosen is heard now or at the next block. */
	core_sample(core);
	model_settle(model, index);
}

bool model_settled(const struct model *model)
{
	for (uint32_t i = 0; i < model->core_count; i++)
		if (__atomic_load_n(&model->request[i], __ATOMIC_ACQUIRE) != REQUEST_NONE)
			return false;
	return true;
}

/* JSON. Zero counts are left out: what is not named is 0. */

static void write_counters(const struct counters *c, FILE *out)
{
	const uint64_t *count = (const uint64_t *)c;
	struct cpi_stack stack = cpi_stack(c);

	fputs("{", out);
	for (int i = 0; i < COUNTER_COUNT; i++)
		if (count[i])
			fprintf(out, "\"%s\":%" PRIu64 ",", counter_names[i], count[i]);
#define X(name) fprintf(out, "\"cycles_" #name "\":%.0f,", stack.name);
	CPI_PARTS(X)
#undef X
	fprintf(out, "\"cycles\":%.0f}", stack.total);
}

static void write_modes(const struct counters modes[MODE_COUNT], FILE *out)
{
	const char *comma = "";

	fputs("{", out);
	for (int mode = 0; mode < MODE_COUNT; mode++) {
		if (!modes[mode].instructions)
			continue;
		fprintf(out, "%s\"%s\":", comma, mode_names[mode]);
		write_counters(&modes[mode], out);
		comma = ",";
	}
	fputs("}", out);
}

static void write_tasks(const struct tasks *tasks, FILE *out)
{
	const char *comma = "";

	fputs("[", out);
	for (uint32_t i = 0; i < tasks->count; i++) {
		const struct task *task = &tasks->task[i];
		uint64_t instructions = 0;
		for (int mode = 0; mode < MODE_COUNT; mode++)
			instructions += task->counters[mode].instructions;
		if (!instructions)
			continue;
		fprintf(out, "%s{\"id\":%" PRId64 ",\"name\":\"", comma, task->id == TASK_UNKNOWN ? (int64_t)-1 : (int64_t)task->id);
		tasks_write_name(task->name, out);
		fputs("\",\"modes\":", out);
		write_modes(task->counters, out);
		if (task->polling) {
			fprintf(out, ",\"empty_polls\":%" PRIu64 ",\"empty\":", task->empty_polls);
			write_counters(&task->empty, out);
		}
		fputs("}", out);
		comma = ",\n";
	}
	fputs("]", out);
}

/* From number 1 on; each with the number of the stack that it is on. */
static void write_stacks(const struct calls *calls, FILE *out)
{
	fprintf(out, "\"stacks_lost\":%" PRIu64 ",\"stacks\":[", calls->lost);
	for (uint32_t i = 1; i < calls->count; i++)
		fprintf(out, "%s[%" PRIu32 ",\"%" PRIx64 "\"]", i > 1 ? ",\n" : "", calls->node[i].parent, calls->node[i].back);
	fputs("],", out);
}

static void write_hot(const struct hot *hot, const struct calls *calls, FILE *out)
{
	const char *comma = "";

	fprintf(out, "{\"dropped\":%" PRIu64 ",", hot->dropped);
	write_stacks(calls, out);
	fputs("\"spots\":[", out);
	for (uint32_t i = 0; i < HOT_SPOTS; i++) {
		const struct hot_spot *spot = &hot->spot[i];
		if (!spot->used)
			continue;
		int64_t thread = spot->thread == TASK_UNKNOWN ? -1 : (int64_t)spot->thread;
		fprintf(out, "%s[\"%" PRIx64 "\",%" PRId64 ",%d", comma, spot->pc, thread, spot->mode);
		for (int kind = 0; kind < HOT_KIND_COUNT; kind++)
			fprintf(out, ",%" PRIu32, spot->count[kind]);
		fprintf(out, ",%" PRIu32 "]", spot->stack);
		comma = ",\n";
	}
	fputs("]}", out);
}

static void write_hooks(const struct model *model, uint32_t index, FILE *out)
{
	const char *comma = "";

	fputs("{", out);
	for (uint32_t i = 0; i < model->hook_count; i++)
		for (int mode = 0; mode < MODE_COUNT; mode++) {
			const struct hook_count *end = &model->hooked_end[index][i][mode], *begin = &model->hooked_begin[index][i][mode];
			if (end->calls == begin->calls)
				continue;
			/* With its number: a function that lies in several processes has a hook in each. */
			fprintf(out, "%s\"%s/%s/%u\":[%" PRIu64 ",%" PRIu64 "]", comma, model->hook[i].name, mode_names[mode], i,
				end->calls - begin->calls, end->length - begin->length);
			comma = ",";
		}
	fputs("}", out);
}

void model_write(const struct model *model, FILE *out)
{
	fprintf(out, "{\"seconds\":%.9f,\"cores\":[", (double)(model->ended_ns - model->begun_ns) / 1e9);
	for (uint32_t i = 0; i < model->core_count; i++) {
		struct counters gained[MODE_COUNT] = {{0}};
		for (int mode = 0; mode < MODE_COUNT; mode++)
			counters_add_difference(&gained[mode], &model->end[i][mode], &model->begin[i][mode]);
		fprintf(out, "%s{\"modes\":", i ? ",\n" : "");
		write_modes(gained, out);
		fprintf(out, ",\"walks_failed\":%" PRIu64 ",\"sample_every\":%" PRIu32 ",\"tasks\":", model->core[i]->walks_failed,
			model->core[i]->sample_every);
		write_tasks(model->tasks[i], out);
		fputs(",\"hooks\":", out);
		write_hooks(model, i, out);
		fputs(",\"hot\":", out);
		write_hot(model->hot[i], model->calls[i], out);
		fputs("}", out);
	}
	fputs("]}\n", out);
}

void model_write_timeline(struct model *model, FILE *out)
{
	fputs("[", out);
	for (uint32_t i = 0; i < model->core_count; i++) {
		fputs(i ? ",\n" : "", out);
		timeline_write(model->timeline[i], model->begun_ns, model->ended_ns, out);
	}
	fputs("]\n", out);
}
