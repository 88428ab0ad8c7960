/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hot.h"

#include <string.h>

#include "counters.h"

#define PROBES 16

const char *const hot_kind_names[HOT_KIND_COUNT] = {
#define X(name) #name,
	HOT_KINDS(X)
#undef X
};

void hot_clear(struct hot *hot)
{
	memset(hot, 0, sizeof(*hot));
}

static inline bool is_of(const struct hot_spot *spot, uint64_t pc, uint32_t stack, uint32_t thread, uint8_t mode)
{
	return spot->pc == pc && spot->stack == stack && spot->thread == thread && spot->mode == mode;
}

static void add(struct hot *hot, uint64_t pc, uint32_t stack, uint32_t thread, uint8_t mode, enum hot_kind kind)
{
	if (hot->last && is_of(hot->last, pc, stack, thread, mode)) {
		hot->last->count[kind]++;
		return;
	}
	/* Fibonacci hashing: neighbouring addresses spread over the table. */
	uint64_t hash = (pc ^ (uint64_t)stack << 24 ^ (uint64_t)thread << 40 ^ (uint64_t)mode << 62) * 0x9e3779b97f4a7c15ull >> 40;

	for (uint32_t i = 0; i < PROBES; i++) {
		struct hot_spot *spot = &hot->spot[(hash + i) % HOT_SPOTS];
		if (!spot->used)
			*spot = (struct hot_spot){.pc = pc, .stack = stack, .thread = thread, .mode = mode, .used = true};
		if (is_of(spot, pc, stack, thread, mode)) {
			spot->count[kind]++;
			hot->last = spot;
			return;
		}
	}
	hot->dropped++;
}

void hot_add(struct hot *hot, uint64_t pc, uint32_t stack, uint32_t thread, uint8_t mode, enum hot_kind kind)
{
	/* In user mode: what interrupts a poll is not its own. */
	if (hot->holding && thread == hot->poller && mode == HOST_USER) {
		if (hot->held_count < HOT_HELD) {
			hot->held[hot->held_count].pc = pc;
			hot->held[hot->held_count].stack = stack;
			hot->held[hot->held_count++].kind = kind;
			return;
		}
		hot_release(hot);
	}
	add(hot, pc, stack, thread, mode, kind);
}

void hot_poll(struct hot *hot, uint32_t thread, bool empty)
{
	if (empty && thread == hot->poller)
		hot->held_count = 0;
	hot_release(hot);
	hot->holding = true;
	hot->poller = thread;
}

void hot_release(struct hot *hot)
{
	for (uint32_t i = 0; i < hot->held_count; i++)
		add(hot, hot->held[i].pc, hot->held[i].stack, hot->poller, HOST_USER, hot->held[i].kind);
	hot->held_count = 0;
	hot->holding = false;
}
