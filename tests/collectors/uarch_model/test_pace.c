/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks as the assembler encodes them, of which it is known by hand how long they take. */
#include "pace.h"

#include "assembled.h"
#include "check.h"

#define I(text) INSTRUCTION(text)
#define EIGHT_NOPS I("nop") I("nop") I("nop") I("nop") I("nop") I("nop") I("nop") I("nop")
#define BEGIN 0x401000ull
#define CYCLES(n) ((uint64_t)((n) * CHAIN_PART))

/* The block of so many instructions at BEGIN, which ends in that kind of branch. */
static struct block paced(const struct profile *profile, const uint8_t *code, enum branch_kind kind, bool fused, bool loop)
{
	static struct pace pace;
	struct block block = {.pc = BEGIN, .kind = (uint8_t)kind, .fused = fused, .target = loop ? BEGIN : 0};
	uint64_t pc = BEGIN;

	pace_begin(&pace, profile);
	for (; *code; code += 1 + code[0]) {
		pace_add(&pace, pc, code + 1, code[0]);
		pc += code[0];
		block.instructions++;
	}
	block.length = (uint16_t)(pc - BEGIN);
	pace_end(&pace, &block);
	return block;
}

#define PLAIN(profile, instructions) paced(profile, ASSEMBLED(instructions), BRANCH_NONE, false, false)

static void the_width_and_a_part_of_the_chain(void)
{
	struct profile profile = default_profile(); /* four a cycle; of a longer chain a fifth of what it takes beyond */

	EQUAL(PLAIN(&profile, EIGHT_NOPS I("nop") I("nop")).flow, CYCLES(2.5));
	EQUAL(PLAIN(&profile, EIGHT_NOPS I("add rax, rbx") I("add rax, rdx")).flow, CYCLES(2.5));
	EQUAL(PLAIN(&profile, EIGHT_NOPS I("imul rax, rbx") I("imul rax, rdx")).flow, CYCLES(2.5) + CYCLES(3.5) / 5);
	profile.core_chain_permille = 1000;
	EQUAL(PLAIN(&profile, EIGHT_NOPS I("imul rax, rbx") I("imul rax, rdx")).flow, CYCLES(6));
	/* A comparison and its branch flow as one. */
	EQUAL(paced(&profile, ASSEMBLED(I("nop") I("nop") I("nop") I("cmp rax, rdx") I("jne 1b")), BRANCH_CONDITIONAL, true, false).flow,
		CYCLES(1));
}

static void lines_that_hold_many(void)
{
	struct profile profile = default_profile();

	EQUAL(pace_of_line(&profile, 40), CYCLES(10));
	profile.core_width = 8;
	profile.core_line_ops = 12;
	profile.core_line_cycles = 2;
	EQUAL(pace_of_line(&profile, 0), 0);
	EQUAL(pace_of_line(&profile, 12), CYCLES(1.5));
	EQUAL(pace_of_line(&profile, 13), CYCLES(3));
	EQUAL(pace_of_line(&profile, 24), CYCLES(3));
	EQUAL(pace_of_line(&profile, 25), CYCLES(5));
	/* Never quicker than the width allows. */
	profile.core_line_cycles = 0;
	EQUAL(pace_of_line(&profile, 24), CYCLES(3));
	profile.core_line_cycles = 2;
	/* Sixteen of one byte in a line, and sixteen of eight bytes in two. */
	EQUAL(PLAIN(&profile, EIGHT_NOPS EIGHT_NOPS).flow, CYCLES(3));
#define LONG_NOP I("nop qword ptr [rax + rax + 1000]")
#define EIGHT_LONG_NOPS LONG_NOP LONG_NOP LONG_NOP LONG_NOP LONG_NOP LONG_NOP LONG_NOP LONG_NOP
	EQUAL(PLAIN(&profile, EIGHT_LONG_NOPS EIGHT_LONG_NOPS).flow, CYCLES(2));
	/* The thirteenth is one with the twelfth. */
	EQUAL(paced(&profile, ASSEMBLED(EIGHT_NOPS I("nop") I("nop") I("nop") I("cmp rax, rdx") I("jne 1b")), BRANCH_CONDITIONAL, true,
		      false)
			.flow,
		CYCLES(1.5));
}

/* The part of a block's time in which more could have begun, in SPARE_PARTs. */
static void spare(void)
{
	struct profile profile = default_profile();

	EQUAL(PLAIN(&profile, EIGHT_NOPS).spare, 0);
	profile.core_chain_permille = 1000;
	EQUAL(PLAIN(&profile, EIGHT_NOPS I("imul rax, rbx") I("imul rax, rdx")).spare, 3.5 * SPARE_PART);
	/* Not while a slow instruction runs. */
	profile.cost_rdtsc = 24;
	EQUAL(PLAIN(&profile, I("rdtsc") I("nop") I("nop") I("nop")).spare, 0);
	profile.core_width = 8;
	profile.core_line_ops = 12;
	profile.core_line_cycles = 2;
	EQUAL(PLAIN(&profile, EIGHT_NOPS EIGHT_NOPS).spare, 1 * SPARE_PART);
	/* Two that are fused as one leave no more room than one. */
	EQUAL(paced(&profile, ASSEMBLED(EIGHT_NOPS I("nop") I("nop") I("nop") I("cmp rax, rdx") I("jne 1b")), BRANCH_CONDITIONAL, true,
		      false)
			.spare,
		0);
	profile.l1d_latency = 1000;
	EQUAL(PLAIN(&profile, I("mov rdx, [rdx]")).spare, UINT8_MAX);
}

static void slow_instructions(void)
{
	struct profile profile = default_profile();

	profile.cost_rdtsc = 24;
	profile.cost_lfence = 5;
	profile.cost_mfence = 33;
	profile.cost_popf = 17;
	profile.cost_xsave = 140;
	profile.cost_xrstor = 130;
	profile.cost_wrfsbase = 45;
	profile.core_chain_permille = 0;
	EQUAL(PLAIN(&profile, I("rdtsc") I("nop") I("nop") I("nop")).flow, CYCLES(25));
	EQUAL(PLAIN(&profile, I("rdtscp") I("nop") I("nop") I("nop")).flow, CYCLES(30));
	EQUAL(PLAIN(&profile, I("lfence") I("mfence") I("popfq") I("nop")).flow, CYCLES(5 + 33 + 17 + 1));
	EQUAL(PLAIN(&profile, I("xsave64 [rdi]") I("xrstor64 [rdi]") I("wrfsbase rax") I("nop")).flow, CYCLES(140 + 130 + 45 + 1));
	/* As much as there is room for, which is some 1023 cycles. */
	profile.cost_xsave = 2000;
	EQUAL(PLAIN(&profile, I("xsave64 [rdi]")).flow, UINT16_MAX);
}

static void conditions(void)
{
	struct profile profile = default_profile();
	const uint8_t *code = ASSEMBLED(I("mov rdx, [rdx]") I("cmp byte ptr [rdx], 0") I("jne 1b"));

	profile.core_chain_permille = 0;
	/* Two loads and a comparison take nine cycles, of which the three instructions take none that is whole. */
	EQUAL(paced(&profile, code, BRANCH_CONDITIONAL, false, false).resolve, 9);
	/* What the flow has of it already is not waited for again: a fifth of what the chain takes beyond its 0.75. */
	profile.core_chain_permille = 200;
	EQUAL(paced(&profile, code, BRANCH_CONDITIONAL, false, false).resolve, 7);
	EQUAL(paced(&profile, code, BRANCH_JUMP, false, false).resolve, 0);
	EQUAL(paced(&profile, ASSEMBLED(EIGHT_NOPS I("cmp rax, 0") I("jne 1b")), BRANCH_CONDITIONAL, false, false).resolve, 0);
	profile.l1d_latency = 1000;
	EQUAL(paced(&profile, code, BRANCH_CONDITIONAL, false, false).resolve, UINT8_MAX);
}

static void loops(void)
{
	struct profile profile = default_profile();
	const uint8_t *code = ASSEMBLED(I("imul rax, rbx") I("imul rax, rdx") I("dec rcx") I("jne 1b"));

	profile.core_chain_permille = 0;
	EQUAL(paced(&profile, code, BRANCH_CONDITIONAL, false, true).chain, CYCLES(5));
	EQUAL(paced(&profile, code, BRANCH_CONDITIONAL, false, false).chain, 0);
	/* Its flow is longer than its chain. */
	EQUAL(paced(&profile, ASSEMBLED(EIGHT_NOPS I("dec rcx") I("jne 1b")), BRANCH_CONDITIONAL, false, true).chain, 0);
	profile.l1d_latency = 2000;
	EQUAL(paced(&profile, ASSEMBLED(I("mov rdx, [rdx]") I("dec rcx") I("jne 1b")), BRANCH_CONDITIONAL, false, true).chain, UINT16_MAX);
}

int main(void)
{
	the_width_and_a_part_of_the_chain();
	lines_that_hold_many();
	spare();
	slow_instructions();
	conditions();
	loops();
	return 0;
}
