/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What takes the kernel, or a second CPU. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "micro.h"

static uint64_t syscalls(uint64_t argument, uint64_t n)
{
	(void)argument;
	while (n--)
		syscall(SYS_getppid);
	return 0;
}

/* Under a hypervisor each CPUID leaves the virtual machine (AMD64 Architecture Programmer's Manual vol. 2, 15.9; Intel SDM vol. 3C, 25.1.2). */
static uint64_t exits(uint64_t argument, uint64_t n)
{
	(void)argument;
	while (n--)
		__asm__ volatile("cpuid" ::"a"(0) : "rbx", "rcx", "rdx");
	return 0;
}

/* --- Two threads, of which one at a time goes on ---------------------------------------------------------------- */

enum { MAIN, PARTNER };

/* Whose turn it is: a line of its own, with which nothing else moves. */
static _Alignas(128) _Atomic uint32_t turn = MAIN;

static void hand_over(uint32_t whose)
{
	atomic_store_explicit(&turn, whose, memory_order_release);
}

static long futex(uint32_t *word, int what, uint32_t value)
{
	return syscall(SYS_futex, word, what | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* --- On one CPU: each sleeps until it is its turn */

static void await_turn(uint32_t mine)
{
	uint32_t seen;

	while ((seen = atomic_load_explicit(&turn, memory_order_acquire)) != mine)
		futex((uint32_t *)&turn, FUTEX_WAIT, seen);
}

static void give_turn(uint32_t whose)
{
	hand_over(whose);
	futex((uint32_t *)&turn, FUTEX_WAKE, 1);
}

static void *partner_here(void *unused)
{
	for (;;) {
		await_turn(PARTNER);
		give_turn(MAIN);
	}
	return unused;
}

static void prepare_switch(uint64_t argument)
{
	(void)argument;
	begin_thread(sched_getcpu(), partner_here);
}

static uint64_t switches(uint64_t argument, uint64_t n)
{
	(void)argument;
	for (uint64_t i = 0; i < n; i += 2) {
		give_turn(PARTNER);
		await_turn(MAIN);
	}
	return 0;
}

/* --- On two CPUs. By turns, a quick one would see its turn before it slept. So here a value never changes, and who sleeps must be woken */

static struct {
	_Alignas(128) uint32_t word;
} bed[2];

static void sleep_as(int whom)
{
	futex(&bed[whom].word, FUTEX_WAIT, 0);
}

/* Until there is somebody to wake: whoever was woken last may not sleep yet. */
static void wake(int whom)
{
	while (futex(&bed[whom].word, FUTEX_WAKE, 1) == 0)
		;
}

static void *partner_there(void *unused)
{
	for (;;) {
		sleep_as(PARTNER);
		wake(MAIN);
	}
	return unused;
}

static uint64_t wakes(uint64_t argument, uint64_t n)
{
	(void)argument;
	for (uint64_t i = 0; i < n; i += 2) {
		wake(PARTNER);
		sleep_as(MAIN);
	}
	return 0;
}

/* --- On two CPUs, neither of which sleeps */

static void wait_awake(uint32_t mine)
{
	while (atomic_load_explicit(&turn, memory_order_acquire) != mine)
		;
}

static void *awake_partner(void *unused)
{
	for (;;) {
		wait_awake(PARTNER);
		hand_over(MAIN);
	}
	return unused;
}

static uint64_t line(uint64_t argument, uint64_t n)
{
	(void)argument;
	for (uint64_t i = 0; i < n; i += 2) {
		hand_over(PARTNER);
		wait_awake(MAIN);
	}
	return 0;
}

static uint64_t some_rounds(uint64_t argument)
{
	(void)argument;
	return 100;
}

/* --- Sleep ------------------------------------------------------------------------------------------------------ */

#define SECOND 1000000000ll

static void prepare_sleep(uint64_t microseconds)
{
	(void)microseconds;
	/* By default the kernel may wake 50 us late, to do several at once. */
	if (prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0))
		fail("prctl");
}

/* What is left of the time is how late each came. */
static uint64_t sleeps(uint64_t microseconds, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		struct timespec until;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += (long)microseconds * 1000;
		until.tv_sec += until.tv_nsec / SECOND;
		until.tv_nsec %= SECOND;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	return n * microseconds * 1000;
}

const struct work kernel_work[] = {
	{"syscalls", "0: system calls that do nothing", NULL, syscalls, NULL, NULL},
	{"exits", "0: CPUID, for which a virtual machine asks its hypervisor", NULL, exits, NULL, NULL},
	{"switch", "0: two threads on one CPU wake each other, and sleep", prepare_switch, switches, some_rounds, NULL},
	{"wake", "0: the same on two CPUs", NULL, wakes, some_rounds, partner_there},
	{"line", "0: two threads on two CPUs hand a line of memory to each other, and never sleep", NULL, line, some_rounds, awake_partner},
	{"sleep", "microseconds: sleeps of that length; what counts is by how much each is too long", prepare_sleep, sleeps, NULL, NULL},
	{NULL, NULL, NULL, NULL, NULL, NULL},
};
