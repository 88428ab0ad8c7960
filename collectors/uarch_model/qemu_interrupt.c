/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qemu_interrupt.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "qemu_clock.h"

typedef void (*handle_t)(void *cpu, int request);

static struct {
	handle_t interrupt, handle; /* what all of QEMU calls, and what TCG does then */
	void *(*cpu)(int index);
	void (*lock)(const char *file, int line);
	void (*unlock)(void);
	void *(*main_loop)(void);
	void (*later)(void *loop, void (*call)(void *), void *of, const char *name);
	void *(*class_by_name)(const char *name);
} qemu;
static handle_t *entry;
static void *cpus[CLOCK_MOST_CPUS];
static qemu_interrupt_seen_t seen_by;
static int32_t *exceptions[CLOCK_MOST_CPUS]; /* each CPU's exception_index; NULL where it was not found */

static bool find_functions(char *error, size_t size)
{
	const struct qemu_function wanted[] = {
		{"cpu_interrupt", &qemu.interrupt},
		{"tcg_handle_interrupt", &qemu.handle},
		{"qemu_get_cpu", &qemu.cpu},
		{"bql_lock_impl", &qemu.lock},
		{"bql_unlock", &qemu.unlock},
		{"qemu_get_aio_context", &qemu.main_loop},
		{"aio_bh_schedule_oneshot_full", &qemu.later},
		{"object_class_by_name", &qemu.class_by_name},
	};

	return qemu_find_functions(wanted, sizeof(wanted) / sizeof(wanted[0]), error, size);
}

/*
 * In QEMU's struct CPUState: cpu_index, cluster_index (-1: none), tcg_cflags, halted, exception_index, an int each. The first place that
 * is so in all CPUs is taken; what is found there is changed only where it is what it must be at that very moment (qemu_interrupt_mend).
 */
#define SEARCHED_INTS 1024 /* a CPUState has more than twice as many */
#define HIGHEST_EXCEPTION 0x20000

static bool is_index(const int32_t *at, uint32_t index)
{
	return at[0] == (int32_t)index && at[1] == -1 && at[2] == ((const int32_t *)cpus[0])[at - (const int32_t *)cpus[index] + 2] &&
	       (at[3] == 0 || at[3] == 1) && at[4] >= -1 && at[4] < HIGHEST_EXCEPTION;
}

static void find_exceptions(uint32_t cpu_count)
{
	for (size_t i = 0; cpu_count > 1 && i + 4 < SEARCHED_INTS; i++) {
		uint32_t alike = 0;
		while (alike < cpu_count && is_index((const int32_t *)cpus[alike] + i, alike))
			alike++;
		if (alike < cpu_count)
			continue;
		for (uint32_t cpu = 0; cpu < cpu_count; cpu++)
			exceptions[cpu] = (int32_t *)cpus[cpu] + i + 4;
		return;
	}
}

bool qemu_interrupt_mend(int cpu, int32_t vector)
{
	if (!exceptions[cpu] || *exceptions[cpu] != vector)
		return false;
	*exceptions[cpu] = -1;
	return true;
}

bool qemu_interrupt_find(uint32_t cpu_count, char *error, size_t size)
{
	if (!find_functions(error, size))
		return false;
	char *table = qemu.class_by_name("tcg-accel-ops");
	uint32_t at = qemu_clock_entry((const void *)qemu.interrupt);
	if (!table || !at)
		return snprintf(error, size, "the code of this QEMU's interrupts is not as we know it (entry at 0x%x)", at), false;
	entry = (void *)(table + at);
	if (*entry != qemu.handle)
		return snprintf(error, size, "the interrupts of this QEMU are in other hands already (entry at 0x%x)", at), false;
	for (uint32_t i = 0; i < cpu_count; i++)
		if (!(cpus[i] = qemu.cpu((int)i)))
			return snprintf(error, size, "this QEMU does not know its CPU %u", i), false;
	find_exceptions(cpu_count);
	return true;
}

static void handle(void *cpu, int request)
{
	for (int i = 0; i < CLOCK_MOST_CPUS; i++)
		if (cpus[i] == cpu) {
			seen_by(i, request);
			return;
		}
	qemu.handle(cpu, request);
}

void qemu_interrupt_take(qemu_interrupt_seen_t seen)
{
	seen_by = seen;
	*entry = handle;
}

void qemu_interrupt_lock(void)
{
	qemu.lock(__FILE__, __LINE__);
}

void qemu_interrupt_unlock(void)
{
	qemu.unlock();
}

void qemu_interrupt_raise(int cpu, int request)
{
	qemu.handle(cpus[cpu], request);
}

void qemu_interrupt_later(void (*call)(void *))
{
	qemu.later(qemu.main_loop(), call, NULL, "uarch_model");
}
