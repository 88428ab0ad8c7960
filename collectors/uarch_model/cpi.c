/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpi.h"

struct cpi_stack cpi_stack(const struct counters *c)
{
	struct cpi_stack stack = {
		.base = (double)(c->flow_cycles + c->repeat_cycles + c->chain_cycles),
		.l2 = (double)c->stall_l2,
		.llc = (double)c->stall_llc,
		.memory = (double)c->stall_memory,
		.frontend = (double)c->stall_frontend,
		.dtlb = (double)c->stall_dtlb,
		.itlb = (double)c->stall_itlb,
		.branch = (double)c->stall_branch,
		.mode = (double)c->stall_mode,
	};

#define X(name) stack.total += stack.name;
	CPI_PARTS(X)
#undef X
	return stack;
}
