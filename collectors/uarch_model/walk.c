/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "walk.h"

#include <string.h>

#define PRESENT 0x1ull
#define LARGE 0x80ull
#define GLOBAL 0x100ull
#define FRAME 0x000ffffffffff000ull
#define FOUR_GIB 0x100000000ull

static const uint64_t *find(const struct memory *memory, uint64_t address)
{
	bool is_high = address >= FOUR_GIB;
	const uint8_t *base = is_high ? memory->high : memory->low;
	uint64_t offset = (is_high ? address - FOUR_GIB : address) & ~7ull;

	return base && offset + 8 <= (is_high ? memory->high_bytes : memory->low_bytes) ? (const uint64_t *)(base + offset) : NULL;
}

bool memory_holds(const struct memory *memory, uint64_t address)
{
	return find(memory, address) != NULL;
}

bool memory_read(const struct memory *memory, uint64_t address, uint64_t *value)
{
	const uint64_t *at = find(memory, address);

	if (at)
		*value = __atomic_load_n(at, __ATOMIC_RELAXED);
	return at != NULL;
}

void walker_init(struct walker *walker, const struct profile *profile, struct memory memory)
{
	memset(walker, 0, sizeof(*walker));
	walker->memory = memory;
	walker->level[0].entries = profile->walk_pde_entries;
	walker->level[1].entries = profile->walk_pdpte_entries;
	walker->level[2].entries = profile->walk_pml4e_entries;
	walker->nested.entries = profile->walk_nested_entries;
}

static void clear(struct walk_cache *cache)
{
	memset(cache->slot, 0, sizeof(cache->slot));
}

void walker_clear(struct walker *walker)
{
	for (int i = 0; i < 3; i++)
		clear(&walker->level[i]);
	clear(&walker->nested);
}

/* Keys are never 0: the lowest bit says that the slot is in use. */
static bool cached(struct walk_cache *cache, uint64_t key, uint64_t *value)
{
	for (uint32_t i = 0; i < cache->entries; i++) {
		if (cache->slot[i].key != key)
			continue;
		*value = cache->slot[i].value;
		memmove(&cache->slot[1], &cache->slot[0], i * sizeof(cache->slot[0]));
		cache->slot[0].key = key;
		cache->slot[0].value = *value;
		return true;
	}
	return false;
}

static void remember(struct walk_cache *cache, uint64_t key, uint64_t value)
{
	if (!cache->entries)
		return;
	memmove(&cache->slot[1], &cache->slot[0], (cache->entries - 1) * sizeof(cache->slot[0]));
	cache->slot[0].key = key;
	cache->slot[0].value = value;
}

#define TAG_BITS 27

static uint64_t key_of(uint64_t page, uint32_t tag)
{
	return ((page << (TAG_BITS + 1)) ^ ((uint64_t)tag << 1)) | 1;
}

/* Take out what has `tag`, and close the gaps: an empty slot is used before an entry has to go. */
static void forget(struct walk_cache *cache, uint32_t tag)
{
	uint64_t mask = ((1ull << TAG_BITS) - 1) << 1 | 1, key = key_of(0, tag) & mask;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < cache->entries; i++)
		if ((cache->slot[i].key & mask) != key)
			cache->slot[kept++] = cache->slot[i];
	memset(&cache->slot[kept], 0, (cache->entries - kept) * sizeof(cache->slot[0]));
}

void walker_forget_tables(struct walker *walker, uint32_t tag)
{
	for (int i = 0; i < 3; i++)
		forget(&walker->level[i], tag);
}

void walker_forget_guest(struct walker *walker, uint16_t number)
{
	forget(&walker->nested, number);
}

static bool read_entry(const struct walker *walker, struct walk *walk, uint64_t at, uint64_t *entry)
{
	if (walk->references < WALK_MOST_REFERENCES)
		walk->reference[walk->references++] = at;
	return memory_read(&walker->memory, at, entry) && (*entry & PRESENT);
}

/* Bits of the address below the page or table that an entry of `level` (1: PTE) maps. */
static int shift_of(int level)
{
	return 12 + 9 * (level - 1);
}

static bool is_page(uint64_t entry, int level)
{
	return level == 1 || (level <= 3 && (entry & LARGE));
}

static uint64_t page_of(uint64_t entry, int level)
{
	return entry & FRAME & ~((1ull << shift_of(level)) - 1);
}

/* From guest-physical to host-physical by the nested tables. `level` becomes that of the page found. */
static bool nested_translate(
	struct walker *walker, const struct address_space *space, uint64_t address, struct walk *walk, uint64_t *result, int *level)
{
	uint64_t table = space->nested_root & FRAME, entry, known;
	uint64_t key = key_of(address >> 12, space->tag >> 16);

	if (cached(&walker->nested, key, &known)) {
		/* The page's level rides in the low bits of its address. */
		*level = (int)(known & 7);
		*result = (known & ~7ull) | (address & 0xfff);
		return true;
	}
	for (int at = space->nested_five_levels ? 5 : 4; at >= 1; at--) {
		if (!read_entry(walker, walk, table + ((address >> shift_of(at)) & 511) * 8, &entry))
			return false;
		if (is_page(entry, at)) {
			*level = at;
			*result = page_of(entry, at) | (address & ((1ull << shift_of(at)) - 1));
			remember(&walker->nested, key, (*result & ~0xfffull) | (uint64_t)at);
			return true;
		}
		table = entry & FRAME;
	}
	return false;
}

/* The host-physical address of a table, which in a guest is known by its guest-physical one. */
static bool table_at(struct walker *walker, const struct address_space *space, uint64_t table, struct walk *walk, uint64_t *result)
{
	int level;

	*result = table;
	return !space->nested || nested_translate(walker, space, table, walk, result, &level);
}

/* Begin as low as the paging-structure caches allow; returns the level to read and its table. */
static int first_level(struct walker *walker, const struct address_space *space, uint64_t address, uint64_t *table)
{
	for (int i = 0; i < 3; i++)
		if (cached(&walker->level[i], key_of(address >> shift_of(i + 2), space->tag), table))
			return i + 1;
	*table = space->root & FRAME;
	return space->five_levels ? 5 : 4;
}

static bool finish(struct walker *walker, const struct address_space *space, uint64_t address, uint64_t entry, int level, struct walk *walk)
{
	uint64_t physical = page_of(entry, level) | (address & ((1ull << shift_of(level)) - 1));

	walk->global = entry & GLOBAL;
	if (space->nested) {
		int nested_level;
		if (!nested_translate(walker, space, physical, walk, &physical, &nested_level))
			return false;
		/* A TLB can hold no more than the smaller of the two pages. */
		if (nested_level < level)
			level = nested_level;
	}
	walk->size = (enum page_size)(level - 1);
	walk->frame = physical & ~((1ull << shift_of(level)) - 1);
	return true;
}

bool walker_walk(struct walker *walker, const struct address_space *space, uint64_t address, struct walk *walk)
{
	uint64_t table, entry, at;

	walk->references = 0;
	for (int level = first_level(walker, space, address, &table); level >= 1; level--) {
		if (!table_at(walker, space, table, walk, &at))
			return false;
		if (!read_entry(walker, walk, at + ((address >> shift_of(level)) & 511) * 8, &entry))
			return false;
		if (is_page(entry, level))
			return finish(walker, space, address, entry, level, walk);
		table = entry & FRAME;
		if (level >= 2 && level <= 4)
			remember(&walker->level[level - 2], key_of(address >> shift_of(level), space->tag), table);
	}
	return false;
}
