/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole modelled machine, and windows on it: a window is opened and closed by any thread; each core's own thread brings its
 * tables up to date at its next block (`model_tick`), so that no table is written by two threads.
 */
#ifndef VSPROF_MODEL_H
#define VSPROF_MODEL_H

#include <stdio.h>

#include "core.h"
#include "tasks.h"
#include "timeline.h"

#define MOST_HOOKS 64 /* five, and four for each process that has librte_vhost mapped */

/* What a hook says of the poll that the thread which came by is in. */
enum poll_part { POLL_NOTHING, POLL_BEGINS, POLL_FOUND, POLL_FOUND_IF_ANY /* its length or what it returns is not 0 */ };

/* Functions whose calls are counted: those that see each packet say how many the window's counts belong to. */
struct hook {
	char name[32];
	enum poll_part poll;
	uint64_t address;
	uint64_t end;      /* not 0: its returns are counted, anywhere before this address, and what it returns (16 bits) is summed */
	int64_t length_at; /* where the structure in the first argument has a 32-bit length, which is summed; -1: nowhere */
};

struct hook_count {
	uint64_t calls, length;
};

enum window_state { WINDOW_NONE, WINDOW_OPEN, WINDOW_CLOSED };
enum request { REQUEST_NONE, REQUEST_BEGIN = 1, REQUEST_END = 2 }; /* bits: a core that slept has both to do */

struct model {
	struct profile profile;
	struct uncore uncore;
	uint32_t core_count;
	struct core *core[MOST_CORES];
	struct tasks *tasks[MOST_CORES];
	struct hot *hot[MOST_CORES];
	struct timeline *timeline[MOST_CORES];
	struct timeline_plan timeline_plan;
	struct calls *calls[MOST_CORES];

	enum window_state window;
	int64_t (*clock)(void); /* by which windows are timed, ns; CLOCK_MONOTONIC unless somebody sets another */
	int64_t begun_ns, ended_ns;
	struct counters begin[MOST_CORES][MODE_COUNT], end[MOST_CORES][MODE_COUNT];
	uint32_t hook_count;
	struct hook hook[MOST_HOOKS];
	/* By core, hook and mode. */
	struct hook_count hooked[MOST_CORES][MOST_HOOKS][MODE_COUNT], hooked_begin[MOST_CORES][MOST_HOOKS][MODE_COUNT],
		hooked_end[MOST_CORES][MOST_HOOKS][MODE_COUNT];
	uint8_t request[MOST_CORES]; /* of enum request, for the core's own thread */
};

/* Returns NULL without memory. */
struct model *model_new(const struct profile *profile, uint32_t core_count, struct memory memory, uint32_t sample_every);
void model_free(struct model *model);

void model_begin(struct model *model);
void model_end(struct model *model);
/* Core `index`'s own thread calls the function of a hook, or returns from it. */
void model_hooked(struct model *model, uint32_t index, uint32_t hook, uint32_t length);
/* Instructions of all cores since the window's begin (up to its end, if it is closed). */
uint64_t model_instructions(const struct model *model);
/* For core `index`'s own thread, when `retired` has passed `sample_at`. */
void model_tick(struct model *model, uint32_t index);
/* A core's own thread stops executing: whatever was asked of it is done now, for it may sleep long. */
void model_settle(struct model *model, uint32_t index);
/* Write the closed window as JSON. Call when the cores have settled (see `model_settled`). */
bool model_settled(const struct model *model);
void model_write(const struct model *model, FILE *out);
/* The same of when what happened in it. The cores must stand still. */
void model_write_timeline(struct model *model, FILE *out);

#endif
