/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qemu_flush.h"

#include <stdint.h>

#include "qemu_clock.h"

/* QEMU's union run_on_cpu_data: of eight bytes, which is passed like a number. */
typedef void (*work_t)(void *cpu, uint64_t data);

static struct {
	void *(*cpu)(int index);
	void (*alone)(void *cpu, work_t work, uint64_t data);
	void (*flush)(void *cpu);
} qemu;
static void (*when_done)(void);

bool qemu_flush_find(char *error, size_t size)
{
	const struct qemu_function wanted[] = {
		{"qemu_get_cpu", &qemu.cpu},
		{"async_safe_run_on_cpu", &qemu.alone},
		{"tb_flush", &qemu.flush},
	};

	return qemu_find_functions(wanted, sizeof(wanted) / sizeof(wanted[0]), error, size);
}

/* No CPU runs: then tb_flush does it at once. */
static void flush(void *cpu, uint64_t data)
{
	(void)data;
	qemu.flush(cpu);
	when_done();
}

void qemu_flush(int cpu, void (*done)(void))
{
	when_done = done;
	qemu.alone(qemu.cpu(cpu), flush, 0);
}
