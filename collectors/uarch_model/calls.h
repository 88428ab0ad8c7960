/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who called the code that runs: a stack of return addresses for each thread, one of its user mode and one of its kernel mode, kept from
 * the calls and returns that come by. No frame pointer and no table is read, so it works for any code, of guests, too.
 *
 * What does not pair is borne. A return that no call belongs to changes nothing: its call was before anybody looked, or it is none. Frames
 * that are left by a jump (longjmp) go with the next return below them. A stack that is full loses its outermost frames.
 *
 * Stacks get numbers only where an event happens: each is a node of a tree of return addresses, whose parent is the stack without its
 * innermost frame.
 */
#ifndef VSPROF_CALLS_H
#define VSPROF_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "branch.h"

#define CALL_DEPTH 64   /* frames of a stack that are kept */
#define CALL_SHED 16    /* outermost ones that go where it is full */
#define CALL_OWNERS 128 /* threads of a core whose stacks are kept; whose ran the longest time ago goes */
#define CALL_NODES (1u << 17)
#define CALL_SLOTS (2 * CALL_NODES)
#define NO_CALLER 0u

struct call_frame {
	uint64_t back; /* return address */
	uint32_t node; /* of the stack up to this frame; 0: not known */
};

struct call_stack {
	uint32_t depth;
	struct call_frame frame[CALL_DEPTH];
};

struct call_owner {
	uint64_t key, last_used;
	struct call_stack stack[2]; /* kernel, user */
};

struct call_node {
	uint64_t back;
	uint32_t parent;
};

struct calls {
	struct call_owner *now;     /* of the thread that runs */
	struct call_owner *side[2]; /* of the host, of the guest: the one that ran last */
	bool guest, user[2];        /* whether the host, and the guest, ran user code last */
	uint64_t switches;
	struct call_owner owner[CALL_OWNERS];
	uint32_t count;            /* nodes, with that which stands for no caller */
	uint64_t lost;             /* frames that found no place in the tree */
	uint32_t slot[CALL_SLOTS]; /* of a hash table: the node */
	struct call_node node[CALL_NODES];
};

void calls_init(struct calls *calls);
/* All numbers given so far are void. */
void calls_forget_nodes(struct calls *calls);
/* From now on the host runs, or the guest, where it was. */
void calls_enter_side(struct calls *calls, bool guest);
/* The thread with this key runs, of the side that runs. */
void calls_switch(struct calls *calls, uint64_t key);
/*
 * From now on user code runs, or the kernel's. That begins with no frame but the place that is gone back to, where it was `entered` from
 * there; with none where the other side ran in between, as when a guest is interrupted that was left in its user code.
 */
void calls_change_mode(struct calls *calls, bool user, bool entered, uint64_t back);
void calls_push(struct call_stack *stack, uint64_t back);
void calls_pop(struct call_stack *stack, uint64_t to, bool user);
uint32_t calls_number(struct calls *calls, bool user);

/* Control left a block of `kind`, behind which the code goes on at `next`, for `to`. */
static inline void calls_follow(struct calls *calls, enum branch_kind kind, bool from_user, uint64_t next, bool to_user, uint64_t to)
{
	struct call_stack *stack = &calls->now->stack[from_user];

	if (kind == BRANCH_CALL || kind == BRANCH_INDIRECT_CALL)
		calls_push(stack, next);
	else if (kind == BRANCH_RETURN && from_user != to_user)
		stack->depth -= stack->depth > 0; /* interrupted at once */
	else if (kind == BRANCH_RETURN)
		calls_pop(stack, to, from_user);
}

/* The number of the stack of the present thread, in that mode. */
static inline uint32_t calls_node(struct calls *calls, bool user)
{
	const struct call_stack *stack = &calls->now->stack[user];
	uint32_t node = stack->depth ? stack->frame[stack->depth - 1].node : NO_CALLER;

	return node ? node : calls_number(calls, user);
}

#endif
