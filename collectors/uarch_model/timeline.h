/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What happened on a core when, in a part of a window: a bounded list of spans and marks, each at its time. Where the list is full, the
 * core's part ends early. What a core is in the middle of is followed before, too, so that its part begins with that.
 *
 * Only the core's own thread writes. It knows nothing of QEMU, and takes no modelled time. Times are nanoseconds.
 */
#ifndef VSPROF_TIMELINE_H
#define VSPROF_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tasks.h"

#define MOST_EVENTS 4096 /* of a core */

/* Spans come first: of one kind a core has one at a time, and another one for its guest. */
#define TIMELINE_SPANS(X)                                                                              \
	X(task)    /* a thread has the CPU; value: its id */                                           \
	X(guest)   /* the CPU is in its guest; value: the code by which it left, or NO_VALUE */        \
	X(sleep)   /* the CPU is halted, and wakes */                                                  \
	X(irq)     /* an interrupt is served */                                                        \
	X(softirq) /* one is served; value: the packets that the kernel received in it, or NO_VALUE */ \
	X(upcall)  /* a packet is handed to the switch's user-space process */                         \
	X(work)    /* a thread that moves packets does so */
#define TIMELINE_OTHERS(X)                                                      \
	X(poll)        /* found frames; value: how many. Up to the next poll */ \
	X(empty_polls) /* in a row; value: how many */                          \
	X(wake)        /* a thread is woken; value: its id */                   \
	X(ipi)         /* an interrupt is sent to another CPU; value: to which */

enum timeline_kind {
#define X(name) TIMELINE_##name,
	TIMELINE_SPANS(X) TIMELINE_OTHERS(X)
#undef X
		TIMELINE_KINDS,
	TIMELINE_SPAN_KINDS = TIMELINE_poll
};

#define NO_VALUE UINT32_MAX

struct timeline_event {
	int64_t at, until; /* `until` is OPEN while it lasts */
	uint32_t value;
	uint8_t kind;
	bool guest; /* the guest's kernel did it */
	char name[TASK_NAME];
};

/* Of all cores: which part of the window. */
struct timeline_plan {
	int64_t after, length; /* from the window's begin on; no length: nothing is recorded */
	int64_t from, to;
	uint32_t number; /* of the window; a core that sees a new one begins anew */
};

struct timeline {
	const struct timeline_plan *plan;
	uint32_t number, count;
	bool begun;
	int64_t from, to; /* the plan's, but `to` is earlier where the list was full */
	struct {
		struct timeline_event event;
		bool is;
		uint32_t index; /* in the list, or NOT_LISTED */
	} open[TIMELINE_SPAN_KINDS][2];
	bool polling;
	int64_t poll_at; /* of the present poll */
	uint32_t poll_found;
	int64_t empty_since;
	uint32_t empty; /* polls in a row, without the present one */
	struct timeline_event event[MOST_EVENTS];
};

void timeline_init(struct timeline *timeline, const struct timeline_plan *plan);
static inline bool timeline_wanted(const struct timeline *timeline)
{
	return timeline->plan->length > 0;
}

/* A window begins at `begun`. */
void timeline_plan_begin(struct timeline_plan *plan, int64_t begun);
/* A span begins; another one of the kind ends. `name` may be NULL. */
void timeline_begin(struct timeline *timeline, enum timeline_kind kind, bool guest, int64_t at, uint32_t value, const char *name);
/* It ends, if there is one. A `value` that is not NO_VALUE takes the place of that which it began with. */
void timeline_end(struct timeline *timeline, enum timeline_kind kind, bool guest, int64_t at, uint32_t value);
void timeline_mark(struct timeline *timeline, enum timeline_kind kind, bool guest, int64_t at, uint32_t value, const char *name);
/* To the value of the span that lasts, if there is one, comes one more. */
void timeline_count(struct timeline *timeline, enum timeline_kind kind, bool guest);
/* A poll begins, and has ended the one before. */
void timeline_poll(struct timeline *timeline, int64_t at);
void timeline_poll_found(struct timeline *timeline, uint32_t frames);
/* JSON. Times count from the window's begin at `begun`; what lasts ends at `ended`. The core must stand still. */
void timeline_write(struct timeline *timeline, int64_t begun, int64_t ended, FILE *out);

#endif
