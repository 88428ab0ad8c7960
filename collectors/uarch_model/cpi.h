/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The estimate of cycles: interval analysis (Eyerman, Eeckhout, Karkhanis, Smith, "A Mechanistic Performance Model for
 * Superscalar Out-of-Order Processors", ACM TOCS 2009) in its simplest form. Instructions flow at the rate they would have if
 * nothing missed; loops whose instructions wait for each other (chain.h) and repeated string instructions take longer; each kind of
 * miss adds the cycles that the core was found to wait (the stall_ counters).
 */
#ifndef VSPROF_CPI_H
#define VSPROF_CPI_H

#include "counters.h"
#include "profile.h"

#define CPI_PARTS(X) X(base) X(l2) X(llc) X(memory) X(frontend) X(dtlb) X(itlb) X(branch) X(mode)

struct cpi_stack {
#define X(name) double name;
	CPI_PARTS(X)
#undef X
	double total;
};

/* Cycles by cause, of all the instructions in `counters`. */
struct cpi_stack cpi_stack(const struct counters *counters);

#endif
