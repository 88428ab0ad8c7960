/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The little of x86-64's encoding that the model must know: how a block ends, and what changes address spaces. */
#ifndef VSPROF_DECODE_H
#define VSPROF_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "branch.h"

#define LONGEST_INSTRUCTION 15

/* A long NOP with this displacement is a mark: "vsP" and 1 for a window's begin, 2 for its end, 3 where the probes around it begin. */
#define MARK_BASE 0x76735000u
enum { MARK_NONE, MARK_BEGIN, MARK_END, MARK_PROBES };

enum special {
	SPECIAL_NONE,
	SPECIAL_CR3,    /* MOV to CR3 */
	SPECIAL_CR4,    /* MOV to CR4, by which Linux flushes global pages, too */
	SPECIAL_INVLPG, /* by the address in one register */
	SPECIAL_VMRUN,
	SPECIAL_MARK,
	SPECIAL_PAUSE,
	SPECIAL_PREFETCH
};

/* The address of a prefetch instruction's line: base + index * scale + displacement. */
struct operand {
	int8_t base, index; /* 0 RAX … 15 R15; NO_REGISTER */
	uint8_t scale;      /* 1, 2, 4, 8 */
	uint8_t way;        /* ASK_… */
	int32_t displacement;
};
enum { NO_REGISTER = -1 };
enum { ASK_OWN = 1, ASK_FAR = 2 }; /* to be written; into L2 alone */

/* Repeated string instructions whose accesses are known by where their registers point before and after. */
enum repeat { REPEAT_NONE, REPEAT_MOVS, REPEAT_STOS };

/* Instructions that keep others from running beside them, and that common programs or a kernel's switch of threads have. */
enum slow { SLOW_NONE, SLOW_RDTSC, SLOW_RDTSCP, SLOW_LFENCE, SLOW_MFENCE, SLOW_POPF, SLOW_XSAVE, SLOW_XRSTOR, SLOW_WRFSBASE };

struct decoded {
	enum branch_kind kind;
	enum special special;
	enum slow slow;
	bool atomic; /* LOCK prefix */
	bool port;   /* IN, OUT, INS, OUTS */
	enum repeat repeat;
	uint8_t bytes;        /* the most that it accesses at once: 1, 2, 4, 8, 16; more only where that is not clear */
	int mark;             /* MARK_… */
	int address_register; /* of INVLPG: 0 RAX … 15 R15 */
	struct operand line;  /* of a prefetch */
	int64_t displacement; /* of a direct branch, from the next instruction */
};

struct decoded decode(const uint8_t *bytes, size_t length);

#endif
