/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's interrupts taken over, with a QEMU of the test's own: a function of the same name that reads its entry of a table in the machine
 * code that a compiler makes of QEMU's. And each way in which it may not look as expected is refused with nothing changed.
 */
#include "qemu_interrupt.h"

#include <string.h>

#include "check.h"

/* At 0xb8 is the entry that Debian's QEMU 10.0 has there. */
static void *table[128];
void *fake_table = table;
#define ENTRY table[0xb8 / 8]

__asm__(".balign 64\n.globl cpu_interrupt\ncpu_interrupt:\n"
	"    movq fake_table(%rip), %rax\n"
	"    movq 0xb8(%rax), %rax\n"
	"    jmp *%rax\n"
	"    .skip 64, 0x90\n");

void cpu_interrupt(void *cpu, int request);
void tcg_handle_interrupt(void *cpu, int request);
void *qemu_get_cpu(int index);
void bql_lock_impl(const char *file, int line);
void bql_unlock(void);
void *qemu_get_aio_context(void);
void aio_bh_schedule_oneshot_full(void *loop, void (*call)(void *), void *of, const char *name);
void *object_class_by_name(const char *name);

static int32_t cpus[2][4096];
static int missing = -1, locks, last_request, later_calls;
static void *last_cpu;
static bool known = true;

void tcg_handle_interrupt(void *cpu, int request)
{
	last_cpu = cpu;
	last_request = request;
}
void *qemu_get_cpu(int index)
{
	return index == missing ? NULL : cpus[index];
}
void bql_lock_impl(const char *file, int line)
{
	CHECK(strstr(file, "qemu_interrupt") && line > 0);
	locks++;
}
void bql_unlock(void)
{
	locks--;
}
void *qemu_get_aio_context(void)
{
	return &later_calls;
}
void aio_bh_schedule_oneshot_full(void *loop, void (*call)(void *), void *of, const char *name)
{
	CHECK(loop == &later_calls && name);
	call(of);
}
void *object_class_by_name(const char *name)
{
	return known && !strcmp(name, "tcg-accel-ops") ? table : NULL;
}

static int seen_cpu = -1, seen_request;

static void seen(int cpu, int request)
{
	seen_cpu = cpu;
	seen_request = request;
}

static void later(void *of)
{
	CHECK(!of);
	later_calls++;
}

static void refused(uint32_t cpu_count, const char *why)
{
	char error[256] = "";

	CHECK(!qemu_interrupt_find(cpu_count, error, sizeof(error)));
	if (!strstr(error, why)) {
		fprintf(stderr, "\"%s\" does not say \"%s\"\n", error, why);
		exit(1);
	}
}

static void test_what_looks_otherwise_is_refused(void)
{
	refused(2, "in other hands");
	ENTRY = (void *)seen;
	refused(2, "in other hands");
	CHECK(ENTRY == (void *)seen);
	ENTRY = (void *)tcg_handle_interrupt;
	missing = 1;
	refused(2, "CPU 1");
	missing = -1;
	known = false;
	refused(2, "not as we know it");
	known = true;
	CHECK(ENTRY == (void *)tcg_handle_interrupt);
}

#define INDEX 130 /* as ints: where the test's CPUs have their index, and four behind it the exception */

static void test_what_vmrun_leaves_behind_is_taken_away(void)
{
	char error[256] = "";

	for (int i = 0; i < 2; i++) {
		cpus[i][INDEX - 20] = i; /* but what follows is another's */
		cpus[i][INDEX - 18] = 7 + i;
		cpus[i][INDEX] = i;
		cpus[i][INDEX + 1] = -1;
		cpus[i][INDEX + 2] = 0x80000;
		cpus[i][INDEX + 4] = -1;
	}
	CHECK(qemu_interrupt_find(2, error, sizeof(error)));
	CHECK(!qemu_interrupt_mend(1, 236));
	cpus[1][INDEX + 4] = 236;
	CHECK(!qemu_interrupt_mend(0, 236));
	CHECK(!qemu_interrupt_mend(1, 235));
	EQUAL(cpus[1][INDEX + 4], 236);
	CHECK(qemu_interrupt_mend(1, 236));
	EQUAL(cpus[1][INDEX + 4], -1);
	CHECK(!qemu_interrupt_mend(1, 236));
}

static void test_each_request_is_seen_and_can_be_passed_on(void)
{
	char error[256] = "";
	int stranger;

	CHECK(qemu_interrupt_find(2, error, sizeof(error)));
	cpu_interrupt(cpus[1], 2);
	CHECK(last_cpu == cpus[1] && last_request == 2 && seen_cpu == -1);
	qemu_interrupt_take(seen);
	cpu_interrupt(cpus[1], QEMU_INTERRUPT_POLL);
	EQUAL(seen_cpu, 1);
	EQUAL(seen_request, QEMU_INTERRUPT_POLL);
	EQUAL(last_request, 2);
	qemu_interrupt_raise(0, QEMU_INTERRUPT_POLL);
	CHECK(last_cpu == cpus[0] && last_request == QEMU_INTERRUPT_POLL);
	/* A CPU that came later. */
	cpu_interrupt(&stranger, 4);
	CHECK(last_cpu == &stranger && last_request == 4 && seen_cpu == 1);
	refused(2, "in other hands");
}

static void test_the_lock_and_the_main_loop(void)
{
	qemu_interrupt_lock();
	EQUAL(locks, 1);
	qemu_interrupt_unlock();
	EQUAL(locks, 0);
	qemu_interrupt_later(later);
	EQUAL(later_calls, 1);
}

int main(void)
{
	test_what_looks_otherwise_is_refused();
	test_what_vmrun_leaves_behind_is_taken_away();
	test_each_request_is_seen_and_can_be_passed_on();
	test_the_lock_and_the_main_loop();
	return 0;
}
