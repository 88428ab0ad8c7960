/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's clocks in the hands of the plug-in: what its virtual clock (all its timers) and its cycle counter (RDTSC, of nested guests too)
 * read from now on. QEMU's own way for an accelerator to give these two is not open to plug-ins, so the accelerator's table of functions
 * is changed, in which TCG with a thread for each CPU has no entry for them. Everything is looked at before it is changed.
 */
#ifndef VSPROF_QEMU_CLOCK_H
#define VSPROF_QEMU_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One of QEMU's functions, and the pointer to a function that is to have its address. */
struct qemu_function {
	const char *name;
	void *to;
};
/* Find QEMU's functions. Returns false with the first that it does not have in `error`. */
bool qemu_find_functions(const struct qemu_function *wanted, size_t count, char *error, size_t size);
/* Where in the accelerator's table `function` looks: the displacement of its only `mov disp32(%rax),%rax`. 0: its code is another. */
uint32_t qemu_clock_entry(const void *function);
/* Find QEMU's functions and the two entries. Returns false with what does not look as expected in `error`. */
bool qemu_clock_find(char *error, size_t size);
/* What the two read at this moment. */
int64_t qemu_clock_present(void);
int64_t qemu_clock_present_ticks(void);
/* From now on they read `clock` and `ticks`. Returns false, with nothing changed, where QEMU does not follow. */
bool qemu_clock_take(int64_t (*clock)(void), int64_t (*ticks)(void));
/* From `clock` to the next of QEMU's timers in ns: 0 if one is due, -1 if there is none. */
int64_t qemu_clock_deadline(void);
/* Have QEMU's main loop look at its timers soon. */
void qemu_clock_notify_timers(void);
/*
 * QEMU's main loop sleeps until the next timer, as if its time were real. Where time is slower, it would wake, find nothing due, and sleep
 * for what is left, thousands of times: a real processor's whole time. So its sleeps last longer while it may (`let`); due timers wake it
 * by the function above. It needs the plug-in to be preloaded (LD_PRELOAD) besides, so that QEMU's calls of ppoll come here.
 */
void qemu_clock_let_sleep(bool let);

#endif
