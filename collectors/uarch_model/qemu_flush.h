/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All of QEMU's translated code thrown away, while none of its CPUs runs any.
 *
 * What plug-ins have for it, qemu_plugin_reset, also takes all of a plug-in's callbacks away and frees them, but QEMU (10.0) may just be calling
 * one: a CPU that falls asleep or wakes does not count as one that runs. Seen as a QEMU that ended with a segmentation fault in its list of
 * such callbacks; where the memory had been used anew, something else would have been called. So callbacks stay for good here.
 */
#ifndef VSPROF_QEMU_FLUSH_H
#define VSPROF_QEMU_FLUSH_H

#include <stdbool.h>
#include <stddef.h>

/* Find QEMU's functions. Returns false with the first that it does not have in `error`. */
bool qemu_flush_find(char *error, size_t size);
/* Have it done soon, and `done` called then, before any CPU runs again. For the thread of `cpu`, which does it itself. */
void qemu_flush(int cpu, void (*done)(void));

#endif
