/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QEMU's translated code thrown away, with a QEMU of the test's own: by the CPU that asks, alone, and the plug-in is told after it. */
#include "qemu_flush.h"

#include <stdint.h>

#include "check.h"

typedef void (*work_t)(void *cpu, uint64_t data);
void *qemu_get_cpu(int index);
void async_safe_run_on_cpu(void *cpu, work_t work, uint64_t data);
void tb_flush(void *cpu);

static int cpus[2], flushed, told;
static void *asked_of;
static work_t left;

void *qemu_get_cpu(int index)
{
	return &cpus[index];
}
void async_safe_run_on_cpu(void *cpu, work_t work, uint64_t data)
{
	(void)data;
	asked_of = cpu;
	left = work;
}
void tb_flush(void *cpu)
{
	CHECK(cpu == asked_of && !told);
	flushed++;
}

static void done(void)
{
	EQUAL(flushed, 1);
	told++;
}

int main(void)
{
	char error[256] = "";

	CHECK(qemu_flush_find(error, sizeof(error)));
	qemu_flush(1, done);
	CHECK(asked_of == &cpus[1] && left);
	EQUAL(flushed + told, 0);
	left(asked_of, 0);
	EQUAL(told, 1);
	return 0;
}
