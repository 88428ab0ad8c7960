/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an instruction reads and writes of the registers, and how long it takes from the one to the other: as much as chains of
 * dependent instructions (chain.h) must know. Memory is none of it: that a load gets what a store left is not seen.
 */
#ifndef VSPROF_EFFECT_H
#define VSPROF_EFFECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a result can stand in: general registers by number, then vector registers, the carry flag, all other flags. */
enum { PLACE_VECTOR = 16, PLACE_CARRY = 32, PLACE_FLAGS = 33, PLACES = 34 };
#define IN_REGISTER(n) (1ull << (n))
#define IN_VECTOR(n) (1ull << (PLACE_VECTOR + (n)))
#define IN_CARRY (1ull << PLACE_CARRY)
#define IN_FLAGS (1ull << PLACE_FLAGS)
#define IN_ALL_FLAGS (IN_CARRY | IN_FLAGS)

/* Sets of places, a bit each. */
struct effect {
	bool known;         /* false: an instruction that is not in the table */
	bool stores_vector; /* it writes a vector to memory */
	bool loads;         /* what it does takes data from memory, at an address made of `address` */
	uint8_t latency;    /* cycles from its operands to its results, without those of a load */
	uint64_t reads, address, writes;
};

/* Of one instruction in 64-bit mode; `length` may be more than it has. */
struct effect effect_of(const uint8_t *bytes, size_t length);

/*
 * Whether the core makes one of this instruction and a conditional branch right behind it: of a comparison or simple arithmetic, as AMD's
 * processors do since Zen 3 (Software Optimization Guides, "branch fusion") and Intel's since Sandy Bridge (Optimization Reference Manual,
 * "macro-fusion"). Not where a constant meets memory, nor what stores. What one of them alone does is simplified: OR and XOR, which Intel's
 * do not fuse, are left out; INC and DEC are in, which Intel's do not fuse with conditions on the carry.
 */
bool effect_fuses(const uint8_t *bytes, size_t length);

#endif
