/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a hypervisor does to the CPUs of a virtual machine, told in a hundredth of a second: how long a line of the cache takes from one CPU
 * to each of some others, and how long a loop takes that uses all that a core can do at once, so that a neighbour on the same core slows it. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAIN, PARTNER, END };

#define TRIES 40
#define HAND_OVERS 100
/* Where this program may not go before those that poll on its CPUs, a try lasts as long as they let it. */
#define MOST_NS 50000000
#define LOOPS 9
#define SUMS 1000
#define VALUES 1024

/* Whose turn it is: a line of its own, with which nothing else moves. */
static _Alignas(128) _Atomic uint32_t turn;

static _Alignas(64) float one[VALUES], other[VALUES], sums[VALUES];

static void fail(const char *what)
{
	fprintf(stderr, "disturbance: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint32_t await(uint32_t mine)
{
	uint32_t seen;

	while ((seen = atomic_load_explicit(&turn, memory_order_acquire)) != mine && seen != END)
		;
	return seen;
}

static void hand_over(uint32_t whose)
{
	atomic_store_explicit(&turn, whose, memory_order_release);
}

static void *partner(void *unused)
{
	while (await(PARTNER) != END)
		hand_over(MAIN);
	return unused;
}

static pthread_t begin_partner(int cpu)
{
	pthread_attr_t attributes;
	pthread_t thread;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_attr_init(&attributes);
	pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
	if ((errno = pthread_create(&thread, &attributes, partner, NULL)))
		fail("a thread on the other CPU");
	return thread;
}

/* Nanoseconds that a line takes to that CPU, or back from it: in the shortest of the tries, in which nothing came between. */
static double line_to(int cpu)
{
	uint64_t shortest = UINT64_MAX, began = now();
	pthread_t thread;

	hand_over(MAIN);
	thread = begin_partner(cpu);
	for (int i = 0; i < TRIES && (i == 0 || now() - began < MOST_NS); i++) {
		uint64_t begin = now(), took;

		for (int j = 0; j < HAND_OVERS; j += 2) {
			hand_over(PARTNER);
			await(MAIN);
		}
		took = now() - begin;
		shortest = took < shortest ? took : shortest;
	}
	hand_over(END);
	pthread_join(thread, NULL);
	return (double)shortest / HAND_OVERS;
}

static int ascending(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* Nanoseconds of one loop over numbers that fit into L1D with their sums: the median of some. */
static double loop(void)
{
	uint64_t took[LOOPS];

	for (int i = 0; i < LOOPS; i++) {
		uint64_t begin = now();

		for (int j = 0; j < SUMS; j++) {
			for (int k = 0; k < VALUES; k++)
				sums[k] = one[k] + other[k];
			/* Or the compiler would leave out all passes but the last. */
			__asm__ volatile("" ::"r"(sums) : "memory");
		}
		took[i] = now() - begin;
	}
	qsort(took, LOOPS, sizeof(took[0]), ascending);
	return (double)took[LOOPS / 2] / SUMS;
}

static int number(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < 0 || value >= CPU_SETSIZE) {
		fprintf(stderr, "disturbance: %s is no CPU\n", text);
		exit(2);
	}
	return (int)value;
}

int main(int count, char **words)
{
	/* Poll-mode threads may have the lowest priority, 1 (`sched: fifo`), and never give way to another of the same. */
	struct sched_param first = {.sched_priority = 2};
	cpu_set_t set;
	int is_first;

	if (count < 3) {
		fprintf(stderr, "usage: disturbance CPU PARTNER...\n");
		return 2;
	}
	CPU_ZERO(&set);
	CPU_SET(number(words[1]), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("going to the CPU");
	is_first = !sched_setscheduler(0, SCHED_FIFO, &first);
	loop();
	printf("cpu %s\nfirst %d\nloop %.1f\n", words[1], is_first, loop());
	for (int i = 2; i < count; i++)
		printf("line %.1f\n", line_to(number(words[i])));
	return 0;
}
