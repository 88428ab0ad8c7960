/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of the model's socket. */
#include "plugin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qemu_clock.h"
#include "qemu_flush.h"
#include "qemu_interrupt.h"

static const char *const state_names[] = {"off", "count", "model"};

/* state NAME: "ok" when it is so, "pending" while no processor was idle yet: ask again, and wake one meanwhile. */
static void command_state(const char *name, FILE *out)
{
	static bool flush_found;
	char error[256] = "";

	for (enum state to = OFF; to <= MODEL; to++) {
		if (strcmp(name, state_names[to]))
			continue;
		if (!change_wanted && to != state) {
			/* By way of off: the model must not be replaced while it runs. */
			if (to != OFF && state != OFF)
				fprintf(out, "error: first off, then %s\n", name);
			else if (!flush_found && !(flush_found = qemu_flush_find(error, sizeof(error))))
				fprintf(out, "error: %s\n", error);
			else if (to != MODEL || make_model(out))
				begin_change(to);
			if (!change_wanted)
				return;
		}
		if (!wait_for_change() || state != to)
			fputs("pending\n", out);
		else if (modelled.failed)
			fprintf(out, "error: modelled time did not begin: %s\n", modelled.failed);
		else
			fputs("ok\n", out);
		return;
	}
	fprintf(out, "error: no state %s: off, count or model\n", name);
}

static void command_profile(const char *path, FILE *out)
{
	char text[16384], error[256];
	FILE *file = fopen(path, "r");

	if (!file) {
		fprintf(out, "error: %s: %s\n", path, strerror(errno));
		return;
	}
	size_t length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = '\0';
	struct profile fresh;
	if (profile_parse(text, &fresh, error, sizeof(error))) {
		fprintf(out, "error: profile: %s\n", error);
		return;
	}
	if (state == MODEL) {
		fputs("error: the profile can't change while the model runs\n", out);
		return;
	}
	profile = fresh;
	profile_known = true;
	fputs("ok\n", out);
}

static void command_kernel(const char *arguments, FILE *out)
{
	if (sscanf(arguments, "%" SCNx64 " %" SCNx64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &task_switch_pc, &current_task_at,
		    &task_id_offset, &task_name_offset, &task_priority_offset) == 5)
		fputs("ok\n", out);
	else
		fputs("error: kernel ADDRESS_OF_SWITCH_TO PERCPU_CURRENT_TASK PID_OFFSET COMM_OFFSET STATIC_PRIO_OFFSET\n", out);
}

/* By their names: those by which a poll-mode thread's polls are told apart. */
static enum poll_part poll_part(const char *name)
{
	static const char *const words[] = {[POLL_BEGINS] = "polls", [POLL_FOUND] = "bursts", [POLL_FOUND_IF_ANY] = "found"};

	for (enum poll_part part = POLL_BEGINS; part <= POLL_FOUND_IF_ANY; part++)
		if (!strcmp(name, words[part]))
			return part;
	return POLL_NOTHING;
}

static void add_hook(struct hook fresh, const char *wrong, FILE *out)
{
	fresh.poll = poll_part(fresh.name);
	if (state == MODEL || hook_count == MOST_HOOKS)
		fprintf(out, "error: %s\n", state == MODEL ? "no hooks while the model runs" : "too many hooks");
	else if (wrong)
		fprintf(out, "error: %s\n", wrong);
	else {
		hooks[hook_count++] = fresh;
		fputs("ok\n", out);
	}
}

static void command_hook(const char *arguments, FILE *out)
{
	struct hook fresh = {.length_at = -1};
	bool understood = sscanf(arguments, "%31s %" SCNx64 " %" SCNd64, fresh.name, &fresh.address, &fresh.length_at) >= 2;

	add_hook(fresh, understood ? NULL : "hook NAME ADDRESS [OFFSET_OF_LENGTH]", out);
}

static void command_returns(const char *arguments, FILE *out)
{
	struct hook fresh = {.length_at = -1};
	bool understood = sscanf(arguments, "%31s %" SCNx64 " %" SCNx64, fresh.name, &fresh.address, &fresh.end) == 3;

	add_hook(fresh, understood && fresh.address < fresh.end ? NULL : "returns NAME BEGIN END", out);
}

/* node BEGIN CPUS: the next NUMA node, its memory's first physical address and its processors, a bit each; both hexadecimal. */
static void command_node(const char *arguments, FILE *out)
{
	uint64_t begin, cpus;
	bool understood = sscanf(arguments, "%" SCNx64 " %" SCNx64, &begin, &cpus) == 2;

	/* Node 0 begins at 0, and a new list with it. */
	if (understood && begin == 0)
		node_count = 0;
	if (state == MODEL || node_count == MOST_NODES)
		fprintf(out, "error: %s\n", state == MODEL ? "no nodes while the model runs" : "too many nodes");
	else if (!understood || (node_count && begin <= nodes[node_count - 1].begin))
		fputs("error: node BEGIN CPUS, one behind the other\n", out);
	else {
		nodes[node_count].begin = begin;
		nodes[node_count++].cpus = cpus;
		fputs("ok\n", out);
	}
}

/* clock QUANTUM_NS CORE_KHZ TICKS_KHZ PACE DEEPEST_IDLE SEED: time is modelled from the next change to the state model on. */
static void command_clock(const char *arguments, FILE *out)
{
	char error[256];
	int64_t quantum;
	uint64_t core_khz, ticks_khz, seed;
	double pace;
	uint32_t deepest_idle;

	if (sscanf(arguments, "%" SCNd64 " %" SCNu64 " %" SCNu64 " %lf %" SCNu32 " %" SCNu64, &quantum, &core_khz, &ticks_khz, &pace,
		    &deepest_idle, &seed) != 6 ||
		quantum <= 0 || !core_khz || !ticks_khz || pace <= 0)
		fputs("error: clock QUANTUM_NS CORE_KHZ TICKS_KHZ PACE DEEPEST_IDLE SEED, the first four above 0\n", out);
	else if (state == MODEL)
		fputs("error: the clock can't change while the model runs\n", out);
	else if (!modelled.taken && !(qemu_clock_find(error, sizeof(error)) && qemu_interrupt_find(vcpu_count, error, sizeof(error))))
		fprintf(out, "error: %s: modelled time needs QEMU 9.1 to 11.1 with threads for TCG's CPUs\n", error);
	else {
		modelled.quantum = quantum;
		modelled.core_khz = core_khz;
		modelled.ticks_khz = ticks_khz;
		modelled.pace = pace;
		modelled.deepest_idle = deepest_idle;
		modelled.seed = seed;
		modelled.wanted = true;
		fputs("ok\n", out);
	}
}

static void write_clock(FILE *out)
{
	struct clock_record record = clock_read(&machine_clock);

	fprintf(out, "{\"runs\":%s,\"now_ns\":%" PRId64 ",\"modelled_ns\":%" PRId64 ",\"wall_ns\":%" PRId64 ",\"idle_ns\":%" PRId64,
		modelled.runs ? "true" : "false",
		modelled.runs    ? clock_now(&machine_clock)
		: modelled.taken ? present_clock()
				 : 0,
		record.modelled, record.wall, record.idle);
	fprintf(out,
		",\"quantum_ns\":%" PRId64 ",\"reports\":%" PRIu64 ",\"waits\":%" PRIu64 ",\"slices\":%" PRIu64 ",\"far_ahead\":%" PRIu64
		",\"most_ahead_ns\":%" PRId64 ",\"timers\":%" PRIu64 ",\"calls\":%" PRIu64 ",\"vain\":%" PRIu64 "}",
		modelled.quantum, record.reports, record.waits, record.slices, record.far_ahead, record.most_ahead, record.timers,
		record.calls, record.vain);
}

/* How often the kernels' receiving function (the hook of that name) was called since the model began: whether a rate is steady yet. */
static uint64_t packets_so_far(void)
{
	uint64_t sum = 0;

	for (uint32_t hook = 0; model && hook < model->hook_count; hook++)
		for (uint32_t i = 0; !strcmp(model->hook[hook].name, "packets") && i < model->core_count; i++)
			for (int mode = 0; mode < MODE_COUNT; mode++)
				sum += model->hooked[i][hook][mode].calls;
	return sum;
}

static void command_status(FILE *out)
{
	fprintf(out, "{\"state\":\"%s\",\"window\":%d,\"clock\":", state_names[state], model ? (int)model->window : 0);
	write_clock(out);
	fprintf(out, ",\"packets\":%" PRIu64 ",\"vcpus\":[", packets_so_far());
	for (uint32_t i = 0; i < vcpu_count; i++)
		fprintf(out,
			"%s{\"instructions\":%" PRIu64 ",\"modelled_instructions\":%" PRIu64 ",\"cycles\":%" PRIu64
			",\"asleep\":%s,\"at_ns\":%" PRId64 ",\"translations_checked\":%" PRIu64 ",\"translations_wrong\":%" PRIu64
			",\"injections\":%" PRIu64 ",\"mended\":%" PRIu64 "}",
			i ? "," : "", vcpus[i].counted + (model ? model->core[i]->retired : 0), model ? model->core[i]->retired : 0,
			model ? core_cycles(model->core[i]) : 0, machine_clock.cpu[i].idle ? "true" : "false", machine_clock.cpu[i].at,
			vcpus[i].checked, vcpus[i].wrong, vcpus[i].injections, vcpus[i].mended);
	fputs("]}\n", out);
}

static void command_window(FILE *out)
{
	if (!model || model->window != WINDOW_CLOSED) {
		fputs("error: no window was closed\n", out);
		return;
	}
	/* A core that sleeps on has nothing left to book: its tables can be brought up to date from here. */
	for (int tries = 0; tries < 100 && !model_settled(model); tries++)
		usleep(1000);
	for (uint32_t i = 0; i < model->core_count; i++)
		model_settle(model, i);
	model_write(model, out);
}

void handle(char *line, FILE *out)
{
	char *argument = line + strcspn(line, " ");

	if (*argument)
		*argument++ = '\0';
	if (!strcmp(line, "state"))
		command_state(argument, out);
	else if (!strcmp(line, "profile"))
		command_profile(argument, out);
	else if (!strcmp(line, "kernel"))
		command_kernel(argument, out);
	else if (!strcmp(line, "clock"))
		command_clock(argument, out);
	else if (!strcmp(line, "status"))
		command_status(out);
	else if (!strcmp(line, "window"))
		command_window(out);
	else if (!strcmp(line, "sample")) {
		sample_every = (uint32_t)strtoul(argument, NULL, 10);
		fputs("ok\n", out);
	} else if (!strcmp(line, "hook")) {
		command_hook(argument, out);
	} else if (!strcmp(line, "returns")) {
		command_returns(argument, out);
	} else if (!strcmp(line, "watch")) {
		command_watch(argument, out);
	} else if (!strcmp(line, "timeline")) {
		command_timeline(argument, out);
	} else if (!strcmp(line, "events")) {
		command_events(out);
	} else if (!strcmp(line, "node")) {
		command_node(argument, out);
	} else if (!strcmp(line, "begin") && state == MODEL) {
		model_begin(model);
		fputs("ok\n", out);
	} else if (!strcmp(line, "end") && state == MODEL) {
		model_end(model);
		fputs("ok\n", out);
	} else {
		fprintf(out, "error: can't %s in state %s\n", line, state_names[state]);
	}
}
