/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests to interrupt one of QEMU's CPUs, in the hands of the plug-in: it sees each, and may hold it back. QEMU's plug-ins are not
 * told of them, so the accelerator's table of functions is changed, as for the clocks. Everything is looked at before it is changed.
 * All of it but the first three is for those that hold QEMU's lock, as whoever makes such a request does.
 */
#ifndef VSPROF_QEMU_INTERRUPT_H
#define VSPROF_QEMU_INTERRUPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The request with which a CPU's local APIC is told from outside to look at what has come in: of other CPUs, or of devices. */
#define QEMU_INTERRUPT_POLL 0x10

/* This thread interrupts `cpu`. */
typedef void (*qemu_interrupt_seen_t)(int cpu, int request);

/* Find QEMU's functions and the entry. Returns false with what does not look as expected in `error`. */
bool qemu_interrupt_find(uint32_t cpu_count, char *error, size_t size);
/* From now on each request goes to `seen`, which passes it on or does not. No CPU may run meanwhile. */
void qemu_interrupt_take(qemu_interrupt_seen_t seen);
/* QEMU's lock, for a CPU's thread that runs translated code; it is held for a moment only. */
void qemu_interrupt_lock(void);
void qemu_interrupt_unlock(void);
/* What QEMU does with a request. */
void qemu_interrupt_raise(int cpu, int request);
/*
 * QEMU's TCG leaves the number of an interrupt behind as that of an exception when VMRUN injects it. `cpu`, which is this thread's, is just
 * injecting `vector`: take it away. Returns false where nothing of the kind is there, as in a QEMU that does not do so.
 */
bool qemu_interrupt_mend(int cpu, int32_t vector);
/* Have `call` called soon by the main loop, which holds the lock then. For all threads. */
void qemu_interrupt_later(void (*call)(void *));

#endif
