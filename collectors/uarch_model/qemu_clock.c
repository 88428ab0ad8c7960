/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "qemu_clock.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "qemu_api.h"

#define ALL_TIMERS (~0)
#define VIRTUAL_CLOCK 1 /* QEMU_CLOCK_VIRTUAL */
#define CODE_BYTES 48   /* in which a function reads its entry of the table */
#define TABLE_BYTES 1024
#define SHORTEST_SLEEP_NS 5000000 /* timers of QEMU's that are about real time may be late by this */

static struct {
	int64_t (*present)(void), (*present_ticks)(void);       /* of the machine that runs QEMU, what TCG falls back to */
	int64_t (*virtual_clock)(void), (*elapsed_ticks)(void); /* what all of QEMU asks */
	int64_t (*deadline)(int clock, int attributes);
	void (*notify)(void);
	const void *(*accelerator)(void);
	void *(*class_by_name)(const char *name);
} qemu;
static int64_t (**clock_entry)(void), (**ticks_entry)(void);

bool qemu_find_functions(const struct qemu_function *wanted, size_t count, char *error, size_t size)
{
	for (size_t i = 0; i < count; i++) {
		void *found = dlsym(RTLD_DEFAULT, wanted[i].name);
		if (!found)
			return snprintf(error, size, "this QEMU has no function %s", wanted[i].name), false;
		memcpy(wanted[i].to, &found, sizeof(found));
	}
	return true;
}

static bool find_functions(char *error, size_t size)
{
	const struct qemu_function wanted[] = {
		{"cpu_get_clock", &qemu.present},
		{"cpu_get_ticks", &qemu.present_ticks},
		{"cpus_get_virtual_clock", &qemu.virtual_clock},
		{"cpus_get_elapsed_ticks", &qemu.elapsed_ticks},
		{"qemu_clock_deadline_ns_all", &qemu.deadline},
		{"qemu_notify_event", &qemu.notify},
		{"cpus_get_accel", &qemu.accelerator},
		{"object_class_by_name", &qemu.class_by_name},
	};

	return qemu_find_functions(wanted, sizeof(wanted) / sizeof(wanted[0]), error, size);
}

uint32_t qemu_clock_entry(const void *function)
{
	static const uint8_t load[] = {0x48, 0x8b, 0x80};
	const uint8_t *code = function;
	uint32_t offset = 0;

	for (int i = 0; i < CODE_BYTES; i++)
		if (!memcmp(code + i, load, sizeof(load))) {
			if (offset)
				return 0;
			memcpy(&offset, code + i + sizeof(load), sizeof(offset));
		}
	return offset % sizeof(void *) || offset >= TABLE_BYTES ? 0 : offset;
}

bool qemu_clock_find(char *error, size_t size)
{
	if (!find_functions(error, size))
		return false;
	char *table = qemu.class_by_name("tcg-accel-ops");
	if (!table || table != qemu.accelerator())
		return snprintf(error, size, "the accelerator of this QEMU is not TCG as we know it"), false;
	uint32_t clock_at = qemu_clock_entry((const void *)qemu.virtual_clock),
		 ticks_at = qemu_clock_entry((const void *)qemu.elapsed_ticks);
	/* Between the two is the entry that sets the clock. */
	if (!clock_at || ticks_at != clock_at + 2 * sizeof(void *))
		return snprintf(error, size, "the code of this QEMU's clocks is not as we know it (entries at 0x%x and 0x%x)", clock_at,
			       ticks_at),
		       false;
	clock_entry = (void *)(table + clock_at);
	ticks_entry = (void *)(table + ticks_at);
	if (*clock_entry || *ticks_entry)
		return snprintf(error, size, "the clocks of this QEMU are in other hands already (icount?)"), false;
	return true;
}

int64_t qemu_clock_present(void)
{
	return qemu.present();
}

int64_t qemu_clock_present_ticks(void)
{
	return qemu.present_ticks();
}

bool qemu_clock_take(int64_t (*clock)(void), int64_t (*ticks)(void))
{
	*ticks_entry = ticks;
	*clock_entry = clock;
	/* No time passes for this thread between the two calls: a clock of QEMU's own would have gone on. */
	if (qemu.virtual_clock() == clock() && qemu.elapsed_ticks() == ticks())
		return true;
	*clock_entry = NULL;
	*ticks_entry = NULL;
	return false;
}

int64_t qemu_clock_deadline(void)
{
	return qemu.deadline(VIRTUAL_CLOCK, ALL_TIMERS);
}

void qemu_clock_notify_timers(void)
{
	qemu.notify();
}

static bool may_sleep;

void qemu_clock_let_sleep(bool let)
{
	__atomic_store_n(&may_sleep, let, __ATOMIC_RELAXED);
}

QEMU_EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	static int (*next)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
	static const struct timespec shortest = {.tv_nsec = SHORTEST_SLEEP_NS};

	if (!next) {
		void *found = dlsym(RTLD_NEXT, "ppoll");
		memcpy(&next, &found, sizeof(found));
	}
	/* A time-out of 0 is no sleep: something is known to be there. */
	bool longer = __atomic_load_n(&may_sleep, __ATOMIC_RELAXED) && timeout && !timeout->tv_sec && timeout->tv_nsec &&
		      timeout->tv_nsec < SHORTEST_SLEEP_NS && getpid() == gettid();
	return next(fds, count, longer ? &shortest : timeout, mask);
}
