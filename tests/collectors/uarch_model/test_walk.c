/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Page walks: by hand, and random ones against the naive walk of tables.h. */
#include "tables.h"

#define RAM_BYTES (16ull << 20)
#define KERNEL 0xffffffff81000000ull

static struct profile without_caches(void)
{
	struct profile profile = default_profile();

	profile.walk_pde_entries = profile.walk_pdpte_entries = profile.walk_pml4e_entries = profile.walk_nested_entries = 0;
	return profile;
}

static struct walk walked(struct walker *walker, const struct address_space *space, uint64_t address)
{
	struct walk walk;

	CHECK(walker_walk(walker, space, address, &walk));
	return walk;
}

/* RAM lies below the hole, and goes on at 4 GiB. */
static void ram_has_a_hole(void)
{
	uint64_t words[8] = {10, 11, 12, 13, 14, 15, 16, 17}, value = 0;
	struct memory memory = {.low = (const uint8_t *)words, .high = (const uint8_t *)words + 32, .low_bytes = 32, .high_bytes = 32};

	CHECK(memory_read(&memory, 24, &value));
	EQUAL(value, 13);
	CHECK(memory_read(&memory, 29, &value)); /* 8 bytes that begin at a multiple of 8 */
	EQUAL(value, 13);
	CHECK(!memory_holds(&memory, 32) && !memory_read(&memory, 32, &value));
	CHECK(!memory_holds(&memory, 0xffffffffull));
	CHECK(memory_read(&memory, 0x100000000ull, &value));
	EQUAL(value, 14);
	CHECK(memory_read(&memory, 0x100000000ull + 24, &value));
	EQUAL(value, 17);
	CHECK(!memory_holds(&memory, 0x100000000ull + 32) && !memory_holds(&memory, UINT64_MAX));
	memory.low = NULL;
	CHECK(!memory_holds(&memory, 0));
}

/* The same four entries by hand: PML4 1, PDPT 2, PD 3, PT 4. */
static void four_levels_by_hand(void)
{
	struct ram ram = ram_new(1 << 20);
	struct profile profile = default_profile();
	struct address_space space = {.root = 0x1000 | 0x18}; /* the low bits of CR3 are flags */
	uint64_t address = 1ull << 39 | 2ull << 30 | 3ull << 21 | 4ull << 12 | 0x567;
	struct walker walker;
	struct walk walk;

	*ram_word(&ram, 0x1000 + 1 * 8) = 0x2000 | PTE_PRESENT;
	*ram_word(&ram, 0x2000 + 2 * 8) = 0x3000 | PTE_PRESENT;
	*ram_word(&ram, 0x3000 + 3 * 8) = 0x4000 | PTE_PRESENT;
	*ram_word(&ram, 0x4000 + 4 * 8) = 0x9000 | PTE_PRESENT | PTE_GLOBAL | 0x80 | 1ull << 63; /* in a PTE, 0x80 is PAT */
	walker_init(&walker, &profile, ram_memory(&ram));
	walk = walked(&walker, &space, address);
	EQUAL(walk.references, 4);
	EQUAL(walk.reference[0], 0x1008);
	EQUAL(walk.reference[1], 0x2010);
	EQUAL(walk.reference[2], 0x3018);
	EQUAL(walk.reference[3], 0x4020);
	EQUAL(walk.frame, 0x9000);
	EQUAL(walk.size, PAGE_4K);
	CHECK(walk.global);
	/* The page beside it: where the page table lies is known. */
	*ram_word(&ram, 0x4000 + 5 * 8) = 0xa000 | PTE_PRESENT;
	walk = walked(&walker, &space, address + KIB4);
	EQUAL(walk.references, 1);
	EQUAL(walk.reference[0], 0x4028);
	EQUAL(walk.frame, 0xa000);
	CHECK(!walk.global);
	/* A large page, by the PDPT, then by the directory that is known now: two entries, one entry. */
	*ram_word(&ram, 0x2000 + 7 * 8) = 0x5000 | PTE_PRESENT;
	*ram_word(&ram, 0x5000 + 0 * 8) = 0x600000 | PTE_PRESENT | PTE_LARGE | 0x1000; /* there, 0x1000 is PAT */
	walk = walked(&walker, &space, 1ull << 39 | 7ull << 30);
	EQUAL(walk.references, 2);
	EQUAL(walk.frame, 0x600000);
	EQUAL(walk.size, PAGE_2M);
	EQUAL(walked(&walker, &space, (1ull << 39 | 7ull << 30) + MIB2 - 1).references, 1);
	/* Without the caches all over. */
	walker_clear(&walker);
	EQUAL(walked(&walker, &space, address).references, 4);
	/* Not mapped: the entries up to the one that says so were read. */
	CHECK(!walker_walk(&walker, &space, address ^ 1ull << 39, &walk));
	EQUAL(walk.references, 1);
	CHECK(!walker_walk(&walker, &space, address + 100 * MIB2, &walk));
	EQUAL(walk.references, 1);
	EQUAL(walk.reference[0], 0x3000 + 103 * 8);
	free(ram.bytes);
}

/* How many entries a cold walk reads, and one with all that the caches can know. */
static void count_references(int levels, int under_levels, enum page_size size, enum page_size under_size, uint32_t cold, uint32_t warm)
{
	struct ram ram = ram_new(RAM_BYTES);
	struct profile none = without_caches(), all = default_profile();
	uint64_t guest_free = 3 * GIB1, physical = 4 * GIB1, address = KERNEL & ~(GIB1 - 1);
	struct tables under = tables_new(&ram, under_levels ? under_levels : 4), tables = tables_new(&ram, levels);
	struct address_space space;
	struct walker walker;

	if (under_levels) {
		tables = tables_of_guest(&under, levels, &guest_free);
		for (int i = 0; i < 2; i++)
			tables_map(&under, physical + i * KIB4 * (under_size == PAGE_4K), 8 * GIB1, under_size, 0);
	}
	for (int i = 0; i < 2; i++)
		tables_map(&tables, address + i * KIB4 * (size == PAGE_4K), physical + i * KIB4 * (size == PAGE_4K), size, 0);
	space = tables_space(&tables);
	walker_init(&walker, &none, ram_memory(&ram));
	EQUAL(walked(&walker, &space, address).references, cold);
	EQUAL(walked(&walker, &space, address).references, cold);
	walker_init(&walker, &all, ram_memory(&ram));
	walked(&walker, &space, address);
	EQUAL(walked(&walker, &space, address).references, warm);
	EQUAL(walked(&walker, &space, address).size, under_levels && under_size < size ? under_size : size);
	free(ram.bytes);
}

static void references_by_hand(void)
{
	count_references(4, 0, PAGE_4K, 0, 4, 1);
	count_references(4, 0, PAGE_2M, 0, 3, 1);
	count_references(4, 0, PAGE_1G, 0, 2, 1);
	count_references(5, 0, PAGE_4K, 0, 5, 1);
	count_references(5, 0, PAGE_1G, 0, 3, 1);
	/* Each of the guest's entries costs a nested walk and itself; the page costs one more nested walk. */
	count_references(4, 4, PAGE_4K, PAGE_4K, 4 * (4 + 1) + 4, 1);
	count_references(5, 5, PAGE_4K, PAGE_4K, 5 * (5 + 1) + 5, 1);
	count_references(4, 5, PAGE_4K, PAGE_4K, 4 * (5 + 1) + 5, 1);
	count_references(5, 4, PAGE_4K, PAGE_4K, 5 * (4 + 1) + 4, 1);
	count_references(4, 4, PAGE_2M, PAGE_4K, 3 * (4 + 1) + 4, 1);
	count_references(4, 4, PAGE_4K, PAGE_2M, 4 * (4 + 1) + 3, 1);
	count_references(4, 4, PAGE_1G, PAGE_2M, 2 * (4 + 1) + 3, 1);
	count_references(4, 4, PAGE_1G, PAGE_1G, 2 * (4 + 1) + 2, 1);
}

/* A nested walk with only a part of what it needs in the caches. */
static void nested_by_hand(void)
{
	struct ram ram = ram_new(RAM_BYTES);
	struct profile profile = default_profile();
	uint64_t guest_free = 0x100000;
	struct tables under = tables_new(&ram, 4), guest = tables_of_guest(&under, 4, &guest_free);
	struct address_space space, other;
	struct walker walker;

	for (uint64_t page = 0; page < 4; page++) {
		tables_map(&under, 0x800000 + page * KIB4, 0x300000 + page * 2 * KIB4, PAGE_4K, 0);
		tables_map(&guest, 0x400000 + page * KIB4, 0x800000 + page * KIB4, PAGE_4K, 0);
	}
	space = tables_space(&guest);
	space.tag = 5 << 16 | 1;
	walker_init(&walker, &profile, ram_memory(&ram));
	EQUAL(walked(&walker, &space, 0x400000).references, 24);
	/* The page table and where it lies are known; its entry, and the nested walk of the page. */
	EQUAL(walked(&walker, &space, 0x401000).references, 1 + 4);
	EQUAL(walked(&walker, &space, 0x401000).references, 1);
	EQUAL(walked(&walker, &space, 0x401abc).frame, 0x302000);
	/* The guest loads CR3: its tables must be read anew, but where they lie is still known. */
	space.tag++;
	EQUAL(walked(&walker, &space, 0x401000).references, 4);
	EQUAL(walked(&walker, &space, 0x402000).references, 1 + 4);
	/* Another guest knows nothing of that. */
	other = space;
	other.tag = 6 << 16 | 2;
	EQUAL(walked(&walker, &other, 0x401000).references, 24);
	/* Nor the guest itself once its host-physical pages may be others. */
	EQUAL(walked(&walker, &space, 0x402000).references, 1);
	walker_forget_guest(&walker, 5);
	EQUAL(walked(&walker, &space, 0x402000).references, 4 + 1 + 4);
	EQUAL(walked(&walker, &other, 0x401000).references, 1);
	free(ram.bytes);
}

/* What INVLPG must do: the tables above the page may have moved, too. */
static void forgotten_tables(void)
{
	struct ram ram = ram_new(RAM_BYTES);
	struct profile profile = default_profile();
	struct tables tables = tables_new(&ram, 4), others = tables_new(&ram, 4);
	struct address_space space = tables_space(&tables), other = tables_space(&others);
	struct walker walker;

	tables_map(&tables, 0x400000, 0x300000, PAGE_4K, 0);
	tables_map(&others, 0x400000, 0x500000, PAGE_4K, 0);
	space.tag = 1;
	other.tag = 2;
	walker_init(&walker, &profile, ram_memory(&ram));
	EQUAL(walked(&walker, &space, 0x400000).frame, 0x300000);
	EQUAL(walked(&walker, &other, 0x400000).frame, 0x500000);
	EQUAL(walked(&walker, &space, 0x400000).references, 1);
	walker_forget_tables(&walker, 1);
	EQUAL(walked(&walker, &space, 0x400000).references, 4);
	EQUAL(walked(&walker, &other, 0x400000).references, 1);
	free(ram.bytes);
}

/* Full caches: the entry used longest ago goes. */
static void caches_age(void)
{
	struct ram ram = ram_new(RAM_BYTES);
	struct profile profile = without_caches();
	struct tables tables = tables_new(&ram, 4);
	struct address_space space = tables_space(&tables);
	struct walker walker;

	for (uint64_t i = 0; i < 4; i++)
		tables_map(&tables, i * MIB2, 0x300000, PAGE_4K, 0);
	profile.walk_pde_entries = 2;
	walker_init(&walker, &profile, ram_memory(&ram));
	EQUAL(walked(&walker, &space, 0 * MIB2).references, 4);
	EQUAL(walked(&walker, &space, 1 * MIB2).references, 4);
	EQUAL(walked(&walker, &space, 0 * MIB2).references, 1);
	EQUAL(walked(&walker, &space, 2 * MIB2).references, 4);
	EQUAL(walked(&walker, &space, 0 * MIB2).references, 1);
	EQUAL(walked(&walker, &space, 1 * MIB2).references, 4);
	EQUAL(walked(&walker, &space, 2 * MIB2).references, 4);
	free(ram.bytes);
}

struct mapping {
	uint64_t virtual;
	enum page_size size;
};

static void random_address(struct random *random, const struct mapping *mappings, uint32_t count, uint64_t *address)
{
	const struct mapping *one = &mappings[random_below(random, count)];
	uint64_t bytes = one->size == PAGE_4K ? KIB4 : one->size == PAGE_2M ? MIB2 : GIB1;

	*address = one->virtual + ((uint64_t)random_below(random, UINT32_MAX) & (bytes - 1));
	/* Now and then the page beside, which may not be mapped. */
	if (random_once_in(random, 10))
		*address += bytes;
}

/* Pages of all sizes at random places, of 3 address spaces; `under_levels` 0: not of guests. */
static void against_the_naive_walk(int levels, int under_levels, uint32_t seed)
{
	enum { MAPPINGS = 60, SPACES = 3 };
	struct random random = {seed};
	struct ram ram = ram_new(RAM_BYTES);
	struct profile profile = default_profile();
	uint64_t guest_free = 7 * GIB1;
	struct tables under = tables_new(&ram, under_levels ? under_levels : 4), tables[SPACES];
	struct mapping mappings[SPACES][MAPPINGS];
	struct naive_caches caches;
	struct walker walker;
	uint32_t failed = 0, saved = 0;

	profile.walk_pde_entries = 6;
	profile.walk_pdpte_entries = 3;
	profile.walk_pml4e_entries = 2;
	naive_caches_init(&caches, &profile);
	walker_init(&walker, &profile, ram_memory(&ram));
	for (int i = 0; i < SPACES; i++) {
		tables[i] = under_levels ? tables_of_guest(&under, levels, &guest_free) : tables_new(&ram, levels);
		for (int m = 0; m < MAPPINGS; m++) {
			enum page_size size = (enum page_size)random_below(&random, 3);
			uint64_t upper = random_below(&random, 2) ? ~0ull << (bits_below(levels) + 8) : 0;
			/* Each size in a part of its own: no page may lie where another's table is. */
			uint64_t virtual = upper | (uint64_t)size << 39 | (uint64_t)random_below(&random, 2) << 30;
			virtual |= size == PAGE_4K ? (uint64_t)random_below(&random, 1 << 12) << 12 : 0;
			virtual |= size == PAGE_2M ? (uint64_t)random_below(&random, 16) << 21 : 0;
			uint64_t physical = (uint64_t)random_below(&random, 6) << 30;
			if (under_levels && physical < 3 * GIB1)
				tables_map(&under, physical, (uint64_t)(1 + random_below(&random, 9)) << 30, PAGE_1G, 0);
			else if (under_levels)
				tables_map(&under, physical, (uint64_t)(1 + random_below(&random, 9)) << 21, PAGE_2M, 0);
			tables_map(&tables[i], virtual, physical, size, random_below(&random, 2) * PTE_GLOBAL);
			mappings[i][m] = (struct mapping){virtual, size};
		}
	}
	for (int i = 0; i < 20000; i++) {
		uint32_t which = random_below(&random, SPACES), generation = 1 + (uint32_t)i / 1000;
		struct address_space space = tables_space(&tables[which]);
		uint64_t address;
		struct walk walk;
		random_address(&random, mappings[which], MAPPINGS, &address);
		space.tag = (which + 1) << 16 | generation;
		bool mapped = walker_walk(&walker, &space, address, &walk);
		struct naive_walk expected = naive_walk(&tables[which], &caches, which + 1, generation, address);
		struct naive_walk alone = naive_walk(&tables[which], NULL, 0, 0, address);
		EQUAL(mapped, expected.mapped);
		EQUAL(walk.references, expected.references);
		for (uint32_t r = 0; r < walk.references; r++)
			EQUAL(walk.reference[r], expected.reference[r]);
		failed += !mapped;
		saved += alone.references - expected.references;
		if (!mapped)
			continue;
		/* The caches save references and change nothing else. */
		EQUAL(walk.frame, alone.frame);
		EQUAL(walk.size, alone.size);
		EQUAL(walk.global, alone.global);
		if (random_once_in(&random, 100)) {
			walker_forget_tables(&walker, space.tag);
			for (int level = 1; level <= 3; level++)
				naive_forget(&caches, level, which + 1, generation);
		}
		if (under_levels && random_once_in(&random, 300)) {
			walker_forget_guest(&walker, (uint16_t)(which + 1));
			naive_forget(&caches, 0, which + 1, 0);
		}
	}
	CHECK(failed > 100 && failed < 10000 && saved > 5000);
	free(ram.bytes);
}

int main(void)
{
	ram_has_a_hole();
	four_levels_by_hand();
	references_by_hand();
	nested_by_hand();
	forgotten_tables();
	caches_age();
	against_the_naive_walk(4, 0, 1);
	against_the_naive_walk(5, 0, 2);
	against_the_naive_walk(4, 4, 3);
	against_the_naive_walk(5, 4, 4);
	against_the_naive_walk(4, 5, 5);
	against_the_naive_walk(5, 5, 6);
	return 0;
}
