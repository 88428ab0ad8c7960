/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "calls.h"

#include <string.h>

/*
 * QEMU keeps one translation of a library's code for all processes: of a program's addresses only the place in the page is always the same
 * (see SAME_PLACE in core.h). The kernel's are its own.
 */
#define PLACE 0xfffull

void calls_init(struct calls *calls)
{
	memset(calls, 0, sizeof(*calls));
	calls->count = 1;
	calls->side[0] = calls->side[1] = calls->now = &calls->owner[0];
	/* A guest that was entered before anybody looked is a thread of its own. */
	calls->owner[0].key = UINT64_MAX;
	calls->owner[1].key = UINT64_MAX - 1;
	calls->side[1] = &calls->owner[1];
}

void calls_forget_nodes(struct calls *calls)
{
	for (int i = 0; i < CALL_OWNERS; i++)
		for (int user = 0; user < 2; user++)
			for (int frame = 0; frame < CALL_DEPTH; frame++)
				calls->owner[i].stack[user].frame[frame].node = 0;
	memset(calls->slot, 0, sizeof(calls->slot));
	calls->count = 1;
	calls->lost = 0;
}

void calls_enter_side(struct calls *calls, bool guest)
{
	calls->side[calls->guest] = calls->now;
	calls->guest = guest;
	calls->now = calls->side[guest];
}

void calls_switch(struct calls *calls, uint64_t key)
{
	struct call_owner *oldest = NULL;

	calls->now->last_used = ++calls->switches;
	for (int i = 0; i < CALL_OWNERS; i++) {
		struct call_owner *owner = &calls->owner[i];
		if (owner->key == key && owner->last_used) {
			calls->now = owner;
			return;
		}
		/* Who is to go on at the other side is not the oldest, however long ago it ran. */
		if (owner != calls->side[!calls->guest] && (!oldest || owner->last_used < oldest->last_used))
			oldest = owner;
	}
	oldest->key = key;
	oldest->last_used = calls->switches;
	oldest->stack[0].depth = oldest->stack[1].depth = 0;
	calls->now = oldest;
}

void calls_change_mode(struct calls *calls, bool user, bool entered, uint64_t back)
{
	if (!user && (entered || calls->user[calls->guest]))
		calls->now->stack[false].depth = 0;
	if (entered)
		calls_push(&calls->now->stack[false], back);
	calls->user[calls->guest] = user;
}

void calls_push(struct call_stack *stack, uint64_t back)
{
	if (stack->depth == CALL_DEPTH) {
		stack->depth -= CALL_SHED;
		memmove(stack->frame, stack->frame + CALL_SHED, stack->depth * sizeof(stack->frame[0]));
		for (uint32_t i = 0; i < stack->depth; i++)
			stack->frame[i].node = 0;
	}
	stack->frame[stack->depth++] = (struct call_frame){.back = back};
}

void calls_pop(struct call_stack *stack, uint64_t to, bool user)
{
	uint64_t same = user ? PLACE : UINT64_MAX;

	for (uint32_t depth = stack->depth; depth-- > 0;)
		if (!((stack->frame[depth].back ^ to) & same)) {
			stack->depth = depth;
			return;
		}
}

/* The node of a return address behind those of `parent`; where there is no place left, that of the outer frames alone. */
static uint32_t node_of(struct calls *calls, uint32_t parent, uint64_t back)
{
	uint64_t hash = (back ^ (uint64_t)parent << 40) * 0x9e3779b97f4a7c15ull >> 40;

	for (;; hash++) {
		uint32_t *slot = &calls->slot[hash % CALL_SLOTS];
		if (*slot && (calls->node[*slot].back != back || calls->node[*slot].parent != parent))
			continue;
		if (!*slot && calls->count == CALL_NODES) {
			calls->lost++;
			return parent;
		}
		if (!*slot) {
			calls->node[calls->count] = (struct call_node){.back = back, .parent = parent};
			*slot = calls->count++;
		}
		return *slot;
	}
}

static uint32_t number(struct calls *calls, struct call_stack *stack, uint32_t root)
{
	uint32_t known = stack->depth;

	while (known && !stack->frame[known - 1].node)
		known--;
	uint32_t node = known ? stack->frame[known - 1].node : root;
	for (; known < stack->depth; known++)
		stack->frame[known].node = node = node_of(calls, node, stack->frame[known].back);
	return node;
}

uint32_t calls_number(struct calls *calls, bool user)
{
	struct call_stack *stack = calls->now->stack;

	/* The kernel was called by the program, and goes back to it. */
	return user ? number(calls, &stack[true], NO_CALLER) : number(calls, &stack[false], number(calls, &stack[true], NO_CALLER));
}
