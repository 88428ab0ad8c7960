/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's clocks taken over, with a QEMU of the test's own: functions of the same names, two of which read their entry of a table in the
 * machine code that a compiler makes of QEMU's. And each way in which it may not look as expected is refused with nothing changed.
 */
#define _GNU_SOURCE
#include "qemu_clock.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#include "check.h"

/* At 0xc0 and 0xd0 are the entries that Debian's QEMU 10.0 has there. */
static void *table[128];
void *fake_table = table;
#define CLOCK_ENTRY table[0xc0 / 8]
#define TICKS_ENTRY table[0xd0 / 8]
static void *accelerator = table;
static int notified;

#define READS_ENTRY(name, offset, fallback)                \
	__asm__(".balign 64\n.globl " name "\n" name ":\n" \
		"    movq fake_table(%rip), %rax\n"        \
		"    movq " offset "(%rax), %rax\n"        \
		"    testq %rax, %rax\n"                   \
		"    je 1f\n"                              \
		"    jmp *%rax\n"                          \
		"1:  jmp " fallback "\n")
READS_ENTRY("cpus_get_virtual_clock", "0xc0", "cpu_get_clock");
READS_ENTRY("cpus_get_elapsed_ticks", "0xd0", "cpu_get_ticks");

int64_t cpu_get_clock(void);
int64_t cpu_get_ticks(void);
int64_t cpus_get_virtual_clock(void);
int64_t cpus_get_elapsed_ticks(void);
int64_t qemu_clock_deadline_ns_all(int clock, int attributes);
void qemu_notify_event(void);
const void *cpus_get_accel(void);
void *object_class_by_name(const char *name);

int64_t cpu_get_clock(void)
{
	return 111;
}
int64_t cpu_get_ticks(void)
{
	return 222;
}
int64_t qemu_clock_deadline_ns_all(int clock, int attributes)
{
	EQUAL(clock, 1);
	EQUAL(attributes, -1);
	return 77;
}
void qemu_notify_event(void)
{
	notified++;
}
const void *cpus_get_accel(void)
{
	return accelerator;
}
void *object_class_by_name(const char *name)
{
	return strcmp(name, "tcg-accel-ops") ? NULL : table;
}

static int64_t our_clock(void)
{
	return 5000;
}
static int64_t our_ticks(void)
{
	return 6000;
}

static void test_both_clocks_follow(void)
{
	char error[256] = "";

	CHECK(qemu_clock_find(error, sizeof(error)));
	EQUAL(qemu_clock_present(), 111);
	EQUAL(qemu_clock_present_ticks(), 222);
	EQUAL(cpus_get_virtual_clock(), 111);
	CHECK(qemu_clock_take(our_clock, our_ticks));
	EQUAL(cpus_get_virtual_clock(), 5000);
	EQUAL(cpus_get_elapsed_ticks(), 6000);
	/* Those of the machine below are still to be had. */
	EQUAL(qemu_clock_present(), 111);
	EQUAL(qemu_clock_deadline(), 77);
	qemu_clock_notify_timers();
	EQUAL(notified, 1);
}

static void test_clocks_in_other_hands_are_left_there(void)
{
	char error[256] = "";

	CHECK(!qemu_clock_find(error, sizeof(error)));
	CHECK(strstr(error, "other hands"));
	EQUAL(cpus_get_virtual_clock(), 5000);
	CLOCK_ENTRY = TICKS_ENTRY = NULL;
}

static void test_another_accelerator_is_refused(void)
{
	char error[256] = "";

	accelerator = NULL;
	CHECK(!qemu_clock_find(error, sizeof(error)));
	CHECK(strstr(error, "not TCG"));
	accelerator = table;
}

/* A table that QEMU's functions do not read: they are asked, and do not follow. */
static void test_a_qemu_that_does_not_follow_is_found_out(void)
{
	char error[256] = "";
	static void *another[128];

	CHECK(qemu_clock_find(error, sizeof(error)));
	fake_table = another;
	CHECK(!qemu_clock_take(our_clock, our_ticks));
	CHECK(!CLOCK_ENTRY && !TICKS_ENTRY);
	fake_table = table;
	EQUAL(cpus_get_virtual_clock(), 111);
}

static int64_t took_ms(long timeout_ns)
{
	struct timespec before, after, timeout = {.tv_nsec = timeout_ns};

	clock_gettime(CLOCK_MONOTONIC, &before);
	EQUAL(ppoll(NULL, 0, &timeout, NULL), 0);
	clock_gettime(CLOCK_MONOTONIC, &after);
	return (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
}

static void test_short_sleeps_last_longer_while_they_may(void)
{
	qemu_clock_let_sleep(true);
	CHECK(took_ms(1000) >= 4);
	CHECK(took_ms(20000000) >= 20);
	/* No sleep at all is none; a machine may pause, but not each time. */
	int64_t least = 1000;
	for (int i = 0; i < 20; i++) {
		int64_t took = took_ms(0);
		least = took < least ? took : least;
	}
	CHECK(least < 4);
	qemu_clock_let_sleep(false);
	least = 1000;
	for (int i = 0; i < 20; i++) {
		int64_t took = took_ms(1000);
		least = took < least ? took : least;
	}
	CHECK(least < 4);
}

int main(void)
{
	test_both_clocks_follow();
	test_clocks_in_other_hands_are_left_there();
	test_another_accelerator_is_refused();
	test_a_qemu_that_does_not_follow_is_found_out();
	test_short_sleeps_last_longer_while_they_may();
	return 0;
}
