/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page walks: reads the emulated host's real page tables out of its RAM, as its processor would, in one dimension for the host
 * and in two for a guest (AMD's nested paging). Knows nothing of caches: it says which entries were read.
 * Formats: AMD64 Architecture Programmer's Manual vol. 2, chapters 5 and 15.25; the same as Intel's in what is used here.
 */
#ifndef VSPROF_WALK_H
#define VSPROF_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "profile.h"

/* The machine's RAM as QEMU's q35 lays it out: from 0 to the 32-bit hole, and the rest from 4 GiB up. NULL: not to be read. */
struct memory {
	const uint8_t *low, *high;
	uint64_t low_bytes, high_bytes;
};

/* Whether the physical address is RAM, and if it can be read, 8 bytes of it. */
bool memory_holds(const struct memory *memory, uint64_t address);
bool memory_read(const struct memory *memory, uint64_t address, uint64_t *value);

struct address_space {
	uint64_t root;        /* CR3 */
	uint64_t nested_root; /* nCR3 */
	bool nested;          /* a guest's: its tables lie at guest-physical addresses */
	bool five_levels, nested_five_levels;
	uint32_t tag; /* names the space and generation in the paging-structure caches */
};

/* One fully associative cache of the walker, in order of use. */
struct walk_cache {
	uint32_t entries;
	struct {
		uint64_t key, value;
	} slot[128];
};

struct walker {
	struct memory memory;
	struct walk_cache level[3]; /* [0]: PDEs, [1]: PDPTEs, [2]: PML4Es: where the next table lies */
	struct walk_cache nested;   /* guest-physical pages to host-physical */
};

#define WALK_MOST_REFERENCES 36 /* 5 guest levels x (5 nested + 1) + 5 nested for the page itself, and one over */

struct walk {
	uint64_t frame; /* physical address of the page */
	enum page_size size;
	bool global;
	uint32_t references;
	uint64_t reference[WALK_MOST_REFERENCES]; /* physical addresses of the entries read, in order */
};

void walker_init(struct walker *walker, const struct profile *profile, struct memory memory);
void walker_clear(struct walker *walker);
/* Forget where the tables of the space and generation `tag` lie (INVLPG does that for whatever address). */
void walker_forget_tables(struct walker *walker, uint32_t tag);
/* Forget the host-physical pages of a guest. */
void walker_forget_guest(struct walker *walker, uint16_t number);
/* Returns false where the tables don't map the address; `walk` then has what was read so far. */
bool walker_walk(struct walker *walker, const struct address_space *space, uint64_t address, struct walk *walk);

#endif
