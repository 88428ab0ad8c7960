/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A microbenchmark: something that is done again and again, and what must be there before. */
#ifndef VSPROF_MICRO_H
#define VSPROF_MICRO_H

#include <stddef.h>
#include <stdint.h>

#define LINE 64 /* bytes, of a cache */

struct work {
	const char *kind;
	const char *argument; /* what the number behind the kind means, in words */
	/* Makes all that the work needs, by the argument. Ends the program if it can't. */
	void (*prepare)(uint64_t argument);
	/* Does it `n` times. Returns for how many nanoseconds it asked to sleep: these are not the work's. */
	uint64_t (*run)(uint64_t argument, uint64_t n);
	/* How often it must be done before the caches and tables hold what they will hold. NULL: not at all. */
	uint64_t (*warm)(uint64_t argument);
	/* What a second thread does meanwhile, on the partner's CPU, from when its turn comes. NULL: it rests. */
	void *(*beside)(void *);
};

/* Each ends with one whose kind is NULL. */
extern const struct work core_work[], memory_work[], kernel_work[];

/* Marsaglia, "Xorshift RNGs", 2003: the same numbers everywhere. Here, so that a loop that needs one calls nobody. */
static uint64_t random_state = 88172645463325252ull;

static inline uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

/* The numbers below `count` in an order that is one random cycle (Sattolo, 1986). To be freed. */
size_t *random_cycle(size_t count);
void begin_thread(int cpu, void *(*what)(void *));
_Noreturn void fail(const char *what);

#endif
