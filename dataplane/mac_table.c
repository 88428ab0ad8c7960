/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mac_table.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct bucket {
	_Atomic uint64_t word[MAC_WAYS]; /* address << 16 | port; 0: free */
	_Atomic uint32_t seen_s[MAC_WAYS];
} __attribute__((aligned(64)));

struct mac_table {
	uint32_t age_s;
	unsigned order;
	struct bucket *buckets;
};

struct mac_table *mac_table_new(unsigned order, uint32_t age_s)
{
	struct mac_table *table = malloc(sizeof(*table));
	size_t bytes = sizeof(struct bucket) << order;

	if (table == NULL)
		return NULL;
	table->age_s = age_s;
	table->order = order;
	table->buckets = aligned_alloc(64, bytes);
	if (table->buckets == NULL) {
		free(table);
		return NULL;
	}
	memset(table->buckets, 0, bytes);
	return table;
}

void mac_table_free(struct mac_table *table)
{
	if (table != NULL)
		free(table->buckets);
	free(table);
}

static struct bucket *bucket_of(const struct mac_table *table, uint64_t mac)
{
	/* Fibonacci hashing (Knuth, TAOCP 3, 6.4): the upper bits of a product with 2^64 / golden ratio. */
	return &table->buckets[(mac * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - table->order)];
}

static int way_of(struct bucket *bucket, uint64_t mac)
{
	for (int way = 0; way < MAC_WAYS; way++)
		if (atomic_load_explicit(&bucket->word[way], memory_order_relaxed) >> 16 == mac)
			return way;
	return -1;
}

static uint32_t age_of(const struct bucket *bucket, int way, uint32_t now_s)
{
	return now_s - atomic_load_explicit(&bucket->seen_s[way], memory_order_relaxed);
}

/* Another worker's clock may be one second ahead: that is new, not 2^32 seconds old. */
static bool aged(const struct mac_table *table, uint32_t age_s)
{
	return (int32_t)age_s > (int32_t)table->age_s;
}

uint16_t mac_lookup(const struct mac_table *table, uint64_t mac, uint32_t now_s)
{
	struct bucket *bucket = bucket_of(table, mac);
	int way = way_of(bucket, mac);
	uint64_t word;

	if (way < 0 || aged(table, age_of(bucket, way, now_s)))
		return MAC_UNKNOWN;
	word = atomic_load_explicit(&bucket->word[way], memory_order_relaxed);
	/* Another address may have taken the entry in between; a free one looks like the address of all zeros. */
	return word != 0 && word >> 16 == mac ? (uint16_t)word : MAC_UNKNOWN;
}

/* A free entry, or the one that was not seen for longest. */
static int way_to_take(struct bucket *bucket, uint32_t now_s)
{
	int oldest = 0;

	for (int way = 0; way < MAC_WAYS; way++) {
		if (atomic_load_explicit(&bucket->word[way], memory_order_relaxed) == 0)
			return way;
		if ((int32_t)age_of(bucket, way, now_s) > (int32_t)age_of(bucket, oldest, now_s))
			oldest = way;
	}
	return oldest;
}

void mac_learn(struct mac_table *table, uint64_t mac, uint16_t port, uint32_t now_s)
{
	struct bucket *bucket = bucket_of(table, mac);
	uint64_t word = mac << 16 | port;
	int way;

	if (mac == 0 || mac_is_group(mac))
		return;
	/*
	 * Two workers that learn the same new address at once may both enter it. Both then find the first of the two, so it is
	 * the one that is kept up to date; the second ages out.
	 */
	way = way_of(bucket, mac);
	if (way < 0)
		way = way_to_take(bucket, now_s);
	/* Written only where it changes: the line is shared by all workers, and a store would take it from them. */
	if (atomic_load_explicit(&bucket->seen_s[way], memory_order_relaxed) != now_s)
		atomic_store_explicit(&bucket->seen_s[way], now_s, memory_order_relaxed);
	if (atomic_load_explicit(&bucket->word[way], memory_order_relaxed) != word)
		atomic_store_explicit(&bucket->word[way], word, memory_order_relaxed);
}

void mac_forget(struct mac_table *table, uint16_t port)
{
	for (size_t index = 0; index >> table->order == 0; index++)
		for (int way = 0; way < MAC_WAYS; way++) {
			uint64_t word = atomic_load_explicit(&table->buckets[index].word[way], memory_order_relaxed);

			/* Only if it is still the same: a worker may just have learned another. */
			if (word != 0 && (port == MAC_UNKNOWN || (uint16_t)word == port))
				atomic_compare_exchange_strong(&table->buckets[index].word[way], &word, 0);
		}
}

unsigned mac_list(const struct mac_table *table, uint32_t now_s, struct mac_entry *entries, unsigned most)
{
	unsigned count = 0;

	for (size_t index = 0; index >> table->order == 0; index++)
		for (int way = 0; way < MAC_WAYS && count < most; way++) {
			struct bucket *bucket = &table->buckets[index];
			uint64_t word = atomic_load_explicit(&bucket->word[way], memory_order_relaxed);
			uint32_t age_s = age_of(bucket, way, now_s);

			if (word != 0 && !aged(table, age_s))
				entries[count++] = (struct mac_entry){word >> 16, (uint16_t)word, (int32_t)age_s < 0 ? 0 : age_s};
		}
	return count;
}
