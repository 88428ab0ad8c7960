/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Microbenchmarks of which it is known what they do: the same program for a real processor and for the modelled one.
 *
 *   micro KIND ARGUMENT N                         does it N times between two marks of the processor model
 *                                                 (collectors/uarch_model/decode.h), which are NOPs elsewhere
 *   micro time CPU PARTNER KIND ARGUMENT N TRIES  on CPU, with a second thread on PARTNER, the work's own or one that does
 *                                                 nothing: says "ready", waits for a line, warms up, and prints the
 *                                                 nanoseconds of each of TRIES times N
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "micro.h"

#define MARK(n) __asm__ volatile(".byte 0x0f, 0x1f, 0x80\n\t.long 0x7673500" #n::: "memory")

_Noreturn void fail(const char *what)
{
	fprintf(stderr, "micro: ");
	perror(what);
	exit(1);
}

size_t *random_cycle(size_t count)
{
	size_t *order = malloc(count * sizeof(*order));

	if (!order)
		fail("malloc");
	for (size_t i = 0; i < count; i++)
		order[i] = i;
	for (size_t i = count - 1; i > 0; i--) {
		size_t j = next_random() % i, other = order[i];
		order[i] = order[j];
		order[j] = other;
	}
	return order;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
}

void begin_thread(int cpu, void *(*what)(void *))
{
	pthread_attr_t attributes;
	pthread_t thread;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_attr_init(&attributes);
	pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
	if ((errno = pthread_create(&thread, &attributes, what, NULL)))
		fail("pthread_create");
}

/* Keeps a CPU from others, whose data would take the shared cache; and from sleep: with all of its CPUs asleep, a lab's time is not its own. */
static void *rest(void *unused)
{
	for (;;)
		__builtin_ia32_pause();
	return unused;
}

static const struct work *find(const char *kind)
{
	const struct work *all[] = {core_work, memory_work, kernel_work};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (const struct work *work = all[i]; work->kind; work++)
			if (!strcmp(kind, work->kind))
				return work;
	return NULL;
}

static int usage(void)
{
	const struct work *all[] = {core_work, memory_work, kernel_work};

	fprintf(stderr, "usage: micro KIND ARGUMENT N | micro time CPU PARTNER KIND ARGUMENT N TRIES\n");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (const struct work *work = all[i]; work->kind; work++)
			fprintf(stderr, "  %-10s %s\n", work->kind, work->argument);
	return 2;
}

static void warm_up(const struct work *work, uint64_t argument)
{
	if (work->warm)
		work->run(argument, work->warm(argument));
}

static int count(const struct work *work, uint64_t argument, uint64_t n)
{
	if (work->prepare)
		work->prepare(argument);
	if (work->beside)
		begin_thread(0, work->beside);
	warm_up(work, argument);
	MARK(1);
	work->run(argument, n);
	MARK(2);
	return 0;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t time_once(const struct work *work, uint64_t argument, uint64_t n)
{
	uint64_t begin = now(), asleep = work->run(argument, n), end = now();

	return end - begin - asleep;
}

static int take_times(const struct work *work, uint64_t argument, int partner, uint64_t n, uint64_t tries)
{
	uint64_t *took = calloc(tries, sizeof(*took));

	if (!took)
		fail("calloc");
	if (work->prepare)
		work->prepare(argument);
	puts("ready");
	fflush(stdout);
	getchar();
	/* Not before: others may be begun that wait, too, and it would take the partner's CPU from theirs. */
	begin_thread(partner, work->beside ? work->beside : rest);
	warm_up(work, argument);
	/* Once more by the same way as the others: it brings in the clock's own code, too. */
	time_once(work, argument, n);
	for (uint64_t i = 0; i < tries; i++)
		took[i] = time_once(work, argument, n);
	printf("took");
	for (uint64_t i = 0; i < tries; i++)
		printf(" %llu", (unsigned long long)took[i]);
	/* Where it lies says which of the C library's ways to copy this processor got. */
	printf("\nmemcpy %lx\n", (unsigned long)(void *(*volatile)(void *, const void *, size_t)){memcpy});
	return 0;
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 10);
}

int main(int argc, char **argv)
{
	const struct work *work;

	if (argc == 4 && (work = find(argv[1])))
		return count(work, number(argv[2]), number(argv[3]));
	if (argc == 8 && !strcmp(argv[1], "time") && (work = find(argv[4]))) {
		pin(atoi(argv[2]));
		return take_times(work, number(argv[5]), atoi(argv[3]), number(argv[6]), number(argv[7]));
	}
	return usage();
}
