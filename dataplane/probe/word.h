/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A counter that one thread writes and others read while it does. Relaxed atomic accesses: plain loads and stores for the processor, and
 * no torn value for a reader. The writer reads its own counter as it likes.
 */
#ifndef VSPROF_PROBE_WORD_H
#define VSPROF_PROBE_WORD_H

#include <stddef.h>
#include <stdint.h>

static inline void word_set(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static inline void word_add(uint64_t *word, uint64_t value)
{
	word_set(word, *word + value);
}

static inline uint64_t word_get(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* Copies a structure of counters, each of them whole. */
static inline void words_copy(void *to, const void *from, size_t bytes)
{
	const uint64_t *source = from;
	uint64_t *target = to;

	for (size_t i = 0; i < bytes / sizeof(*source); i++)
		target[i] = word_get(&source[i]);
}

#endif
