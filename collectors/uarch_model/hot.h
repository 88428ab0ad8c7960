/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where it happens: events by block of code, thread, mode and call stack. Misses are all counted; instructions are sampled, one block in so
 * many instructions. A table that is full drops what is new, and counts what it dropped. What a poll-mode thread does in polls that find
 * nothing is not in it: the events of its present poll are held back until it is known what it finds.
 */
#ifndef VSPROF_HOT_H
#define VSPROF_HOT_H

#include <stdbool.h>
#include <stdint.h>

#define HOT_KINDS(X) X(samples) X(l1d_misses) X(l1i_misses) X(l2_misses) X(llc_misses) X(dtlb_walks) X(itlb_walks) X(branch_misses)

enum hot_kind {
#define X(name) HOT_##name,
	HOT_KINDS(X)
#undef X
		HOT_KIND_COUNT
};

extern const char *const hot_kind_names[HOT_KIND_COUNT];

#define HOT_SPOTS (1u << 17)

struct hot_spot {
	uint64_t pc;
	uint32_t thread;
	uint32_t stack; /* as of calls_node */
	uint8_t mode;
	bool used;
	uint32_t count[HOT_KIND_COUNT];
};

#define HOT_HELD 256 /* events of one poll: one with more does not wait for its end */

struct hot {
	uint64_t dropped;
	bool holding;
	uint32_t poller, held_count;
	struct {
		uint64_t pc;
		uint32_t stack;
		enum hot_kind kind;
	} held[HOT_HELD];
	struct hot_spot *last; /* that of the event before: many are the next one's, too */
	struct hot_spot spot[HOT_SPOTS];
};

void hot_clear(struct hot *hot);
void hot_add(struct hot *hot, uint64_t pc, uint32_t stack, uint32_t thread, uint8_t mode, enum hot_kind kind);
/* `thread` begins a poll: what is held is of its poll before, which found nothing (`empty`) or not, or of another thread's. */
void hot_poll(struct hot *hot, uint32_t thread, bool empty);
/* Nothing is held back any longer. */
void hot_release(struct hot *hot);

#endif
