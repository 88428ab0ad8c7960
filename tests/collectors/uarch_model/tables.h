/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page tables in a made-up RAM, and a naive walk of them: the paging-structure caches are a list with times of use, a guest's
 * addresses are translated by calling oneself.
 */
#ifndef VSPROF_TEST_TABLES_H
#define VSPROF_TEST_TABLES_H

#include <string.h>

#include "check.h"
#include "walk.h"

#define KIB4 0x1000ull
#define MIB2 0x200000ull
#define GIB1 0x40000000ull
#define PTE_PRESENT 1ull
#define PTE_LARGE 0x80ull
#define PTE_GLOBAL 0x100ull
#define PTE_ADDRESS 0x000ffffffffff000ull

struct ram {
	uint8_t *bytes;
	uint64_t size, free; /* `free`: the lowest page that is not handed out yet */
};

static inline struct ram ram_new(uint64_t size)
{
	struct ram ram = {.bytes = aligned_alloc(4096, size), .size = size, .free = KIB4};

	CHECK(ram.bytes);
	memset(ram.bytes, 0, size);
	return ram;
}

static inline struct memory ram_memory(const struct ram *ram)
{
	return (struct memory){.low = ram->bytes, .low_bytes = ram->size};
}

static inline uint64_t ram_page(struct ram *ram)
{
	uint64_t page = ram->free;

	ram->free += KIB4;
	CHECK(ram->free <= ram->size);
	return page;
}

static inline uint64_t *ram_word(const struct ram *ram, uint64_t address)
{
	CHECK(address + 8 <= ram->size);
	return (uint64_t *)(ram->bytes + address);
}

/* The tables of one address space; those of a guest lie at guest-physical addresses, which the tables `under` them translate. */
struct tables {
	struct ram *ram;
	const struct tables *under;
	uint64_t root;
	int levels;
	uint64_t *guest_free; /* the lowest guest-physical page that is not handed out yet */
};

static inline int bits_below(int level)
{
	return 12 + 9 * (level - 1);
}

/* Where a table's page lies in RAM; no reference is counted. */
static inline uint64_t tables_host(const struct tables *tables, uint64_t address)
{
	uint64_t table, entry;

	if (!tables->under)
		return address;
	table = tables->under->root;
	for (int level = tables->under->levels;; level--) {
		entry = *ram_word(tables->ram, table + (address >> bits_below(level) & 511) * 8);
		CHECK(entry & PTE_PRESENT);
		table = entry & PTE_ADDRESS;
		if (level == 1 || entry & PTE_LARGE)
			return (table & ~((1ull << bits_below(level)) - 1)) | (address & ((1ull << bits_below(level)) - 1));
	}
}

static inline void tables_map(const struct tables *tables, uint64_t virtual, uint64_t physical, enum page_size size, uint64_t flags);

static inline uint64_t tables_page(const struct tables *tables)
{
	if (!tables->under)
		return ram_page(tables->ram);
	/* Guest-physical and host-physical differ, so that none is taken for the other by accident. */
	uint64_t page = *tables->guest_free;
	*tables->guest_free += KIB4;
	tables_map(tables->under, page, ram_page(tables->ram), PAGE_4K, 0);
	return page;
}

static inline struct tables tables_new(struct ram *ram, int levels)
{
	return (struct tables){.ram = ram, .root = ram_page(ram), .levels = levels};
}

static inline struct tables tables_of_guest(const struct tables *under, int levels, uint64_t *guest_free)
{
	struct tables tables = {.ram = under->ram, .under = under, .levels = levels, .guest_free = guest_free};

	tables.root = tables_page(&tables);
	return tables;
}

static inline void tables_map(const struct tables *tables, uint64_t virtual, uint64_t physical, enum page_size size, uint64_t flags)
{
	uint64_t table = tables->root;

	for (int level = tables->levels; level > (int)size + 1; level--) {
		uint64_t *entry = ram_word(tables->ram, tables_host(tables, table) + (virtual >> bits_below(level) & 511) * 8);
		if (!(*entry & PTE_PRESENT)) {
			uint64_t fresh = tables_page(tables);
			*entry = fresh | PTE_PRESENT;
		}
		table = *entry & PTE_ADDRESS;
	}
	*ram_word(tables->ram, tables_host(tables, table) + (virtual >> bits_below((int)size + 1) & 511) * 8) =
		physical | flags | PTE_PRESENT | (size > PAGE_4K ? PTE_LARGE : 0);
}

static inline struct address_space tables_space(const struct tables *tables)
{
	struct address_space space = {.root = tables->root, .five_levels = tables->levels == 5};

	if (tables->under) {
		space.nested = true;
		space.nested_root = tables->under->root;
		space.nested_five_levels = tables->under->levels == 5;
	}
	return space;
}

/* What a walker has in its caches. `level`: of the table found, or 0: a guest-physical page. */
struct naive_known {
	int level, page_level;
	uint64_t number, value, used;
	uint32_t space, generation;
};

struct naive_caches {
	uint32_t room[4]; /* by the level of the table found: [0] is that of guest-physical pages */
	uint64_t time;
	uint32_t count;
	struct naive_known known[256];
};

static inline void naive_caches_init(struct naive_caches *caches, const struct profile *profile)
{
	memset(caches, 0, sizeof(*caches));
	caches->room[0] = profile->walk_nested_entries;
	caches->room[1] = profile->walk_pde_entries;
	caches->room[2] = profile->walk_pdpte_entries;
	caches->room[3] = profile->walk_pml4e_entries;
}

static inline struct naive_known *naive_known(struct naive_caches *caches, int level, uint64_t number, uint32_t space, uint32_t generation)
{
	for (uint32_t i = 0; caches && i < caches->count; i++) {
		struct naive_known *known = &caches->known[i];
		if (known->level == level && known->number == number && known->space == space && known->generation == generation) {
			known->used = ++caches->time;
			return known;
		}
	}
	return NULL;
}

static inline void naive_learn(struct naive_caches *caches, struct naive_known fresh)
{
	uint32_t count = 0, oldest = 0;

	if (!caches || !caches->room[fresh.level])
		return;
	fresh.used = ++caches->time;
	for (uint32_t i = 0; i < caches->count; i++) {
		if (caches->known[i].level != fresh.level)
			continue;
		if (count++ == 0 || caches->known[i].used < caches->known[oldest].used)
			oldest = i;
	}
	if (count < caches->room[fresh.level])
		oldest = caches->count++;
	caches->known[oldest] = fresh;
}

/* Forget all of one level, space and generation. */
static inline void naive_forget(struct naive_caches *caches, int level, uint32_t space, uint32_t generation)
{
	for (uint32_t i = 0; i < caches->count;)
		if (caches->known[i].level == level && caches->known[i].space == space && caches->known[i].generation == generation)
			caches->known[i] = caches->known[--caches->count];
		else
			i++;
}

struct naive_walk {
	bool mapped, global;
	uint64_t frame;
	enum page_size size;
	uint32_t references;
	uint64_t reference[64];
};

/* Read an entry, if its address is in RAM. */
static inline bool naive_read(const struct tables *tables, uint64_t address, struct naive_walk *walk, uint64_t *entry)
{
	walk->reference[walk->references++] = address;
	if (address + 8 > tables->ram->size)
		return false;
	*entry = *ram_word(tables->ram, address);
	return *entry & PTE_PRESENT;
}

/* Guest-physical to host-physical; without tables under it, an address is what it is. */
static inline bool naive_under(const struct tables *tables, struct naive_caches *caches, uint32_t space, uint64_t address,
	struct naive_walk *walk, uint64_t *physical, int *page_level)
{
	const struct tables *under = tables->under;
	struct naive_known *known;
	uint64_t table, entry;

	*physical = address;
	*page_level = 4;
	if (!under)
		return true;
	known = naive_known(caches, 0, address >> 12, space, 0);
	if (known) {
		*physical = known->value | (address & 0xfff);
		*page_level = known->page_level;
		return true;
	}
	table = under->root;
	for (int level = under->levels;; level--) {
		if (!naive_read(under, table + (address >> bits_below(level) & 511) * 8, walk, &entry))
			return false;
		table = entry & PTE_ADDRESS;
		if (level == 1 || (level < 4 && entry & PTE_LARGE)) {
			uint64_t within = (1ull << bits_below(level)) - 1;
			*physical = (table & ~within) | (address & within);
			*page_level = level;
			naive_learn(caches,
				(struct naive_known){
					.number = address >> 12, .value = *physical & ~0xfffull, .page_level = level, .space = space});
			return true;
		}
	}
}

/* `caches` may be NULL: a processor without any. */
static inline struct naive_walk naive_walk(
	const struct tables *tables, struct naive_caches *caches, uint32_t space, uint32_t generation, uint64_t address)
{
	struct naive_walk walk = {.references = 0};
	uint64_t table = tables->root, at, entry, physical;
	int level = tables->levels, page_level;

	for (int found = 1; found <= 3; found++) {
		struct naive_known *known = naive_known(caches, found, address >> bits_below(found + 1), space, generation);
		if (known) {
			table = known->value;
			level = found;
			break;
		}
	}
	for (;; level--) {
		if (!naive_under(tables, caches, space, table, &walk, &at, &page_level))
			return walk;
		if (!naive_read(tables, at + (address >> bits_below(level) & 511) * 8, &walk, &entry))
			return walk;
		table = entry & PTE_ADDRESS;
		if (level == 1 || (level < 4 && entry & PTE_LARGE))
			break;
		if (level < 5)
			naive_learn(caches, (struct naive_known){.level = level - 1,
						    .number = address >> bits_below(level),
						    .value = table,
						    .space = space,
						    .generation = generation});
	}
	uint64_t within = (1ull << bits_below(level)) - 1;
	if (!naive_under(tables, caches, space, (table & ~within) | (address & within), &walk, &physical, &page_level))
		return walk;
	walk.mapped = true;
	walk.global = entry & PTE_GLOBAL;
	walk.size = (enum page_size)((page_level < level ? page_level : level) - 1);
	walk.frame = physical & ~((1ull << bits_below((int)walk.size + 1)) - 1);
	return walk;
}

#endif
