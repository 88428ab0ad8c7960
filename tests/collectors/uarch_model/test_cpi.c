/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cycles by cause: the flow of instructions, and the stalls as they were counted. */
#include "cpi.h"

#include <math.h>

#include "check.h"

static void check_close(double found, double expected)
{
	if (fabs(found - expected) < 1e-6)
		return;
	fprintf(stderr, "%f, not %f\n", found, expected);
	exit(1);
}

int main(void)
{
	struct counters counters = {0};
	struct cpi_stack stack = cpi_stack(&counters);

	check_close(stack.total, 0);

	counters = (struct counters){
		.instructions = 1000,
		.flow_cycles = 500,
		.stall_l2 = 1,
		.stall_llc = 20,
		.stall_memory = 300,
		.stall_frontend = 4000,
		.stall_dtlb = 50000,
		.stall_itlb = 600000,
		.stall_branch = 7000000,
		.stall_mode = 80000000,
		/* Events that cost nothing by themselves: what they cost stands in the stalls. */
		.l1d_misses = 12345,
		.branch_misses = 12345,
		.walk_cycles = 12345,
	};
	stack = cpi_stack(&counters);
	check_close(stack.base, 500);
	check_close(stack.l2, 1);
	check_close(stack.llc, 20);
	check_close(stack.memory, 300);
	check_close(stack.frontend, 4000);
	check_close(stack.dtlb, 50000);
	check_close(stack.itlb, 600000);
	check_close(stack.branch, 7000000);
	check_close(stack.mode, 80000000);
	check_close(stack.total, 87654821);

	/* No miss, but more than the flow of instructions. */
	counters.repeat_cycles = 900000000;
	stack = cpi_stack(&counters);
	check_close(stack.base, 500.0 + 900000000);
	check_close(stack.total, 500.0 + 987654321);

	/* More instructions than 32 bits hold. */
	counters = (struct counters){.flow_cycles = 66000000000000ull};
	check_close(cpi_stack(&counters).total, 66000000000000.0);
	return 0;
}
