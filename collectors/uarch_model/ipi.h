/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupts that one CPU sends to another, on their way: they take effect at a time of the modelled machine, which the receiver may
 * not have reached yet. One that sleeps is known to wake then; one that runs goes on until then. Times are nanoseconds.
 *
 * It knows nothing of QEMU. One sender at a time, and none while an interrupt is taken: QEMU's own lock sees to that. When the next one
 * arrives may be asked at any time.
 */
#ifndef VSPROF_IPI_H
#define VSPROF_IPI_H

#include "clock.h"

#define IPI_NONE INT64_MAX

struct ipi {
	int64_t arrives[CLOCK_MOST_CPUS]; /* the first that is on its way to each CPU, or IPI_NONE */
};

void ipi_init(struct ipi *ipi);
/*
 * An interrupt reaches CPU `to` at `arrives`. Returns whether it is to be raised at once, because `to` sleeps or has come that far. Else
 * it is on its way: to be raised when ipi_next says so, or before `to` falls asleep.
 */
bool ipi_send(struct ipi *ipi, struct clock *clock, uint32_t to, int64_t arrives);
/* When the next one reaches `cpu`, or IPI_NONE. */
static inline int64_t ipi_next(const struct ipi *ipi, uint32_t cpu)
{
	return __atomic_load_n(&ipi->arrives[cpu], __ATOMIC_RELAXED);
}
/* `cpu` gets what is on its way. Returns whether anything was. */
bool ipi_take(struct ipi *ipi, uint32_t cpu);

#endif
