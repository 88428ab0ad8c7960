/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of the emulated kernels' doing is written down with its time (timeline.h): functions that are watched, and who is woken. */
#include "plugin.h"

#include <inttypes.h>
#include <string.h>

#define MOST_WATCHED 64

/*
 * A function of the kernel: a span from its begin to its return; or one whose return ends what others began, who may end by going on in
 * another function; or one whose begin does; or a mark.
 */
enum watch_kind { WATCH_IRQ, WATCH_IRQ_END, WATCH_SOFTIRQ, WATCH_SOFTIRQS_END, WATCH_UPCALL, WATCH_WORK, WATCH_WAKE, WATCH_KINDS };

static const char *const watch_names[WATCH_KINDS] = {"irq", "irq_end", "softirq", "softirqs_end", "upcall", "work", "wake"};

static struct watched {
	uint64_t begin, end;
	enum watch_kind kind;
	char name[TASK_NAME];
} watched[MOST_WATCHED];
static uint32_t watched_count;
static uint64_t task_state_offset;
static struct timeline_plan plan; /* of the models to come */

/* Where modules lie, each kernel has others (Documentation/arch/x86/x86_64/mm.rst). */
#define MODULES 0xffffffffc0000000ull

struct timeline *timeline_of(uint32_t index)
{
	return state == MODEL && modelled.runs && model && timeline_wanted(model->timeline[index]) ? model->timeline[index] : NULL;
}

void plan_timeline(void)
{
	model->timeline_plan = plan;
}

static enum timeline_kind span_of(enum watch_kind kind)
{
	static const enum timeline_kind spans[] = {
		[WATCH_IRQ] = TIMELINE_irq,
		[WATCH_IRQ_END] = TIMELINE_irq,
		[WATCH_SOFTIRQ] = TIMELINE_softirq,
		[WATCH_SOFTIRQS_END] = TIMELINE_softirq,
		[WATCH_UPCALL] = TIMELINE_upcall,
		[WATCH_WORK] = TIMELINE_work,
	};

	return spans[kind];
}

/* Where try_to_wake_up() goes on: its first argument's state is one of those of the second. */
static void note_wake(struct timeline *timeline, uint32_t index)
{
	struct core *core = cores[index];
	uint64_t task = read_register(REG_RDI), states = read_register(REG_RSI), found = 0;
	struct who who;

	if (!read_virtual(core, task + task_state_offset, &found))
		return;
	found >>= (task_state_offset & 4) * 8;
	if ((uint32_t)found & (uint32_t)states && read_who(core, task, &who))
		timeline_mark(timeline, TIMELINE_wake, core->guest, core_time(index), who.id, who.name);
}

static void on_watched_begin(unsigned int index, void *data)
{
	const struct watched *function = data;
	struct timeline *timeline = timeline_of(index);
	bool guest = cores[index]->guest;

	if (!timeline || (guest && function->begin >= MODULES))
		return;
	if (function->kind == WATCH_WAKE)
		note_wake(timeline, index);
	else if (function->kind == WATCH_IRQ_END)
		timeline_end(timeline, TIMELINE_irq, guest, core_time(index), NO_VALUE);
	else if (function->kind != WATCH_SOFTIRQS_END)
		timeline_begin(timeline, span_of(function->kind), guest, core_time(index), NO_VALUE, function->name);
}

static void on_watched_end(unsigned int index, void *data)
{
	const struct watched *function = data;
	struct timeline *timeline = timeline_of(index);
	bool guest = cores[index]->guest;

	if (timeline && function->kind != WATCH_WAKE && !(guest && function->begin >= MODULES))
		timeline_end(timeline, span_of(function->kind), guest, core_time(index), NO_VALUE);
}

/* As its code is translated: who wants to know of this instruction. */
void watch_instruction(struct qemu_plugin_insn *instruction, bool returns)
{
	uint64_t address = qemu_plugin_insn_vaddr(instruction);

	if (!plan.length || !(address >> 63))
		return;
	for (uint32_t i = 0; i < watched_count; i++) {
		if (address == watched[i].begin)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_watched_begin, QEMU_PLUGIN_CB_R_REGS, &watched[i]);
		if (returns && address >= watched[i].begin && address < watched[i].end)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_watched_end, QEMU_PLUGIN_CB_NO_REGS, &watched[i]);
	}
}

/* A task gets the CPU: what was in the middle of an interrupt has ended, for it does not come back here. */
void note_task(uint32_t index, uint32_t id, const char *name)
{
	struct timeline *timeline = timeline_of(index);
	bool guest = cores[index]->guest;

	if (!timeline)
		return;
	int64_t at = core_time(index);
	for (enum timeline_kind kind = TIMELINE_irq; kind < TIMELINE_SPAN_KINDS; kind++)
		timeline_end(timeline, kind, guest, at, NO_VALUE);
	timeline_begin(timeline, TIMELINE_task, guest, at, id, name);
}

void note_hook(uint32_t index, const struct hook *hook, uint32_t value)
{
	struct timeline *timeline = timeline_of(index);

	if (!timeline)
		return;
	if (hook->poll == POLL_BEGINS)
		timeline_poll(timeline, core_time(index));
	else if (hook->poll == POLL_FOUND_IF_ANY)
		timeline_poll_found(timeline, value);
	else if (!strcmp(hook->name, "packets"))
		timeline_count(timeline, TIMELINE_softirq, cores[index]->guest);
}

/* watch KIND NAME BEGIN END */
void command_watch(const char *arguments, FILE *out)
{
	struct watched fresh = {0};
	char kind[16], name[32];
	uint32_t which = 0;

	if (sscanf(arguments, "%15s %31s %" SCNx64 " %" SCNx64, kind, name, &fresh.begin, &fresh.end) == 4)
		while (which < WATCH_KINDS && strcmp(kind, watch_names[which]))
			which++;
	else
		which = WATCH_KINDS;
	if (which == WATCH_KINDS || fresh.begin >= fresh.end || watched_count == MOST_WATCHED || state == MODEL) {
		fprintf(out, "error: watch KIND NAME BEGIN END: %d at most, and none while the model runs\n", MOST_WATCHED);
		return;
	}
	fresh.kind = (enum watch_kind)which;
	memcpy(fresh.name, name, strnlen(name, sizeof(fresh.name)));
	watched[watched_count++] = fresh;
	fputs("ok\n", out);
}

/* timeline AFTER_NS LENGTH_NS STATE_OFFSET: what part of the windows to come is written down; with a length of 0 none. */
void command_timeline(const char *arguments, FILE *out)
{
	struct timeline_plan fresh = {0};

	if (state == MODEL || sscanf(arguments, "%" SCNd64 " %" SCNd64 " %" SCNu64, &fresh.after, &fresh.length, &task_state_offset) != 3 ||
		fresh.after < 0 || fresh.length < 0) {
		fputs("error: timeline AFTER_NS LENGTH_NS STATE_OFFSET, not while the model runs\n", out);
		return;
	}
	plan = fresh;
	fputs("ok\n", out);
}

/* What was written down in the last window; nothing while the model runs. */
void command_events(FILE *out)
{
	/* While processors run, their lists may grow. */
	if (model && model->window == WINDOW_CLOSED && model->timeline_plan.length && state != MODEL)
		model_write_timeline(model, out);
	else
		fputs("[]\n", out);
}
