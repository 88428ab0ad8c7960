/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Caches, memory and the translation of addresses. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "micro.h"

#define PAGE 4096
#define HUGE_PAGE 0x200000ull

static char *map(size_t bytes, int flags)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (at == MAP_FAILED)
		fail("mmap");
	/* Where the system makes large pages of small ones unasked, none would be small. */
	if (!(flags & MAP_HUGETLB))
		madvise(at, bytes, MADV_NOHUGEPAGE);
	memset(at, 0, bytes);
	return at;
}

/* Huge pages, so that translation costs nothing where something else is looked at. */
static char *map_huge(size_t bytes)
{
	return map((bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1), MAP_HUGETLB);
}

/* --- Pointers ------------------------------------------------------------------------------------------------- */

static void **at;

/*
 * Link `count` places, the i-th at i * stride, into one random cycle. With `spread`, each in a line of its own choice: were it i % 64,
 * the places of pages that lie in order in memory, too, would share one in 32 sets of a second-level cache.
 */
static void **link_places(char *buffer, size_t count, size_t stride, int spread)
{
	size_t *order = random_cycle(count);

#define PLACE(i) (buffer + (i) * stride + (spread ? ((i) + (i) / (PAGE / LINE)) % (PAGE / LINE) * LINE : 0))
	for (size_t i = 0; i < count; i++)
		*(void **)PLACE(order[i]) = PLACE(order[(i + 1) % count]);
	void **first = (void **)PLACE(order[0]);
	free(order);
	return first;
}

static void prepare_chase(uint64_t bytes)
{
	at = link_places(map_huge(bytes), bytes / LINE, LINE, 0);
}

static void prepare_small_chase(uint64_t bytes)
{
	at = link_places(map(bytes, 0), bytes / LINE, LINE, 0);
}

static void prepare_pages(uint64_t count)
{
	at = link_places(map(count * PAGE, 0), count, PAGE, 1);
}

static void prepare_hugepages(uint64_t count)
{
	at = link_places(map_huge(count * HUGE_PAGE), count, HUGE_PAGE, 1);
}

/* Goes on where it stood: from its beginning a short walk through much memory would find what the last one left in the caches. */
static uint64_t follow(uint64_t argument, uint64_t n)
{
	void **here = at;

	(void)argument;
	while (n--)
		here = *here;
	at = here;
	return 0;
}

static uint64_t all_lines(uint64_t bytes)
{
	return bytes / LINE;
}

static uint64_t all_pages(uint64_t count)
{
	return count;
}

/* --- Streams -------------------------------------------------------------------------------------------------- */

static uint64_t *buffer;
static uint64_t next_line;

static void prepare_stream(uint64_t bytes)
{
	buffer = (uint64_t *)map(bytes, 0);
}

static uint64_t sum(const uint64_t *words, size_t count)
{
	uint64_t total = 0;

	for (size_t i = 0; i < count; i++) {
		total += words[i];
		__asm__ volatile("" : "+r"(total)); /* one load each, no vectors */
	}
	return total;
}

static uint64_t stream(uint64_t bytes, uint64_t n)
{
	volatile uint64_t kept;

	while (n--)
		kept = sum(buffer, bytes / 8);
	(void)kept;
	return 0;
}

static uint64_t stream_once(uint64_t bytes)
{
	(void)bytes;
	return 1;
}

/* All eight words of each line. Four sums: one would be no faster than its additions, and hide what memory takes. */
static uint64_t sum_lines(const uint64_t *words, size_t count)
{
	uint64_t a = 0, b = 0, c = 0, d = 0;

	for (size_t i = 0; i < count; i++, words += LINE / 8)
		__asm__ volatile("add (%4), %0\n\tadd 8(%4), %1\n\tadd 16(%4), %2\n\tadd 24(%4), %3\n\t"
				 "add 32(%4), %0\n\tadd 40(%4), %1\n\tadd 48(%4), %2\n\tadd 56(%4), %3"
			: "+r"(a), "+r"(b), "+r"(c), "+r"(d)
			: "r"(words)
			: "memory");
	return a + b + c + d;
}

/* Line by line, each time from where it ended: a short look at a long stream. */
static uint64_t lines(uint64_t bytes, uint64_t n)
{
	volatile uint64_t kept;

	while (n) {
		uint64_t left = bytes / LINE - next_line, now = n < left ? n : left;

		kept = sum_lines(buffer + next_line * (LINE / 8), now);
		next_line = now == left ? 0 : next_line + now;
		n -= now;
	}
	(void)kept;
	return 0;
}

/* --- Loads that need not wait for each other ------------------------------------------------------------------- */

/* Beside each some thirty instructions, as of a program that works with what it loads; of these six make the next place (Knuth's MMIX generator). */
#define OTHER_WORK \
	"inc %%r8\n\tinc %%r9\n\tinc %%r10\n\tinc %%r11\n\tmov (%%rsp), %%esi\n\tinc %%rcx\n\tinc %%rdi\n\tmov (%%rsp), %%edx\n\t"

static uint64_t place = 1;

/* `x` is a local copy of `place`: the work between clobbers memory, which that would be read from again each time. */
static inline const char *next_place(uint64_t *x, uint64_t bytes)
{
	*x = *x * 6364136223846793005ull + 1442695040888963407ull;
	return (const char *)buffer + ((*x >> 32) * (bytes / LINE) >> 32) * LINE;
}

static inline uint64_t load_and_work(uint64_t total, const char *line)
{
	__asm__ volatile("add (%1), %0\n\t" OTHER_WORK OTHER_WORK OTHER_WORK
		: "+r"(total)
		: "r"(line)
		: "r8", "r9", "r10", "r11", "rcx", "rdx", "rsi", "rdi", "cc", "memory");
	return total;
}

static uint64_t scattered(uint64_t bytes, uint64_t n)
{
	uint64_t total = 0, x = place;

	while (n--)
		total = load_and_work(total, next_place(&x, bytes));
	place = x;
	(void)total;
	return 0;
}

/* As DPDK's programs work: all lines of a burst are asked for, then they are loaded. */
#define BURST 32

static uint64_t asked(uint64_t bytes, uint64_t n)
{
	const char *line[BURST];
	uint64_t total = 0, x = place;

	for (; n >= BURST; n -= BURST) {
		for (int i = 0; i < BURST; i++) {
			line[i] = next_place(&x, bytes);
			__builtin_prefetch(line[i]);
		}
		for (int i = 0; i < BURST; i++)
			total = load_and_work(total, line[i]);
	}
	place = x;
	(void)total;
	return 0;
}

/* So often that all but one line in a hundred was loaded. */
static uint64_t five_times_all_lines(uint64_t bytes)
{
	return 5 * bytes / LINE;
}

/* --- Copies --------------------------------------------------------------------------------------------------- */

/* The target is not at the source's place in its page: where both are the same, loads wait for stores that they seem to meet. */
#define LARGEST 16384
static _Alignas(PAGE) char source[LARGEST], target[LARGEST + PAGE];
static char *const to = target + PAGE / 2;

static void prepare_copy(uint64_t bytes)
{
	if (bytes > LARGEST)
		fail("at most 16384 bytes are copied");
	memset(source, 1, sizeof(source));
	memset(target, 2, sizeof(target));
}

static uint64_t copy(uint64_t bytes, uint64_t n)
{
	while (n--) {
		memcpy(to, source, bytes);
		__asm__ volatile("" ::: "memory");
	}
	return 0;
}

/* As kernels copy. */
static uint64_t copy_repeated(uint64_t bytes, uint64_t n)
{
	while (n--) {
		void *into = to;
		const void *from = source;
		uint64_t count = bytes;

		__asm__ volatile("rep movsb" : "+D"(into), "+S"(from), "+c"(count)::"memory");
	}
	return 0;
}

const struct work memory_work[] = {
	{"chase", "bytes: pointers through the lines of so much memory, in one random cycle", prepare_chase, follow, all_lines, NULL},
	{"chase_4k", "bytes: the same through pages of 4 KiB", prepare_small_chase, follow, all_lines, NULL},
	{"pages", "count: the same through one line of each of so many pages of 4 KiB", prepare_pages, follow, all_pages, NULL},
	{"hugepages", "count: the same through pages of 2 MiB", prepare_hugepages, follow, all_pages, NULL},
	{"stream", "bytes: reads so much memory in order, 8 bytes at a time, from its beginning", prepare_stream, stream, stream_once,
		NULL},
	{"lines", "bytes: the same line by line, from where it ended", prepare_stream, lines, all_lines, NULL},
	{"scattered", "bytes: loads from random lines of so much memory, none of which waits for another", prepare_stream, scattered,
		five_times_all_lines, NULL},
	{"asked", "bytes: the same, 32 at a time, all of which prefetch instructions have asked for", prepare_stream, asked,
		five_times_all_lines, NULL},
	{"memcpy", "bytes: copies, in L1D", prepare_copy, copy, NULL, NULL},
	{"movsb", "bytes: the same by REP MOVSB", prepare_copy, copy_repeated, NULL, NULL},
	{NULL, NULL, NULL, NULL, NULL, NULL},
};
