/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opcodes stand several in a line, as in the manuals' maps. */
/* clang-format off */
/* Opcodes: AMD64 Architecture Programmer's Manual vol. 3, appendix A. */
#include "decode.h"

#include <string.h>

static bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65: case 0x66: case 0x67: case 0xf0: case 0xf2: case 0xf3:
		return true;
	default:
		return false;
	}
}

static int64_t signed_bytes(const uint8_t *at, size_t count)
{
	int32_t wide;

	if (count == 1)
		return (int8_t)*at;
	memcpy(&wide, at, 4);
	return wide;
}

static void direct(struct decoded *d, enum branch_kind kind, const uint8_t *at, const uint8_t *end, size_t count)
{
	if (at + count > end)
		return;
	d->kind = kind;
	d->displacement = signed_bytes(at, count);
}

static void decode_group_5(struct decoded *d, uint8_t modrm)
{
	switch (modrm >> 3 & 7) {
	case 2: case 3:
		d->kind = BRANCH_INDIRECT_CALL;
		break;
	case 4: case 5:
		d->kind = BRANCH_INDIRECT;
		break;
	}
}

/* Operands of one-byte opcodes: of the common ones with a memory operand, those of a byte differ from the others by bit 0. */
static uint8_t operand_bytes(uint8_t opcode, bool quad)
{
	uint8_t word = quad ? 8 : 4; /* or 2, by the prefix 66 */

	if (opcode < 0x40 && (opcode & 7) < 4)
		return opcode & 1 ? word : 1;
	switch (opcode) {
	case 0x80: case 0x84: case 0x86: case 0x88: case 0x8a: case 0xa4: case 0xa6: case 0xaa: case 0xac: case 0xae: case 0xc0:
	case 0xc6: case 0xd0: case 0xd2: case 0xf6: case 0xfe:
		return 1;
	case 0x63: case 0x69: case 0x6b: case 0x81: case 0x83: case 0x85: case 0x87: case 0x89: case 0x8b: case 0xa5: case 0xa7:
	case 0xab: case 0xad: case 0xaf: case 0xc1: case 0xc7: case 0xd1: case 0xd3: case 0xf7:
		return word;
	case 0xc4: case 0xc5: case 0x62: /* VEX, EVEX */
		return 16;
	default: /* the stack, x87, segments */
		return 8;
	}
}

/* Of two-byte opcodes. */
static uint8_t operand_bytes_0f(uint8_t opcode, bool quad)
{
	if ((opcode & 0xf0) == 0x90 || opcode == 0xb6 || opcode == 0xbe || opcode == 0xb0 || opcode == 0xc0) /* SETcc, MOVZX, MOVSX… */
		return 1;
	if (opcode == 0xb7 || opcode == 0xbf)
		return 2;
	if ((opcode & 0xf0) == 0x40 || opcode == 0xaf || opcode == 0xb1 || opcode == 0xc1) /* CMOVcc, IMUL, CMPXCHG, XADD */
		return quad ? 8 : 4;
	return 16;
}

/* Group 15 (0F AE): with a register fences and, behind F3, the bases of FS and GS; with memory the state of FPU and vectors. */
static enum slow slow_15(uint8_t modrm, bool repeat)
{
	static const enum slow memory[8] = {[0] = SLOW_XSAVE, [1] = SLOW_XRSTOR, [4] = SLOW_XSAVE, [5] = SLOW_XRSTOR, [6] = SLOW_XSAVE};
	uint8_t operation = modrm >> 3 & 7;

	if (modrm >> 6 != 3)
		return memory[operation];
	if (repeat)
		return operation == 2 || operation == 3 ? SLOW_WRFSBASE : SLOW_NONE;
	return operation == 5 ? SLOW_LFENCE : operation == 6 ? SLOW_MFENCE : SLOW_NONE;
}

static enum slow slow_0f(uint8_t opcode, uint8_t modrm, bool word, bool repeat)
{
	bool memory = modrm >> 6 != 3;

	switch (opcode) {
	case 0x01:
		return modrm == 0xf9 ? SLOW_RDTSCP : SLOW_NONE;
	case 0x31:
		return SLOW_RDTSC;
	case 0xae:
		return word ? SLOW_NONE : slow_15(modrm, repeat); /* 66: CLWB, CLFLUSHOPT */
	case 0xc7: /* group 9: XRSTORS, XSAVEC, XSAVES */
		return !memory ? SLOW_NONE : (modrm >> 3 & 7) == 3 ? SLOW_XRSTOR : (modrm >> 3 & 6) == 4 ? SLOW_XSAVE : SLOW_NONE;
	default:
		return SLOW_NONE;
	}
}

/*
 * PREFETCHNTA, T0, T1, T2 (0F 18 /0 to /3), PREFETCH, PREFETCHW and PREFETCHWT1 (0F 0D /0 to /2); the others of these groups are NOPs. One
 * whose address is relative to RIP is not modelled, nor is one with a segment or an address size of its own: static and thread-local objects.
 */
static void decode_prefetch(struct decoded *d, uint8_t opcode, const uint8_t *at, const uint8_t *end, uint8_t rex)
{
	uint8_t modrm = *at++, mod = modrm >> 6, operation = modrm >> 3 & 7, low = modrm & 7, sib = at < end ? *at : 0;
	struct operand line = {.base = (int8_t)(low | (rex & 1) << 3), .index = NO_REGISTER, .scale = 1};

	if (mod == 3 || operation > (opcode == 0x18 ? 3 : 2) || (mod == 0 && low == 5))
		return;
	line.way = opcode == 0x0d ? (operation ? ASK_OWN : 0) : operation >= 2 ? ASK_FAR : 0;
	if (low == 4) {
		at++;
		line.base = (int8_t)((sib & 7) | (rex & 1) << 3);
		line.index = (int8_t)((sib >> 3 & 7) | (rex & 2) << 2);
		line.scale = (uint8_t)(1 << (sib >> 6));
		if (line.index == 4)
			line.index = NO_REGISTER;
	}
	size_t length = mod == 1 ? 1 : mod == 2 ? 4 : 0;
	if (low == 4 && mod == 0 && (sib & 7) == 5) {
		line.base = NO_REGISTER;
		length = 4;
	}
	if (at + length > end)
		return;
	line.displacement = length ? (int32_t)signed_bytes(at, length) : 0;
	d->special = SPECIAL_PREFETCH;
	d->line = line;
}

static void decode_0f(struct decoded *d, const uint8_t *at, const uint8_t *end, uint8_t rex, bool elsewhere)
{
	uint8_t opcode = *at++, modrm = at < end ? *at : 0;
	uint32_t mark;

	if (opcode >= 0x80 && opcode <= 0x8f)
		direct(d, BRANCH_CONDITIONAL, at, end, 4);
	else if (opcode == 0x05 || opcode == 0x07 || opcode == 0x34 || opcode == 0x35) /* SYSCALL, SYSRET, SYSENTER, SYSEXIT */
		d->kind = BRANCH_OTHER;
	else if (opcode == 0x22 && ((modrm >> 3 & 7) == 3 || (modrm >> 3 & 7) == 4))
		d->special = (modrm >> 3 & 7) == 3 ? SPECIAL_CR3 : SPECIAL_CR4;
	else if (opcode == 0x01 && modrm == 0xd8) {
		d->special = SPECIAL_VMRUN;
		d->kind = BRANCH_OTHER;
	} else if (opcode == 0x01 && (modrm >> 3 & 7) == 7 && modrm >> 6 == 0 && (modrm & 7) != 4 && (modrm & 7) != 5) {
		d->special = SPECIAL_INVLPG;
		d->address_register = (modrm & 7) | (rex & 1) << 3;
	} else if ((opcode == 0x18 || opcode == 0x0d) && at < end && !elsewhere) {
		decode_prefetch(d, opcode, at, end, rex);
	} else if (opcode == 0x1f && modrm == 0x80 && at + 5 <= end) {
		memcpy(&mark, at + 1, 4);
		if (mark >= MARK_BASE + MARK_BEGIN && mark <= MARK_BASE + MARK_PROBES) {
			d->special = SPECIAL_MARK;
			d->mark = (int)(mark - MARK_BASE);
		}
	}
}

/* IN and OUT, with the port's number in the instruction or in DX; INS and OUTS. */
static bool is_port(uint8_t opcode)
{
	return (opcode & 0xf4) == 0xe4 || (opcode & 0xfc) == 0x6c;
}

/* MOVS and STOS, but for those with an address size or a source's segment of their own. */
static void decode_repeat(struct decoded *d, const uint8_t *prefix, uint8_t opcode, bool quad)
{
	bool word = false;

	for (; is_prefix(*prefix); prefix++) {
		word |= *prefix == 0x66;
		if (*prefix == 0x67 || *prefix == 0x64 || *prefix == 0x65)
			return;
	}
	d->repeat = (opcode & 0xfe) == 0xa4 ? REPEAT_MOVS : REPEAT_STOS;
	d->bytes = !(opcode & 1) ? 1 : quad ? 8 : word ? 2 : 4;
}

struct decoded decode(const uint8_t *bytes, size_t length)
{
	struct decoded d = {.kind = BRANCH_NONE, .bytes = 16};
	const uint8_t *at = bytes, *end = bytes + length;
	bool word = false, repeat = false, repeat_any = false, elsewhere = false;
	uint8_t rex = 0;

	for (; at < end && is_prefix(*at); at++) {
		d.atomic |= *at == 0xf0;
		word |= *at == 0x66;
		repeat |= *at == 0xf3;
		repeat_any |= *at == 0xf2 || *at == 0xf3;
		elsewhere |= *at == 0x64 || *at == 0x65 || *at == 0x67;
	}
	if (at < end && (*at & 0xf0) == 0x40)
		rex = *at++;
	if (at >= end)
		return d;
	uint8_t opcode = *at++;
	d.port = is_port(opcode);
	d.bytes = opcode != 0x0f ? operand_bytes(opcode, rex & 8) : at < end ? operand_bytes_0f(*at, rex & 8) : 16;
	if (opcode == 0x0f && at < end) {
		d.slow = slow_0f(*at, at + 1 < end ? at[1] : 0, word, repeat);
		decode_0f(&d, at, end, rex, elsewhere);
	} else if (opcode == 0x9d)
		d.slow = SLOW_POPF;
	else if ((opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0)
		direct(&d, BRANCH_CONDITIONAL, at, end, 1);
	else if (opcode == 0xeb)
		direct(&d, BRANCH_JUMP, at, end, 1);
	else if (opcode == 0xe9)
		direct(&d, BRANCH_JUMP, at, end, 4);
	else if (opcode == 0xe8)
		direct(&d, BRANCH_CALL, at, end, 4);
	else if (opcode == 0xc3 || opcode == 0xc2)
		d.kind = BRANCH_RETURN;
	else if (opcode == 0xff && at < end)
		decode_group_5(&d, *at);
	else if (opcode == 0xcc || opcode == 0xcd || opcode == 0xcf || opcode == 0xca || opcode == 0xcb)
		d.kind = BRANCH_OTHER; /* INT3, INT, IRET, far returns; not HLT, from which an interrupt comes as from any other */
	else if (repeat_any &&
			 ((opcode >= 0x6c && opcode <= 0x6f) || (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf))) {
		d.kind = BRANCH_REPEAT; /* INS, OUTS, MOVS, CMPS, STOS, LODS, SCAS */
		if ((opcode & 0xfe) == 0xa4 || (opcode & 0xfe) == 0xaa)
			decode_repeat(&d, bytes, opcode, rex & 8);
	} else if (opcode == 0x90 && repeat)
		d.special = SPECIAL_PAUSE;
	return d;
}
