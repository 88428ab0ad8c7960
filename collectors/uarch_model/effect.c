/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opcodes stand several in a line, as in the manuals' maps. */
/* clang-format off */
/*
 * Opcodes: AMD64 Architecture Programmer's Manual vol. 3 and 4, appendix A. Latencies: uops.info, of Haswell, Skylake-X and Zen 4, where
 * these differ the least of them, so that a chain is rather too short than too long. Moves between registers take none: all three
 * rename them away.
 */
#include "effect.h"

enum { SIMPLE = 1, MOVE_MASK = 2, MULTIPLY = 3, CRC = 3, FLOAT = 3, CONVERT = 3, FUSED = 4, CRYPTO = 4, DIVIDE = 10 };

enum { RAX = 0, RCX = 1, RDX = 2, RSP = 4, RBP = 5 };

/* An instruction as far as it is read. */
struct parse {
	const uint8_t *at, *end;
	bool word, repeat, repeat_not, lock; /* prefixes 66, F3, F2, F0 */
	bool vex, wide, extend_reg, extend_index, extend_base;
	uint8_t other; /* VEX's further register */
	uint8_t map;   /* 0: one byte; 1: 0F; 2: 0F38; 3: 0F3A */
	uint8_t opcode;
	/* ModRM: */
	uint8_t reg, rm;
	bool memory;
	uint64_t address;
};

static const struct effect unknown = {.known = false}, nothing = {.known = true};
static const struct effect vector_store = {.known = true, .stores_vector = true};

static bool next(struct parse *p, uint8_t *byte)
{
	if (p->at >= p->end)
		return false;
	*byte = *p->at++;
	return true;
}

static bool read_prefixes(struct parse *p)
{
	for (; p->at < p->end; p->at++) {
		switch (*p->at) {
		case 0x66: p->word = true; break;
		case 0xf3: p->repeat = true; break;
		case 0xf2: p->repeat_not = true; break;
		case 0xf0: p->lock = true; break;
		case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65: case 0x67: break;
		default: return true;
		}
	}
	return false;
}

static void take_rex(struct parse *p, uint8_t rex)
{
	p->wide = rex & 8;
	p->extend_reg = rex & 4;
	p->extend_index = rex & 2;
	p->extend_base = rex & 1;
}

/* What VEX has in the place of prefixes. */
static void take_vex(struct parse *p, uint8_t last)
{
	p->vex = true;
	p->other = ~(last >> 3) & 15;
	p->word = (last & 3) == 1;
	p->repeat = (last & 3) == 2;
	p->repeat_not = (last & 3) == 3;
}

static bool read_vex(struct parse *p, bool three)
{
	uint8_t first, last;

	if (!next(p, &first))
		return false;
	p->map = 1;
	p->extend_reg = !(first & 0x80);
	last = first;
	if (three) {
		p->extend_index = !(first & 0x40);
		p->extend_base = !(first & 0x20);
		p->map = first & 31;
		if (!next(p, &last))
			return false;
		p->wide = last & 0x80;
	}
	take_vex(p, last);
	return p->map >= 1 && p->map <= 3 && next(p, &p->opcode);
}

static bool read_opcode(struct parse *p)
{
	uint8_t byte;

	if (!read_prefixes(p) || !next(p, &byte))
		return false;
	if ((byte & 0xf0) == 0x40) {
		take_rex(p, byte);
		if (!next(p, &byte))
			return false;
	}
	if (byte == 0xc5 || byte == 0xc4)
		return read_vex(p, byte == 0xc4);
	if (byte == 0x0f) {
		if (!next(p, &byte))
			return false;
		p->map = byte == 0x38 ? 2 : byte == 0x3a ? 3 : 1;
		if (p->map > 1 && !next(p, &byte))
			return false;
	}
	p->opcode = byte;
	return true;
}

static bool read_modrm(struct parse *p)
{
	uint8_t modrm, sib;

	if (!next(p, &modrm))
		return false;
	p->reg = (modrm >> 3 & 7) | (uint8_t)(p->extend_reg << 3);
	p->rm = (modrm & 7) | (uint8_t)(p->extend_base << 3);
	p->memory = modrm >> 6 != 3;
	if (!p->memory)
		return true;
	if ((modrm & 7) != 4) {
		/* Without a base: from the instruction's own address. */
		if (modrm >> 6 || (modrm & 7) != 5)
			p->address = IN_REGISTER(p->rm);
		return true;
	}
	if (!next(p, &sib))
		return false;
	if (modrm >> 6 || (sib & 7) != 5)
		p->address |= IN_REGISTER((sib & 7) | p->extend_base << 3);
	uint8_t index = (sib >> 3 & 7) | (uint8_t)(p->extend_index << 3);
	if (index != RSP)
		p->address |= IN_REGISTER(index);
	return true;
}

/* The second operand: in memory, or one of such places. */
static struct effect from_rm(const struct parse *p, uint64_t (*in)(uint8_t), uint8_t latency)
{
	return (struct effect){
		.known = true,
		.loads = p->memory,
		.latency = latency,
		.reads = p->memory ? 0 : in(p->rm),
		.address = p->memory ? p->address : 0,
	};
}

static uint64_t general(uint8_t number)
{
	return IN_REGISTER(number);
}

static uint64_t vector(uint8_t number)
{
	return IN_VECTOR(number);
}

/* Of a byte and of two, the rest of a register stays. */
static bool keeps_rest(const struct parse *p, bool byte)
{
	return byte || (p->word && !p->wide);
}

/* Integer instructions of one byte. */

enum { ADD = 0, ADC = 2, SBB = 3, AND = 4, SUB = 5, XOR = 6, COMPARE = 7 };

/* ADD, OR, ADC, SBB, AND, SUB, XOR, CMP of `from` to `to`; either may be in memory. */
static struct effect arithmetic(const struct parse *p, int operation, bool byte, bool to_rm, bool immediate)
{
	struct effect e = from_rm(p, general, SIMPLE);
	uint64_t reg = immediate ? 0 : IN_REGISTER(p->reg);
	bool same = !p->memory && !immediate && p->rm == p->reg && !keeps_rest(p, byte);

	e.reads |= reg;
	if (operation == ADC || operation == SBB)
		e.reads |= IN_CARRY;
	e.writes = IN_ALL_FLAGS;
	if (operation != COMPARE)
		e.writes |= !to_rm ? reg : p->memory ? 0 : IN_REGISTER(p->rm);
	/* Always zero: no processor waits for it. */
	if (same && (operation == XOR || operation == SUB))
		e.reads = 0;
	return e;
}

static struct effect group_arithmetic(struct parse *p)
{
	return read_modrm(p) ? arithmetic(p, p->reg & 7, !(p->opcode & 1), true, true) : unknown;
}

static struct effect plain_arithmetic(struct parse *p)
{
	int operation = p->opcode >> 3, form = p->opcode & 7;

	if (form >= 4) {
		p->rm = p->reg = RAX;
		return arithmetic(p, operation, form == 4, true, true);
	}
	return read_modrm(p) ? arithmetic(p, operation, !(form & 1), form < 2, false) : unknown;
}

static struct effect move(struct parse *p, bool to_rm)
{
	bool byte = !(p->opcode & 1);

	if (!read_modrm(p))
		return unknown;
	if (to_rm && p->memory)
		return nothing;
	uint8_t from = to_rm ? p->reg : p->rm, to = to_rm ? p->rm : p->reg;
	bool rest = keeps_rest(p, byte);
	return (struct effect){
		.known = true,
		.loads = p->memory,
		.latency = rest ? SIMPLE : 0,
		.reads = (p->memory ? 0 : IN_REGISTER(from)) | (rest ? IN_REGISTER(to) : 0),
		.address = p->memory ? p->address : 0,
		.writes = IN_REGISTER(to),
	};
}

static struct effect move_immediate(const struct parse *p, uint8_t to, bool byte)
{
	bool rest = keeps_rest(p, byte);

	return (struct effect){.known = true, .latency = SIMPLE, .reads = rest ? IN_REGISTER(to) : 0, .writes = IN_REGISTER(to)};
}

/* Into a whole register, from one or from memory. */
static struct effect into_register(struct parse *p, uint8_t latency, uint64_t flags)
{
	if (!read_modrm(p))
		return unknown;
	struct effect e = from_rm(p, general, latency);
	e.writes = IN_REGISTER(p->reg) | flags;
	return e;
}

static struct effect load_address(struct parse *p)
{
	if (!read_modrm(p) || !p->memory)
		return unknown;
	return (struct effect){.known = true, .latency = SIMPLE, .reads = p->address, .writes = IN_REGISTER(p->reg)};
}

/* Shifts and rotations: those by CL wait for the flags, too, which stay where CL is 0. */
static struct effect shift(struct parse *p)
{
	bool by_register = (p->opcode & 0xfe) == 0xd2;

	if (!read_modrm(p))
		return unknown;
	struct effect e = from_rm(p, general, SIMPLE);
	int operation = p->reg & 7;
	e.writes = operation < 4 ? IN_CARRY : IN_ALL_FLAGS;
	if (operation == 2 || operation == 3)
		e.reads |= IN_CARRY;
	if (by_register)
		e.reads |= IN_REGISTER(RCX) | IN_ALL_FLAGS;
	e.writes |= p->memory ? 0 : IN_REGISTER(p->rm);
	return e;
}

static struct effect group_3(struct parse *p)
{
	if (!read_modrm(p))
		return unknown;
	struct effect e = from_rm(p, general, SIMPLE);
	switch (p->reg & 7) {
	case 0: case 1: /* TEST */
		e.writes = IN_ALL_FLAGS;
		break;
	case 2: /* NOT */
		e.writes = p->memory ? 0 : IN_REGISTER(p->rm);
		break;
	case 3: /* NEG */
		e.writes = IN_ALL_FLAGS | (p->memory ? 0 : IN_REGISTER(p->rm));
		break;
	case 4: case 5: /* MUL, IMUL */
		e.latency = MULTIPLY;
		e.reads |= IN_REGISTER(RAX);
		e.writes = IN_REGISTER(RAX) | IN_REGISTER(RDX) | IN_ALL_FLAGS;
		break;
	default: /* DIV, IDIV */
		e.latency = DIVIDE;
		e.reads |= IN_REGISTER(RAX) | IN_REGISTER(RDX);
		e.writes = IN_REGISTER(RAX) | IN_REGISTER(RDX) | IN_ALL_FLAGS;
	}
	return e;
}

/* INC, DEC, which leave the carry as it is; calls, jumps and PUSH, which the front end and the stack engine see to. */
static struct effect group_4_and_5(struct parse *p)
{
	if (!read_modrm(p))
		return unknown;
	if ((p->reg & 7) > 1)
		return p->opcode == 0xff && (p->reg & 7) < 7 ? nothing : unknown;
	struct effect e = from_rm(p, general, SIMPLE);
	e.writes = IN_FLAGS | (p->memory ? 0 : IN_REGISTER(p->rm));
	return e;
}

static struct effect exchange(uint8_t one, uint8_t other)
{
	uint64_t both = IN_REGISTER(one) | IN_REGISTER(other);

	return (struct effect){.known = true, .reads = both, .writes = both};
}

static struct effect one_byte(struct parse *p)
{
	uint8_t opcode = p->opcode, low = (opcode & 7) | (uint8_t)(p->extend_base << 3);

	if (opcode < 0x40)
		return (opcode & 7) < 6 ? plain_arithmetic(p) : unknown;
	switch (opcode) {
	case 0x50 ... 0x57: case 0x68: case 0x6a: /* PUSH: the stack engine has RSP ready */
	case 0x70 ... 0x7f: case 0xe8: case 0xe9: case 0xeb: case 0xc3: case 0xc2: /* branches are predicted */
		return nothing;
	case 0x58 ... 0x5f: /* POP */
		return (struct effect){.known = true, .loads = true, .address = IN_REGISTER(RSP), .writes = IN_REGISTER(low)};
	case 0x63: /* MOVSXD */
		return into_register(p, SIMPLE, 0);
	case 0x69: case 0x6b: /* IMUL by a constant */
		return into_register(p, MULTIPLY, IN_ALL_FLAGS);
	case 0x80: case 0x81: case 0x83:
		return group_arithmetic(p);
	case 0x84: case 0x85: /* TEST */
		return read_modrm(p) ? arithmetic(p, COMPARE, true, true, false) : unknown;
	case 0x87: case 0x86: /* XCHG; with memory it is atomic */
		return read_modrm(p) && !p->memory ? exchange(p->reg, p->rm) : unknown;
	case 0x88: case 0x89:
		return move(p, true);
	case 0x8a: case 0x8b:
		return move(p, false);
	case 0x8d:
		return load_address(p);
	case 0x90 ... 0x97: /* NOP and PAUSE are what RAX with RAX would be */
		return low == RAX ? nothing : exchange(RAX, low);
	case 0x98: /* CDQE */
		return (struct effect){.known = true, .latency = SIMPLE, .reads = IN_REGISTER(RAX), .writes = IN_REGISTER(RAX)};
	case 0x99: /* CQO */
		return (struct effect){.known = true, .latency = SIMPLE, .reads = IN_REGISTER(RAX), .writes = IN_REGISTER(RDX)};
	case 0xa8: case 0xa9: /* TEST */
		return (struct effect){.known = true, .latency = SIMPLE, .reads = IN_REGISTER(RAX), .writes = IN_ALL_FLAGS};
	case 0xb0 ... 0xb7:
		return move_immediate(p, low, true);
	case 0xb8 ... 0xbf:
		return move_immediate(p, low, false);
	case 0xc0: case 0xc1: case 0xd0: case 0xd1: case 0xd2: case 0xd3:
		return shift(p);
	case 0xc6: case 0xc7:
		return !read_modrm(p) ? unknown : p->memory ? nothing : move_immediate(p, p->rm, opcode == 0xc6);
	case 0xf6: case 0xf7:
		return group_3(p);
	case 0xfe: case 0xff:
		return group_4_and_5(p);
	default:
		return unknown;
	}
}

/* Integer instructions of two bytes and more. */

static struct effect conditional_move(struct parse *p)
{
	struct effect e = into_register(p, SIMPLE, 0);

	e.reads |= IN_REGISTER(p->reg) | IN_ALL_FLAGS;
	return e;
}

static struct effect set_byte(struct parse *p)
{
	if (!read_modrm(p))
		return unknown;
	uint64_t to = p->memory ? 0 : IN_REGISTER(p->rm);
	return (struct effect){.known = true, .latency = SIMPLE, .reads = to | IN_ALL_FLAGS, .writes = to};
}

/* SHLD, SHRD; BT and its like. */
static struct effect modify(struct parse *p, uint64_t more, bool writes)
{
	if (!read_modrm(p))
		return unknown;
	struct effect e = from_rm(p, general, SIMPLE);
	e.reads |= more | (p->opcode == 0xba ? 0 : IN_REGISTER(p->reg));
	e.writes = IN_ALL_FLAGS | (writes && !p->memory ? IN_REGISTER(p->rm) : 0);
	return e;
}

static struct effect multiply(struct parse *p)
{
	struct effect e = into_register(p, MULTIPLY, IN_ALL_FLAGS);

	e.reads |= IN_REGISTER(p->reg);
	return e;
}

static bool is_integer_0f(uint8_t opcode)
{
	switch (opcode) {
	case 0x0d: case 0x18: case 0x1e: case 0x1f: case 0x40 ... 0x4f: case 0x80 ... 0x9f: case 0xa3 ... 0xa5: case 0xab ... 0xad:
	case 0xaf: case 0xb3: case 0xb6 ... 0xb8: case 0xba ... 0xbf: case 0xc3: case 0xc8 ... 0xcf:
		return true;
	default:
		return false;
	}
}

static struct effect integer_0f(struct parse *p)
{
	uint8_t opcode = p->opcode, low = (opcode & 7) | (uint8_t)(p->extend_base << 3);

	switch (opcode) {
	case 0x0d: case 0x18: case 0x1e: case 0x1f: case 0xc3: /* prefetches, ENDBR, NOP, MOVNTI */
	case 0x80 ... 0x8f:
		return nothing;
	case 0x40 ... 0x4f:
		return conditional_move(p);
	case 0x90 ... 0x9f:
		return set_byte(p);
	case 0xa4: case 0xac:
		return modify(p, 0, true);
	case 0xa5: case 0xad:
		return modify(p, IN_REGISTER(RCX) | IN_ALL_FLAGS, true);
	case 0xa3:
		return modify(p, 0, false);
	case 0xab: case 0xb3: case 0xba: case 0xbb:
		return modify(p, 0, true);
	case 0xaf:
		return multiply(p);
	case 0xb6: case 0xb7: case 0xbe: case 0xbf:
		return into_register(p, SIMPLE, 0);
	case 0xb8: case 0xbc: case 0xbd: /* POPCNT, TZCNT, LZCNT; without F3 BSF and BSR */
		return into_register(p, SIMPLE, IN_ALL_FLAGS);
	default: /* BSWAP */
		return (struct effect){.known = true, .latency = SIMPLE, .reads = IN_REGISTER(low), .writes = IN_REGISTER(low)};
	}
}

static struct effect integer_38(struct parse *p)
{
	struct effect e;
	bool crc = p->repeat_not;

	if (!p->vex && (p->opcode == 0xf0 || p->opcode == 0xf1)) { /* CRC32; else MOVBE */
		if (!crc && p->opcode == 0xf1)
			return nothing;
		e = into_register(p, crc ? CRC : SIMPLE, 0);
		e.reads |= crc ? IN_REGISTER(p->reg) : 0;
		return e;
	}
	if (!p->vex && p->opcode == 0xf6) { /* ADCX, ADOX */
		uint64_t flag = p->word ? IN_CARRY : IN_FLAGS;
		e = into_register(p, SIMPLE, flag);
		e.reads |= IN_REGISTER(p->reg) | flag;
		return e;
	}
	if (!p->vex)
		return unknown;
	bool no_prefix = !p->repeat && !p->repeat_not && !p->word;
	e = into_register(p, SIMPLE, 0);
	switch (p->opcode) {
	case 0xf3: /* BLSR and its like: to the further register */
		e.writes = IN_REGISTER(p->other) | IN_ALL_FLAGS;
		break;
	case 0xf6: /* MULX: a second result */
		e.latency = MULTIPLY;
		e.reads |= IN_REGISTER(RDX);
		e.writes |= IN_REGISTER(p->other);
		break;
	default: /* ANDN, BZHI, PEXT, PDEP, BEXTR, SHLX… */
		e.latency = p->opcode == 0xf5 && !no_prefix ? MULTIPLY : SIMPLE;
		e.reads |= IN_REGISTER(p->other);
		e.writes |= p->opcode == 0xf2 || no_prefix ? IN_ALL_FLAGS : 0;
	}
	return e;
}

/* Vectors. */

/* The result has one operand: neither what was there before, nor VEX's further register. */
static bool is_copy(const struct parse *p)
{
	bool scalar = p->repeat || p->repeat_not;

	switch (p->map << 8 | p->opcode) {
	case 0x110:
		return p->memory || !scalar;
	case 0x112: case 0x116:
		return scalar;
	case 0x151: case 0x152: case 0x153: case 0x15a:
		return !scalar;
	case 0x17e:
		return p->repeat;
	case 0x128: case 0x15b: case 0x16e: case 0x16f: case 0x170: case 0x1e6: case 0x1f0:
	/* Broadcasts, PABSx, PMOVSX and PMOVZX, MOVNTDQA, PHMINPOSUW, AESIMC. */
	case 0x218: case 0x219: case 0x21a: case 0x21c ... 0x21e: case 0x220 ... 0x225: case 0x22a: case 0x230 ... 0x235: case 0x241:
	case 0x258 ... 0x25a: case 0x278: case 0x279: case 0x2db:
	/* Permutations by a constant, ROUNDPx, AESKEYGENASSIST. */
	case 0x300: case 0x301: case 0x304: case 0x305: case 0x308: case 0x309: case 0x3df:
		return true;
	default:
		return false;
	}
}

static uint8_t vector_latency(const struct parse *p)
{
	uint8_t opcode = p->opcode;

	if (p->map == 2) {
		if (opcode == 0x04 || opcode == 0x0b || opcode == 0x28 || opcode == 0x40)
			return MULTIPLY;
		return opcode >= 0xdb && opcode <= 0xdf ? CRYPTO : opcode >= 0x96 && opcode <= 0xbf ? FUSED : SIMPLE;
	}
	if (p->map == 3)
		return opcode == 0x44 || opcode == 0xdf ? CRYPTO : opcode >= 0x08 && opcode <= 0x0b ? FLOAT : SIMPLE;
	switch (opcode) {
	case 0x10: case 0x28: case 0x6f:
		return p->memory ? 0 : opcode == 0x10 && (p->repeat || p->repeat_not) ? SIMPLE : 0;
	case 0x51: case 0x58: case 0x59: case 0x5c ... 0x5f: case 0x7c: case 0x7d: case 0xd0: /* arithmetic of floating point */
		return FLOAT;
	case 0x5a: case 0x5b: case 0xe6: case 0x2a:
		return CONVERT;
	case 0xd5: case 0xe4: case 0xe5: case 0xf4: case 0xf5: case 0xf6:
		return MULTIPLY;
	default:
		return SIMPLE;
	}
}

static bool is_vector_store(const struct parse *p)
{
	if (p->map == 2)
		return p->vex && (p->opcode == 0x2e || p->opcode == 0x2f || p->opcode == 0x8e);
	if (p->map == 3)
		return p->memory && ((p->opcode >= 0x14 && p->opcode <= 0x17) || p->opcode == 0x19 || p->opcode == 0x39);
	switch (p->opcode) {
	case 0x11: case 0x7f: case 0xd6: case 0x29:
		return p->memory;
	case 0x13: case 0x17: case 0x2b: case 0xe7:
		return true;
	case 0x7e:
		return p->memory && !p->repeat;
	default:
		return false;
	}
}

/* From a vector to a general register or the flags. Returns whether it is such a one. */
static bool leaves_vectors(const struct parse *p, struct effect *e)
{
	uint64_t from = IN_VECTOR(p->rm), to = IN_REGISTER(p->reg);
	uint8_t latency = MOVE_MASK;

	if (p->map == 2 && p->opcode == 0x17) { /* PTEST */
		from = IN_VECTOR(p->reg) | (p->memory ? 0 : IN_VECTOR(p->rm));
		to = IN_ALL_FLAGS;
	} else if (p->map == 3 && p->opcode >= 0x14 && p->opcode <= 0x17) { /* PEXTR */
		from = IN_VECTOR(p->reg);
		to = IN_REGISTER(p->rm);
	} else if (p->map != 1) {
		return false;
	} else if (p->opcode == 0x7e && !p->repeat) { /* MOVD, MOVQ */
		from = IN_VECTOR(p->reg);
		to = IN_REGISTER(p->rm);
		latency = SIMPLE;
	} else if (p->opcode == 0x2c || p->opcode == 0x2d) { /* CVTSD2SI… */
		from = p->memory ? 0 : IN_VECTOR(p->rm);
		latency = CONVERT;
	} else if (p->opcode == 0x2e || p->opcode == 0x2f) { /* UCOMIS… */
		from = IN_VECTOR(p->reg) | (p->memory ? 0 : IN_VECTOR(p->rm));
		to = IN_ALL_FLAGS;
		latency = SIMPLE;
	} else if (p->opcode != 0xd7 && p->opcode != 0x50 && p->opcode != 0xc5) { /* PMOVMSKB, MOVMSKPS, PEXTRW */
		return false;
	}
	*e = from_rm(p, vector, latency);
	e->reads = from;
	e->writes = to;
	return true;
}

/* Not of two vectors, or not of the usual operands: they are left out. */
static bool is_strange_vector(const struct parse *p)
{
	bool prefix = p->vex || p->word || p->repeat || p->repeat_not;

	switch (p->map << 8 | p->opcode) {
	case 0x100 ... 0x10f: case 0x118 ... 0x127: case 0x130 ... 0x14f: case 0x171 ... 0x173: case 0x177 ... 0x179: case 0x180 ... 0x1c1:
	case 0x1c7: case 0x1ff:
	case 0x210: case 0x214: case 0x215: case 0x280 ... 0x295: case 0x2c8 ... 0x2da: case 0x2e0 ... 0x2ff:
	case 0x34a ... 0x3de: case 0x3e0 ... 0x3ff:
		return true;
	case 0x1c2: case 0x1c6:
		return false;
	default: /* what has no prefix is MMX's, but for the floating-point numbers of the first map */
		return p->map == 1 ? !prefix && p->opcode >= 0x60 : !p->vex && !p->word;
	}
}

/* Shifts by a constant: the operand is the second one, the result VEX's further register or the operand itself. */
static struct effect shift_vector(const struct parse *p)
{
	uint8_t to = p->vex ? p->other : p->rm;

	return (struct effect){.known = true, .latency = SIMPLE, .reads = IN_VECTOR(p->rm), .writes = IN_VECTOR(to)};
}

static bool is_always_zero(const struct parse *p)
{
	bool zero = p->opcode == 0x57 || p->opcode == 0xef || (p->opcode >= 0xf8 && p->opcode <= 0xfb);

	return p->map == 1 && zero && !p->memory && p->rm == (p->vex ? p->other : p->reg);
}

static struct effect vector_effect(struct parse *p)
{
	struct effect e;

	if (p->map == 1 && p->opcode == 0x77) /* EMMS, VZEROUPPER */
		return p->vex ? nothing : unknown;
	if (!read_modrm(p))
		return unknown;
	if (p->map == 1 && p->opcode >= 0x71 && p->opcode <= 0x73)
		return (p->word || p->vex) && !p->memory ? shift_vector(p) : unknown;
	if (is_vector_store(p))
		return vector_store;
	bool from_general = (p->map == 1 && (p->opcode == 0x6e || p->opcode == 0xc4 || p->opcode == 0x2a)) ||
						(p->map == 3 && (p->opcode == 0x20 || p->opcode == 0x22));
	if (leaves_vectors(p, &e))
		return e;
	if (is_strange_vector(p) && !from_general)
		return unknown;
	/* To the second operand: the same as to the first from the second, with the operands exchanged. */
	if (p->map == 1 && !p->memory && (p->opcode == 0x11 || p->opcode == 0x29 || p->opcode == 0x7f || p->opcode == 0xd6))
		return (struct effect){.known = true, .reads = IN_VECTOR(p->reg), .writes = IN_VECTOR(p->rm)};
	if (p->map == 3 && (p->opcode == 0x19 || p->opcode == 0x39)) /* VEXTRACTI128 */
		return (struct effect){.known = true, .latency = SIMPLE, .reads = IN_VECTOR(p->reg), .writes = IN_VECTOR(p->rm)};
	e = from_rm(p, from_general ? general : vector, vector_latency(p));
	e.writes = IN_VECTOR(p->reg);
	if (!is_copy(p))
		e.reads |= IN_VECTOR(p->vex ? p->other : p->reg);
	/* FMA adds to what was there. */
	if (p->map == 2 && p->opcode >= 0x96 && p->opcode <= 0xbf)
		e.reads |= IN_VECTOR(p->reg);
	if (is_always_zero(p))
		e.reads = 0;
	return e;
}

static struct effect by_map(struct parse *p)
{
	if (p->map == 0)
		return one_byte(p);
	if (p->map == 1 && !p->vex && is_integer_0f(p->opcode))
		return integer_0f(p);
	if (p->map == 2 && (p->vex ? p->opcode >= 0xf2 && p->opcode <= 0xf7 : p->opcode >= 0xf0))
		return integer_38(p);
	if (p->map == 3 && p->vex && p->opcode == 0xf0) /* RORX */
		return into_register(p, SIMPLE, 0);
	return vector_effect(p);
}

struct effect effect_of(const uint8_t *bytes, size_t length)
{
	struct parse p = {.at = bytes, .end = bytes + length};
	struct effect effect = read_opcode(&p) && !p.lock ? by_map(&p) : unknown;

	return effect.known ? effect : unknown;
}

enum { DEC = 1, TEST = 0 };

static bool is_fusible(int operation)
{
	return operation == ADD || operation == AND || operation == SUB || operation == COMPARE;
}

/* What is stored, too, is not fused. */
static bool fuses(struct parse *p)
{
	uint8_t opcode = p->opcode;

	if (opcode < 0x40 && (opcode & 7) < 6 && is_fusible(opcode >> 3)) {
		bool to_rm = (opcode & 7) < 2;
		return (opcode & 7) >= 4 || (read_modrm(p) && !(p->memory && to_rm && opcode >> 3 != COMPARE));
	}
	switch (opcode) {
	case 0x80: case 0x81: case 0x83:
		return read_modrm(p) && !p->memory && is_fusible(p->reg & 7);
	case 0x84: case 0x85: /* TEST */
	case 0xa8: case 0xa9:
		return true;
	case 0xf6: case 0xf7:
		return read_modrm(p) && !p->memory && (p->reg & 7) == TEST;
	case 0xfe: case 0xff:
		return read_modrm(p) && !p->memory && (p->reg & 7) <= DEC;
	default:
		return false;
	}
}

bool effect_fuses(const uint8_t *bytes, size_t length)
{
	struct parse p = {.at = bytes, .end = bytes + length};

	return read_opcode(&p) && !p.lock && !p.vex && p.map == 0 && fuses(&p);
}
