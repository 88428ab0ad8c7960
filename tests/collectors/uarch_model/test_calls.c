/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks: those of a program whose calls are known, and what does not pair. */
#include "calls.h"

#include <string.h>

#include "check.h"
#include "machine.h"

static struct calls calls;

/* Whether the present stack is these return addresses, from the outermost in. */
#define STACK_IS(user, ...) stack_is(user, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / 8, __LINE__)

static void path_is(uint32_t node, const uint64_t *expected, size_t count, int line)
{
	while (count && node) {
		check_equal(calls.node[node].back, expected[--count], __FILE__, line, "a return address");
		node = calls.node[node].parent;
	}
	check_equal(count, 0, __FILE__, line, "frames that are lacking");
	check_equal(node, NO_CALLER, __FILE__, line, "what is outside of the outermost frame");
}

static void stack_is(bool user, const uint64_t *expected, size_t count, int line)
{
	path_is(calls_node(&calls, user), expected, count, line);
}

static void call(bool user, uint64_t back)
{
	calls_follow(&calls, BRANCH_CALL, user, back, user, 0);
}

static void returns(bool user, uint64_t to)
{
	calls_follow(&calls, BRANCH_RETURN, user, 0, user, to);
}

static void calls_and_returns(void)
{
	calls_init(&calls);
	EQUAL(calls_node(&calls, true), NO_CALLER);
	call(true, 0x1005);
	call(true, 0x2010);
	uint32_t deep = calls_node(&calls, true);
	STACK_IS(true, 0x1005, 0x2010);
	returns(true, 0x2010);
	STACK_IS(true, 0x1005);
	call(true, 0x2010);
	/* The same stack has the same number. */
	EQUAL(calls_node(&calls, true), deep);
	calls_follow(&calls, BRANCH_JUMP, true, 0, true, 0x1005);
	EQUAL(calls_node(&calls, true), deep);
	call(true, 0x2010); /* it calls itself */
	STACK_IS(true, 0x1005, 0x2010, 0x2010);
	returns(true, 0x2010);
	STACK_IS(true, 0x1005, 0x2010);
}

static void what_does_not_pair(void)
{
	calls_init(&calls);
	returns(true, 0x1234);
	EQUAL(calls_node(&calls, true), NO_CALLER);
	call(true, 0x1005);
	call(true, 0x2010);
	call(true, 0x3020);
	/* Over two frames, as longjmp does: they go with the return below them. */
	returns(true, 0x1005);
	EQUAL(calls_node(&calls, true), NO_CALLER);
	call(true, 0x1005);
	returns(true, 0x9999);
	STACK_IS(true, 0x1005);
	/* A library lies elsewhere in another process, at the same place of its page; the kernel does not. */
	returns(true, 0x7f0000002005);
	EQUAL(calls_node(&calls, true), NO_CALLER);
	call(false, 0xffffffff81000005);
	returns(false, 0xffffffff82000005);
	STACK_IS(false, 0xffffffff81000005);
	/* A call and a return right after which an interrupt came: the next block is the kernel's. */
	calls_init(&calls);
	calls_follow(&calls, BRANCH_CALL, true, 0x1005, false, 0xffffffff81000000);
	STACK_IS(true, 0x1005);
	calls_follow(&calls, BRANCH_RETURN, true, 0, false, 0xffffffff81000000);
	EQUAL(calls_node(&calls, true), NO_CALLER);
}

static void the_kernel_stands_on_the_program(void)
{
	const uint64_t kernel = 0xffffffff81000000;

	calls_init(&calls);
	call(true, 0x1005);
	calls_change_mode(&calls, false, true, 0x3002);
	call(false, kernel + 5);
	STACK_IS(false, 0x1005, 0x3002, kernel + 5);
	STACK_IS(true, 0x1005);
	/* It went back without a return that is seen; the next entry begins anew. */
	calls_change_mode(&calls, false, true, 0x4002);
	STACK_IS(false, 0x1005, 0x4002);
	returns(true, 0x1005);
	calls_change_mode(&calls, false, true, 0x5002);
	STACK_IS(false, 0x5002);
}

/* Its user code was left by an exit, and it goes on in the handler of an interrupt that was injected. */
static void a_guest_that_is_interrupted_has_no_frames_of_an_older_call(void)
{
	const uint64_t kernel = 0xffffffff81000000;

	calls_init(&calls);
	calls_enter_side(&calls, true);
	calls_change_mode(&calls, true, false, 0);
	call(true, 0x1005);
	calls_change_mode(&calls, false, true, 0x3002);
	call(false, kernel + 5);
	calls_change_mode(&calls, true, false, 0); /* without a return that is seen */
	call(true, 0x2005);
	calls_enter_side(&calls, false);
	calls_change_mode(&calls, false, false, 0);
	calls_enter_side(&calls, true);
	calls_change_mode(&calls, false, false, 0);
	STACK_IS(false, 0x1005, 0x2005);
	/* Left in its kernel, it goes on where it was. */
	call(false, kernel + 9);
	calls_enter_side(&calls, false);
	calls_change_mode(&calls, false, false, 0);
	calls_enter_side(&calls, true);
	calls_change_mode(&calls, false, false, 0);
	STACK_IS(false, 0x1005, 0x2005, kernel + 9);
}

static void each_thread_and_each_side_has_its_own(void)
{
	calls_init(&calls);
	calls_switch(&calls, 7);
	call(false, 0x7005);
	calls_switch(&calls, 8);
	EQUAL(calls_node(&calls, false), NO_CALLER);
	call(false, 0x8005);
	calls_enter_side(&calls, true);
	EQUAL(calls_node(&calls, false), NO_CALLER);
	call(false, 0xa005);
	calls_switch(&calls, 0xffff888000001000);
	call(false, 0xb005);
	calls_enter_side(&calls, false);
	STACK_IS(false, 0x8005);
	calls_switch(&calls, 7);
	STACK_IS(false, 0x7005);
	calls_enter_side(&calls, true);
	STACK_IS(false, 0xb005);
	/* More threads than have room: who ran the longest time ago is forgotten, but not the other side's. */
	for (uint64_t key = 100; key < 100 + 2 * CALL_OWNERS; key++) {
		calls_switch(&calls, key);
		EQUAL(calls_node(&calls, false), NO_CALLER);
		call(false, key << 12 | 5);
	}
	calls_switch(&calls, 99 + 2 * CALL_OWNERS);
	STACK_IS(false, (99ull + 2 * CALL_OWNERS) << 12 | 5);
	calls_enter_side(&calls, false);
	STACK_IS(false, 0x7005);
}

static void what_is_too_deep(void)
{
	uint64_t expected[CALL_DEPTH];

	calls_init(&calls);
	for (uint64_t i = 0; i <= CALL_DEPTH; i++)
		call(true, 0x10000 + 0x1001 * i);
	/* The outermost are gone. */
	for (uint64_t i = 0; i <= CALL_DEPTH - CALL_SHED; i++)
		expected[i] = 0x10000 + 0x1001 * (i + CALL_SHED);
	stack_is(true, expected, CALL_DEPTH - CALL_SHED + 1, __LINE__);
	/* No more nodes than there is room for: of a stack that has none, what is known outside of it is told. */
	for (uint64_t i = 0; i < 2 * CALL_NODES; i++) {
		call(true, 0x1000000 + 0x1003 * i);
		CHECK(calls_node(&calls, true) < CALL_NODES);
		returns(true, 0x1000000 + 0x1003 * i);
	}
	EQUAL(calls.count, CALL_NODES);
	CHECK(calls.lost >= CALL_NODES);
	calls_forget_nodes(&calls);
	EQUAL(calls.lost, 0);
	stack_is(true, expected, CALL_DEPTH - CALL_SHED + 1, __LINE__);
}

/* A program that calls and returns at random, with a stack of its own. */
static void against_a_naive_stack(void)
{
	static uint64_t stack[100000];
	struct random random = {5};
	size_t depth = 0;

	calls_init(&calls);
	for (int i = 0; i < 300000; i++) {
		if (depth && random_below(&random, 100) < 49 + (depth > 40) * 20) {
			returns(true, stack[--depth]);
		} else if (depth < CALL_DEPTH) {
			stack[depth] = 0x400000 + random_below(&random, 50) * 0x11;
			call(true, stack[depth++]);
		}
		if (random_once_in(&random, 10))
			stack_is(true, stack, depth, __LINE__);
	}
	CHECK(calls.count > 1000);
	EQUAL(calls.lost, 0);
}

/* main calls first and second, both call third, which misses: 3 and 5 times. All as the core sees it. */
#define MAIN 0x400000
#define FIRST 0x401100
#define SECOND 0x402200
#define THIRD 0x403300

static void visit(struct core *core, uint64_t pc, uint32_t kind, uint64_t target)
{
	static struct block blocks[64];
	static int count;
	struct block *block = &blocks[count++];

	*block = (struct block){
		.pc = pc, .length = 16, .instructions = 4, .kind = (uint8_t)kind, .target = target, .user = true, .way = true};
	core_block(core, block);
}

static void third(struct core *core, uint64_t *address, int misses)
{
	visit(core, THIRD, BRANCH_RETURN, 0);
	for (int i = 0; i < misses; i++)
		core_access(core, *address += 0x1000, false);
}

static void a_known_tree(void)
{
	struct profile profile = profile_without_walks();
	struct machine *machine = machine_new(&profile, 1);
	struct core *core = machine->core[0];
	struct hot *hot = calloc(1, sizeof(*hot));
	uint64_t address = 0x100000;
	uint32_t seen = 0;

	CHECK(hot);
	calls_init(&calls);
	core->hot = hot;
	core->calls = &calls;
	visit(core, MAIN, BRANCH_CALL, FIRST);
	visit(core, FIRST, BRANCH_CALL, THIRD);
	third(core, &address, 3);
	visit(core, FIRST + 16, BRANCH_RETURN, 0);
	visit(core, MAIN + 16, BRANCH_INDIRECT_CALL, 0);
	visit(core, SECOND, BRANCH_CALL, THIRD);
	third(core, &address, 5);
	visit(core, SECOND + 16, BRANCH_RETURN, 0);
	visit(core, MAIN + 32, BRANCH_NONE, 0);
	for (uint32_t i = 0; i < HOT_SPOTS; i++) {
		const struct hot_spot *spot = &hot->spot[i];
		if (!spot->used || !spot->count[HOT_l1d_misses])
			continue;
		EQUAL(spot->pc, THIRD);
		bool by_first = spot->count[HOT_l1d_misses] == 3;
		EQUAL(spot->count[HOT_l1d_misses], by_first ? 3 : 5);
		uint64_t expected[] = {by_first ? MAIN + 16 : MAIN + 32, by_first ? FIRST + 16 : SECOND + 16};
		path_is(spot->stack, expected, 2, __LINE__);
		seen++;
	}
	EQUAL(seen, 2);
	EQUAL(calls_node(&calls, true), NO_CALLER);
	free(hot);
	machine_free(machine);
}

int main(void)
{
	calls_and_returns();
	what_does_not_pair();
	the_kernel_stands_on_the_program();
	a_guest_that_is_interrupted_has_no_frames_of_an_older_call();
	each_thread_and_each_side_has_its_own();
	what_is_too_deep();
	against_a_naive_stack();
	a_known_tree();
	return 0;
}
