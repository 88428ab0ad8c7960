/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mac_table.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct bucket {
	_Atomic uint64_t word[MAC_WAYS]; /* address << 16 | port; 0: free */
	_Atomic uint32_t seen_s[MAC_WAYS];
} __attribute__((aligned(64)));

struct mac_table {
	uint32_t age_s;
	unsigned order;
	/* Of the hash. Nobody outside knows them: or a guest could fill one bucket, and push its neighbours' addresses out. */
	uint64_t key, odd[2];
	struct bucket *buckets;
	struct owner {
		_Atomic uint32_t addresses, most; /* most: 0 is no limit */
		_Atomic uint32_t swept_s;
	} owner[MAC_PORTS];
};

struct mac_table *mac_table_new(unsigned order, uint32_t age_s)
{
	struct mac_table *table = malloc(sizeof(*table));
	size_t bytes = sizeof(struct bucket) << order;

	if (table == NULL)
		return NULL;
	memset(table, 0, sizeof(*table));
	table->age_s = age_s;
	table->order = order;
	if (getrandom(&table->key, sizeof(table->key), 0) != sizeof(table->key) ||
		getrandom(table->odd, sizeof(table->odd), 0) != sizeof(table->odd)) {
		free(table);
		return NULL;
	}
	table->odd[0] |= 1;
	table->odd[1] |= 1;
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
	/* Multiplicative hashing (Knuth, TAOCP 3, 6.4) by secret factors; the fold in between makes each bit count for both. */
	uint64_t product = (mac ^ table->key) * table->odd[0];

	return &table->buckets[((product ^ product >> 32) * table->odd[1]) >> (64 - table->order)];
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

/* Only if it is still the same: a worker may just have learned another. */
static void take_out(struct mac_table *table, struct bucket *bucket, int way, uint64_t word)
{
	if (atomic_compare_exchange_strong(&bucket->word[way], &word, 0))
		table->owner[(uint16_t)word].addresses--;
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

/* Takes a port's addresses out that were not seen for long, once a second at most. */
static void sweep(struct mac_table *table, uint16_t port, uint32_t now_s)
{
	if (atomic_exchange(&table->owner[port].swept_s, now_s) == now_s)
		return;
	for (size_t index = 0; index >> table->order == 0; index++)
		for (int way = 0; way < MAC_WAYS; way++) {
			struct bucket *bucket = &table->buckets[index];
			uint64_t word = atomic_load_explicit(&bucket->word[way], memory_order_relaxed);

			if (word != 0 && (uint16_t)word == port && aged(table, age_of(bucket, way, now_s)))
				take_out(table, bucket, way, word);
		}
}

/* Whether a port has as many addresses as it may have. */
static bool full(struct mac_table *table, uint16_t port, uint32_t now_s)
{
	struct owner *owner = &table->owner[port];
	uint32_t most = atomic_load_explicit(&owner->most, memory_order_relaxed);

	if (most == 0 || atomic_load_explicit(&owner->addresses, memory_order_relaxed) < most)
		return false;
	sweep(table, port, now_s);
	return atomic_load_explicit(&owner->addresses, memory_order_relaxed) >= most;
}

void mac_limit(struct mac_table *table, uint16_t port, uint32_t most)
{
	table->owner[port].most = most;
}

void mac_learn(struct mac_table *table, uint64_t mac, uint16_t port, uint32_t now_s)
{
	struct bucket *bucket = bucket_of(table, mac);
	uint64_t word = mac << 16 | port, before;
	int way;

	if (mac == 0 || mac_is_group(mac))
		return;
	/*
	 * Two workers that learn the same new address at once may both enter it. Both then find the first of the two, so it is
	 * the one that is kept up to date; the second ages out.
	 */
	way = way_of(bucket, mac);
	/* An address that was another port's counts like a new one. */
	if ((way < 0 || (uint16_t)atomic_load_explicit(&bucket->word[way], memory_order_relaxed) != port) && full(table, port, now_s))
		return;
	if (way < 0)
		way = way_to_take(bucket, now_s);
	/* Written only where it changes: the line is shared by all workers, and a store would take it from them. */
	if (atomic_load_explicit(&bucket->seen_s[way], memory_order_relaxed) != now_s)
		atomic_store_explicit(&bucket->seen_s[way], now_s, memory_order_relaxed);
	if (atomic_load_explicit(&bucket->word[way], memory_order_relaxed) == word)
		return;
	before = atomic_exchange_explicit(&bucket->word[way], word, memory_order_relaxed);
	if (before != 0)
		table->owner[(uint16_t)before].addresses--;
	table->owner[port].addresses++;
}

void mac_forget(struct mac_table *table, uint16_t port)
{
	for (size_t index = 0; index >> table->order == 0; index++)
		for (int way = 0; way < MAC_WAYS; way++) {
			uint64_t word = atomic_load_explicit(&table->buckets[index].word[way], memory_order_relaxed);

			if (word != 0 && (port == MAC_UNKNOWN || (uint16_t)word == port))
				take_out(table, &table->buckets[index], way, word);
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
