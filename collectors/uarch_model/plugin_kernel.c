/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the emulated kernel does: which task it runs, its functions that are hooked, and the marks of a window. */
#include "plugin.h"

#include <string.h>

#include "decode.h"

uint64_t real_pc(struct core *core)
{
	(void)core;
	return read_register(REG_RIP);
}

bool read_virtual(struct core *core, uint64_t address, uint64_t *value)
{
	struct walk walk;
	uint64_t at;

	/* Entries of a structure may lie across the border of 8 bytes only if the structure is packed; tasks are not. */
	if (!walker_walk(&core->walker, &core->space, address, &walk))
		return false;
	at = walk.frame | (address & ((1ull << page_shift[walk.size]) - 1));
	return memory_read(&memory, at, value);
}

static bool read_name(struct core *core, uint64_t task, char name[TASK_NAME])
{
	uint64_t half[2];

	if (!read_virtual(core, task + task_name_offset, &half[0]) || !read_virtual(core, task + task_name_offset + 8, &half[1]))
		return false;
	memcpy(name, half, TASK_NAME);
	return true;
}

bool read_who(struct core *core, uint64_t task, struct who *who)
{
	uint64_t id = 0, priority = 0;

	if (!read_virtual(core, task + task_id_offset, &id) || !read_virtual(core, task + task_priority_offset, &priority) ||
		!read_name(core, task, who->name))
		return false;
	who->id = (uint32_t)(id >> (task_id_offset & 4) * 8);
	who->priority = (uint32_t)(priority >> (task_priority_offset & 4) * 8);
	return true;
}

/* The task whose task_struct is at `address` runs from now on. */
static bool read_task(struct core *core, uint32_t index, uint64_t address)
{
	struct who who;

	if (!read_who(core, address, &who))
		return false;
	core->thread = who.id;
	vcpus[index].probe = who.priority == PROBES_PRIORITY;
	settle_free(&vcpus[index], core);
	tasks_switch(model->tasks[index], core->counters, who.id, who.name);
	note_task(index, who.id, who.name);
	calls_switch(core->calls, who.id);
	return true;
}

void on_task_switch(unsigned int index, void *data)
{
	struct core *core = cores[index];
	char name[TASK_NAME];
	struct who who;

	(void)data;
	core->now->task_switches++;
	if (core->guest) {
		calls_switch(core->calls, read_register(REG_RSI));
		/* Its kernel is the same as the host's. */
		if (timeline_of(index) && read_who(core, read_register(REG_RSI), &who))
			note_task(index, who.id, who.name);
		return;
	}
	/* It may have another name than when it was switched to. The first switch seen is from somebody whom nobody knows. */
	if (!vcpus[index].task_unknown && read_name(core, read_register(REG_RDI), name))
		tasks_name(model->tasks[index], name);
	vcpus[index].task_unknown = !read_task(core, index, read_register(REG_RSI));
}

/* Who runs, where nobody was switched to yet: a poll-mode thread may not leave its processor for minutes. */
void find_task(struct vcpu *vcpu, struct core *core, uint32_t index)
{
	uint64_t base = read_register(REG_GS_BASE), task = 0;

	/* In user mode the kernel's base waits in the other register (SWAPGS). */
	if (!(base >> 63))
		base = read_register(REG_KERNEL_GS_BASE);
	if (core->guest || !(base >> 63) || !read_virtual(core, base + current_task_at, &task) || !(task >> 63))
		return;
	vcpu->task_unknown = !read_task(core, index, task);
}

void on_hook(unsigned int index, void *data)
{
	uint32_t hook = (uint32_t)(uintptr_t)data;
	uint64_t word = 0;

	if (hooks[hook].end) {
		word = (uint16_t)read_register(REG_RAX);
	} else if (hooks[hook].length_at >= 0) {
		uint64_t at = read_register(REG_RDI) + (uint64_t)hooks[hook].length_at;
		read_virtual(cores[index], at, &word);
		word >>= (at & 4) * 8;
	}
	model_hooked(model, index, hook, (uint32_t)word);
	note_hook(index, &hooks[hook], (uint32_t)word);
}

void on_mark(unsigned int index, void *data)
{
	bool begins = (intptr_t)data == MARK_BEGIN;

	/* The window's end is its last instant, and its begin the first: no probe runs in it. */
	if ((intptr_t)data == MARK_END)
		model_end(model);
	__atomic_store_n(&probing, !begins, __ATOMIC_RELAXED);
	settle_free(&vcpus[index], cores[index]);
	if (begins)
		model_begin(model);
}
