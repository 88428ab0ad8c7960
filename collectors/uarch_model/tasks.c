/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tasks.h"

#include <string.h>

void tasks_init(struct tasks *tasks)
{
	memset(tasks, 0, sizeof(*tasks));
	tasks->count = 1;
	tasks->task[0].id = TASK_UNKNOWN;
}

void tasks_book(struct tasks *tasks, const struct counters counters[MODE_COUNT])
{
	struct task *task = &tasks->task[tasks->present];

	if (tasks->stopped)
		return;
	for (int mode = 0; mode < MODE_COUNT; mode++)
		counters_add_difference(&task->counters[mode], &counters[mode], &tasks->since[mode]);
	if (task->polling)
		counters_add_difference(&task->poll, &counters[HOST_USER], &tasks->since[HOST_USER]);
	memcpy(tasks->since, counters, sizeof(tasks->since));
}

bool tasks_poll(struct tasks *tasks, const struct counters counters[MODE_COUNT])
{
	static const struct counters nothing;
	struct task *task = &tasks->task[tasks->present];

	if (tasks->stopped)
		return false;
	tasks_book(tasks, counters);
	bool empty = task->polling && !task->found;
	if (empty) {
		counters_add_difference(&task->empty, &task->poll, &nothing);
		task->empty_polls++;
	}
	task->poll = nothing;
	task->polling = true;
	task->found = false;
	return empty;
}

void tasks_poll_found(struct tasks *tasks)
{
	tasks->task[tasks->present].found = true;
}

void tasks_stop(struct tasks *tasks, const struct counters counters[MODE_COUNT])
{
	struct counters last[MODE_COUNT];
	uint64_t *count = (uint64_t *)last;
	const uint64_t *booked = (const uint64_t *)tasks->since;

	/* If tasks were switched after `counters` were taken, some is booked beyond them; nothing less than nothing comes to that. */
	memcpy(last, counters, sizeof(last));
	for (size_t i = 0; i < (size_t)MODE_COUNT * COUNTER_COUNT; i++)
		if (count[i] < booked[i])
			count[i] = booked[i];
	tasks_book(tasks, last);
	tasks->stopped = true;
}

void tasks_write_name(const char name[TASK_NAME], FILE *out)
{
	for (int i = 0; i < TASK_NAME && name[i]; i++)
		fputc(name[i] >= ' ' && name[i] < 127 && name[i] != '"' && name[i] != '\\' ? name[i] : '?', out);
}

/* A name goes with the id: all idle tasks have id 0, and an id may be used again. 0 where the table is full: unknown. */
static uint32_t entry_of(struct tasks *tasks, uint32_t id, const char name[TASK_NAME])
{
	uint32_t i = 1;

	while (i < tasks->count && (tasks->task[i].id != id || strncmp(tasks->task[i].name, name, TASK_NAME)))
		i++;
	if (i == MOST_TASKS)
		return 0;
	if (i == tasks->count) {
		tasks->count++;
		tasks->task[i].id = id;
		memcpy(tasks->task[i].name, name, TASK_NAME);
	}
	return i;
}

void tasks_name(struct tasks *tasks, const char name[TASK_NAME])
{
	if (tasks->present)
		tasks->present = entry_of(tasks, tasks->task[tasks->present].id, name);
}

void tasks_switch(struct tasks *tasks, const struct counters counters[MODE_COUNT], uint32_t id, const char name[TASK_NAME])
{
	tasks_book(tasks, counters);
	tasks->present = entry_of(tasks, id, name);
}
