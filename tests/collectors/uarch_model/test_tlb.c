/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The TLB: sequences worked out by hand, and random ones against a list of translations. */
#include "tlb.h"

#include "check.h"

#define KIB4 0x1000ull
#define MIB2 0x200000ull
#define GIB1 0x40000000ull
#define MOST_ENTRIES 64

static struct tlb_entry page(uint64_t frame, enum page_size size, uint32_t generation)
{
	return (struct tlb_entry){.frame = frame, .size = (uint8_t)size, .generation = generation, .memory = true};
}

static struct tlb_entry *insert(struct tlb *tlb, uint64_t address, struct tlb_entry translation, struct tlb_context context, uint64_t now)
{
	struct tlb_entry evicted;

	return tlb_insert(tlb, address, &translation, context, now, &evicted);
}

/* One set of two ways. */
static void the_oldest_goes(void)
{
	struct tlb_context context = {.generation = 1};
	struct tlb_entry evicted, one = page(7 * KIB4, PAGE_4K, 1);
	struct tlb tlb;

	CHECK(tlb_init(&tlb, 2, 2));
	CHECK(!tlb_find(&tlb, 5 * KIB4, PAGE_4K, context));
	CHECK(tlb_insert(&tlb, 5 * KIB4 + 123, &one, context, 1, &evicted));
	EQUAL(evicted.key, TLB_EMPTY);
	insert(&tlb, 6 * KIB4, one, context, 2);
	EQUAL(tlb_find(&tlb, 5 * KIB4 + 4095, PAGE_4K, context)->frame, 7 * KIB4);
	/* To find is not to use. */
	tlb_insert(&tlb, 8 * KIB4, &one, context, 3, &evicted);
	EQUAL(evicted.key, 5);
	tlb_find(&tlb, 6 * KIB4, PAGE_4K, context)->stamp = 4;
	tlb_insert(&tlb, 9 * KIB4, &one, context, 5, &evicted);
	EQUAL(evicted.key, 8);
	CHECK(tlb_find(&tlb, 6 * KIB4, PAGE_4K, context) && tlb_find(&tlb, 9 * KIB4, PAGE_4K, context));
	tlb_clear(&tlb);
	CHECK(!tlb_find(&tlb, 6 * KIB4, PAGE_4K, context));
	tlb_free(&tlb);
}

/* Four sets, all sizes in one TLB: the page numbers are the same, the pages are not. */
static void sizes_are_told_apart(void)
{
	struct tlb_context context = {.generation = 1};
	struct tlb tlb;

	CHECK(tlb_init(&tlb, 16, 4));
	insert(&tlb, 5 * KIB4, page(1 * GIB1, PAGE_4K, 1), context, 1);
	insert(&tlb, 5 * MIB2, page(2 * GIB1, PAGE_2M, 1), context, 2);
	insert(&tlb, 5 * GIB1, page(3 * GIB1, PAGE_1G, 1), context, 3);
	EQUAL(tlb_find(&tlb, 5 * KIB4, PAGE_4K, context)->frame, 1 * GIB1);
	EQUAL(tlb_find(&tlb, 6 * MIB2 - 1, PAGE_2M, context)->frame, 2 * GIB1);
	EQUAL(tlb_find(&tlb, 6 * GIB1 - 1, PAGE_1G, context)->frame, 3 * GIB1);
	CHECK(!tlb_find(&tlb, 5 * MIB2, PAGE_4K, context) && !tlb_find(&tlb, 5 * KIB4, PAGE_2M, context));
	/* INVLPG takes the page of whatever size. */
	tlb_forget(&tlb, 5 * GIB1 + 77, context);
	CHECK(!tlb_find(&tlb, 5 * GIB1, PAGE_1G, context));
	CHECK(tlb_find(&tlb, 5 * MIB2, PAGE_2M, context) && tlb_find(&tlb, 5 * KIB4, PAGE_4K, context));
	tlb_free(&tlb);
}

static void spaces_and_generations(void)
{
	struct tlb_context host = {.space = 0, .generation = 1}, guest = {.space = 3, .generation = 1},
			   next = {.space = 0, .generation = 2};
	uint64_t kernel = 0xffffffff81000000ull;
	struct tlb tlb;

	CHECK(tlb_init(&tlb, 8, 8));
	insert(&tlb, kernel, page(MIB2, PAGE_4K, TLB_GLOBAL), host, 1);
	insert(&tlb, KIB4, page(2 * MIB2, PAGE_4K, 1), host, 2);
	insert(&tlb, KIB4, page(3 * MIB2, PAGE_4K, 1), guest, 3);
	EQUAL(tlb_find(&tlb, KIB4, PAGE_4K, host)->frame, 2 * MIB2);
	EQUAL(tlb_find(&tlb, KIB4, PAGE_4K, guest)->frame, 3 * MIB2);
	CHECK(!tlb_find(&tlb, kernel, PAGE_4K, guest));
	/* A new CR3 outdates what is not global; a guest's entries are its own. */
	CHECK(!tlb_find(&tlb, KIB4, PAGE_4K, next));
	EQUAL(tlb_find(&tlb, kernel, PAGE_4K, next)->frame, MIB2);
	CHECK(tlb_find(&tlb, KIB4, PAGE_4K, guest));
	/* INVLPG takes global ones too, and those of another space are none of its business. */
	tlb_forget(&tlb, kernel, guest);
	CHECK(tlb_find(&tlb, kernel, PAGE_4K, next));
	tlb_forget(&tlb, kernel, next);
	CHECK(!tlb_find(&tlb, kernel, PAGE_4K, next));
	tlb_free(&tlb);
}

static void there_may_be_none(void)
{
	struct tlb_context context = {.generation = 1};
	struct tlb_entry one = page(0, PAGE_1G, 1), evicted;
	struct tlb tlb;

	CHECK(tlb_init(&tlb, 0, 0));
	tlb_clear(&tlb);
	CHECK(!tlb_insert(&tlb, GIB1, &one, context, 1, &evicted));
	CHECK(!tlb_find(&tlb, GIB1, PAGE_1G, context));
	tlb_forget(&tlb, GIB1, context);
	tlb_free(&tlb);
}

/* The reference: a list. Outdated entries stay in it until their place is needed, as in the TLB. */
struct naive {
	uint32_t sets, ways, count;
	struct {
		uint64_t number, frame, used; /* of the page */
		enum page_size size;
		struct tlb_context whose; /* generation 0: global */
	} held[MOST_ENTRIES];
};

static int naive_find(const struct naive *naive, uint64_t number, enum page_size size, struct tlb_context context)
{
	for (uint32_t i = 0; i < naive->count; i++)
		if (naive->held[i].number == number && naive->held[i].size == size && naive->held[i].whose.space == context.space &&
			(naive->held[i].whose.generation == context.generation || naive->held[i].whose.generation == 0))
			return (int)i;
	return -1;
}

static void naive_insert(struct naive *naive, uint64_t number, enum page_size size, struct tlb_context whose, uint64_t frame, uint64_t now)
{
	uint32_t in_set = 0, at = naive->count;

	for (uint32_t i = 0; i < naive->count; i++) {
		if (naive->held[i].number % naive->sets != number % naive->sets)
			continue;
		if (in_set++ == 0 || naive->held[i].used < naive->held[at].used)
			at = i;
	}
	if (in_set < naive->ways)
		at = naive->count++;
	naive->held[at].number = number;
	naive->held[at].size = size;
	naive->held[at].whose = whose;
	naive->held[at].frame = frame;
	naive->held[at].used = now;
}

static void against_the_list(uint32_t sets, uint32_t ways, uint32_t seed)
{
	struct random random = {seed};
	struct naive naive = {.sets = sets, .ways = ways};
	struct tlb_context context[2] = {{.space = 0, .generation = 1}, {.space = 61, .generation = 1}};
	struct tlb tlb;
	uint64_t hits = 0;

	CHECK(tlb_init(&tlb, sets * ways, ways));
	for (uint64_t now = 1; now <= 40000; now++) {
		struct tlb_context *who = &context[random_once_in(&random, 4)];
		enum page_size size = (enum page_size)random_below(&random, 3);
		uint64_t number = random_below(&random, sets * ways / 2 + 2), address = number << page_shift[size];
		if (random_once_in(&random, 200))
			who->generation++;
		if (random_once_in(&random, 50)) {
			tlb_forget(&tlb, address, *who);
			for (enum page_size each = PAGE_4K; each < PAGE_SIZES; each++) {
				int gone = naive_find(&naive, address >> page_shift[each], each, *who);
				if (gone >= 0)
					naive.held[gone] = naive.held[--naive.count];
			}
		}
		struct tlb_entry *entry = tlb_find(&tlb, address, size, *who);
		int at = naive_find(&naive, number, size, *who);
		CHECK((entry != NULL) == (at >= 0));
		if (entry) {
			hits++;
			EQUAL(entry->frame, naive.held[at].frame);
			entry->stamp = naive.held[at].used = now;
			continue;
		}
		bool global = random_once_in(&random, 5);
		insert(&tlb, address, page(now << 30, size, global ? TLB_GLOBAL : who->generation), *who, now);
		naive_insert(&naive, number, size, (struct tlb_context){who->space, global ? 0 : who->generation}, now << 30, now);
	}
	CHECK(hits > 4000 && hits < 36000);
	tlb_free(&tlb);
}

int main(void)
{
	the_oldest_goes();
	sizes_are_told_apart();
	spaces_and_generations();
	there_may_be_none();
	against_the_list(1, 8, 1);
	against_the_list(8, 1, 2);
	against_the_list(4, 4, 3);
	against_the_list(8, 6, 4);
	return 0;
}
