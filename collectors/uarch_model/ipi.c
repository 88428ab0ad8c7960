/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ipi.h"

void ipi_init(struct ipi *ipi)
{
	for (int i = 0; i < CLOCK_MOST_CPUS; i++)
		ipi->arrives[i] = IPI_NONE;
}

bool ipi_send(struct ipi *ipi, struct clock *clock, uint32_t to, int64_t arrives)
{
	if (clock_call(clock, to, arrives))
		return true;
	/* One interrupt is enough for all that are there when it is taken, so the first counts. */
	if (arrives < ipi_next(ipi, to))
		__atomic_store_n(&ipi->arrives[to], arrives, __ATOMIC_RELAXED);
	return false;
}

bool ipi_take(struct ipi *ipi, uint32_t cpu)
{
	bool any = ipi_next(ipi, cpu) != IPI_NONE;

	__atomic_store_n(&ipi->arrives[cpu], IPI_NONE, __ATOMIC_RELAXED);
	return any;
}
