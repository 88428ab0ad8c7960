/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions as the assembler encodes them: ASSEMBLED(INSTRUCTION("add rax, rbx") INSTRUCTION("dec rcx")) in Intel's syntax. */
#ifndef VSPROF_TEST_ASSEMBLED_H
#define VSPROF_TEST_ASSEMBLED_H

#include <stdint.h>

/* Each with its length before it; a length of 0 ends them. */
#define INSTRUCTION(text) ".byte 2f - 1f\n1: " text "\n2:\n"
#define ASSEMBLED(instructions)                                                                              \
	({                                                                                                   \
		const uint8_t *assembled;                                                                    \
		__asm__("lea 3f(%%rip), %0\n.pushsection .rodata\n.intel_syntax noprefix\n3:\n" instructions \
			".byte 0\n.att_syntax prefix\n.popsection"                                           \
			: "=r"(assembled));                                                                  \
		assembled;                                                                                   \
	})

#endif
