/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What happens inside the core alone. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "micro.h"

/* Register to register: some processors add constants while they rename registers, in no time. */
static uint64_t adds(uint64_t argument, uint64_t n)
{
	uint64_t sum = 0;

	(void)argument;
	for (uint64_t i = 0; i < n; i += 100)
		__asm__ volatile(".rept 100\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(n));
	return 0;
}

static uint64_t branches(uint64_t period, uint64_t n)
{
	volatile uint64_t taken = 0;
	uint64_t count = 0;

	for (uint64_t i = 0; i < n; i++) {
		int take = period ? ++count == period : (next_random() >> 40) & 1;
		if (take) {
			taken++; /* memory: no conditional move */
			count = 0;
		}
	}
	return 0;
}

static uint64_t branches_once(uint64_t period)
{
	return period ? 100 * period : 0;
}

/* Code through which control jumps from line to line in one random cycle. Made here, so that its size is the argument. */
static void (*jump)(uint64_t laps); /* it changes no register but such as any function may */

static char *put(char *at, const char *bytes, size_t count)
{
	memcpy(at, bytes, count);
	return at + count;
}

static char *put_jump(char *at, const char *bytes, size_t count, const char *to)
{
	int32_t distance = (int32_t)(to - (at + count + sizeof(distance)));

	at = put(at, bytes, count);
	return put(at, (const char *)&distance, sizeof(distance));
}

/*
 * 14 instructions and a jump, without a long chain: eleven additions to six registers, and three loads. Where the line comes from L1I, the
 * additions are the limit on a processor that does four in a cycle (2.75 on Zen 4). The first line counts laps, and has the return at its end.
 */
static void put_line(char *line, const char *next, int first)
{
	static const char filler[8][4] = {
		"\x48\xff\xc0",
		"\x48\xff\xc2",
		"\x49\xff\xc0",
		"\x49\xff\xc1", /* inc of rax, rdx, r8, r9 */
		"\x8b\x34\x24",
		"\x49\xff\xc2",
		"\x49\xff\xc3",
		"\x8b\x3c\x24", /* mov (%rsp) to esi; inc of r10, r11; mov to edi */
	};
	char *at = line;

	line[LINE - 1] = '\xc3';
	if (first) {
		at = put(at, "\x48\xff\xc9", 3);                   /* dec %rcx */
		at = put_jump(at, "\x0f\x84", 2, line + LINE - 1); /* jz */
	}
	for (int i = 0; i < 14; i++)
		at = put(at, filler[i % 8], 3);
	put_jump(at, "\xe9", 1, next);
}

static void prepare_code(uint64_t bytes)
{
	size_t lines = bytes / LINE, *order = random_cycle(lines);
	char *code = mmap(NULL, bytes + LINE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		fail("mmap");
	for (size_t i = 0; i < lines; i++)
		put_line(code + order[i] * LINE, code + order[(i + 1) % lines] * LINE, !i);
	put_jump(put(code + bytes, "\x48\x89\xf9", 3), "\xe9", 1, code + order[0] * LINE); /* mov %rdi, %rcx; jmp */
	void *entry = code + bytes;
	memcpy(&jump, &entry, sizeof(jump));
	free(order);
}

static uint64_t run_code(uint64_t bytes, uint64_t n)
{
	/* The last lap ends where it begins. */
	jump(n / (bytes / LINE) + 1);
	return 0;
}

static uint64_t code_once(uint64_t bytes)
{
	return bytes / LINE;
}

const struct work core_work[] = {
	{"code", "bytes: jumps from line to line through so much code, in one random cycle", prepare_code, run_code, code_once, NULL},
	{"adds", "0: additions, each of the sum of the one before", NULL, adds, NULL, NULL},
	{"random", "0: conditional branches on random bits", NULL, branches, NULL, NULL},
	{"pattern", "period: conditional branches, taken once in a period", NULL, branches, branches_once, NULL},
	{NULL, NULL, NULL, NULL, NULL, NULL},
};
