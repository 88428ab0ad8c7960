/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-switch, slowed down on purpose: each copy of a frame's bytes goes by way of another buffer. For bench/gate.py, which compiles the
 * switch with -include of this file and asks whether a gate finds it out.
 */
#ifndef VSPROF_EXTRA_COPY_H
#define VSPROF_EXTRA_COPY_H

#include <rte_memcpy.h>
#include <stdint.h>

#define EXTRA_BYTES 65536 /* no copy is longer: a frame's descriptor says its length in 16 bits */

static __thread uint8_t extra_copy[EXTRA_BYTES] __attribute__((unused));

#define rte_memcpy(to, from, bytes)                                                                      \
	({                                                                                               \
		void *extra_to = (to);                                                                   \
		size_t extra_bytes = (bytes);                                                            \
		(rte_memcpy)(extra_copy, (from), extra_bytes);                                           \
		__asm__ volatile("" : : "r"(extra_copy) : "memory"); /* or the compiler leaves it out */ \
		(rte_memcpy)(extra_to, extra_copy, extra_bytes);                                         \
	})

#endif
