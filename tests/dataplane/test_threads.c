/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all workers do at once with the table of addresses, under ThreadSanitizer. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "mac_table.h"

enum { THREADS = 4, ROUNDS = 60000, ORDER = 4, AGE_S = 3, LIMIT = 10, ADDRESSES = 400, ENTRIES = (1 << ORDER) * MAC_WAYS };

#define CHECK(holds)                                                                               \
	do {                                                                                       \
		if (!(holds)) {                                                                    \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #holds); \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static struct mac_table *table;

/* Each has a port of its own for most addresses; the first one's may have few, and all say some of each other's. */
static void *work(void *argument)
{
	uint16_t own = (uint16_t)(uintptr_t)argument;
	uint32_t seed = own + 1;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint64_t mac;
		uint16_t found;

		seed = seed * 1664525 + 1013904223;
		mac = (uint64_t)(seed >> 8) % ADDRESSES << 8;
		found = mac_lookup(table, mac, 100 + i / 10000);
		CHECK(found == MAC_UNKNOWN || found < THREADS);
		mac_learn(table, mac, own, 100 + i / 10000);
		if (i % 20000 == 19999)
			mac_forget(table, own);
	}
	return NULL;
}

int main(void)
{
	struct mac_entry entries[ENTRIES];
	pthread_t thread[THREADS];
	unsigned count, of_first = 0;

	table = mac_table_new(ORDER, AGE_S);
	mac_limit(table, 0, LIMIT);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, work, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	/* All are counted: each port can say what it may again. */
	mac_forget(table, MAC_UNKNOWN);
	CHECK(mac_list(table, 106, entries, ENTRIES) == 0);
	for (uint64_t i = 1; i <= ENTRIES; i++)
		mac_learn(table, i << 8, 0, 106);
	count = mac_list(table, 106, entries, ENTRIES);
	for (unsigned i = 0; i < count; i++)
		of_first += entries[i].port == 0;
	CHECK(of_first == LIMIT);
	mac_table_free(table);
	puts("holds");
	return 0;
}
