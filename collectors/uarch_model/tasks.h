/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts by thread of the emulated host's kernel, per core: what a core counted between two of its task switches. And of a poll-mode
 * thread, what its polls that found nothing took: a poll lasts from its begin to that of the thread's next one.
 */
#ifndef VSPROF_TASKS_H
#define VSPROF_TASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "counters.h"

#define MOST_TASKS 256
#define TASK_NAME 16             /* TASK_COMM_LEN */
#define TASK_UNKNOWN 0xffffffffu /* nobody was switched to yet, or the table is full */

struct task {
	uint32_t id; /* the thread's pid */
	char name[TASK_NAME];
	struct counters counters[MODE_COUNT];
	bool polling, found;   /* inside a poll, whose begin was seen; it found something */
	struct counters poll;  /* the present poll's so far, in user mode: what interrupts it is not its own */
	uint64_t empty_polls;  /* polls that found nothing */
	struct counters empty; /* theirs */
};

struct tasks {
	uint32_t count, present; /* the task that runs */
	bool stopped;            /* nothing is booked any longer; who runs is followed all the same */
	struct task task[MOST_TASKS];
	struct counters since[MODE_COUNT]; /* the core's counters when the present one began */
};

void tasks_init(struct tasks *tasks);
/* Book what `counters` gained for the present task; go on with the task `id` called `name`. */
void tasks_switch(struct tasks *tasks, const struct counters counters[MODE_COUNT], uint32_t id, const char name[TASK_NAME]);
/*
 * The present task is called `name` by now, as after exec: what it gained since it was switched to, or since it was last booked, is booked
 * under that name.
 */
void tasks_name(struct tasks *tasks, const char name[TASK_NAME]);
/* Book what was gained so far; the same task goes on. */
void tasks_book(struct tasks *tasks, const struct counters counters[MODE_COUNT]);
/* The present task begins a poll, and has ended the one before. Returns whether that one was seen whole and found nothing. */
bool tasks_poll(struct tasks *tasks, const struct counters counters[MODE_COUNT]);
/* Its present poll has found something. */
void tasks_poll_found(struct tasks *tasks);
/* A name is whatever the emulated host's programs set: only what JSON takes as it is gets through. */
void tasks_write_name(const char name[TASK_NAME], FILE *out);
/* Book what was gained up to `counters`, and nothing from then on. */
void tasks_stop(struct tasks *tasks, const struct counters counters[MODE_COUNT]);

#endif
