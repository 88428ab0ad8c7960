/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which port an Ethernet address was last seen on. All workers read and write it at the same time, without locks.
 *
 * An entry is one word, address and port together: it is read and written at once, so no reader can see the port of another
 * address. Eight entries make a bucket of one cache line. Not VLAN-aware: a tag is neither looked at nor changed, and all VLANs
 * share one table.
 */
#ifndef VS_MAC_TABLE_H
#define VS_MAC_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum { MAC_WAYS = 8, MAC_PORTS = 32, MAC_UNKNOWN = 0xffff };

struct mac_table;

/* 2^order buckets. age_s: seconds after which an address that was not seen is unknown. NULL: no memory. */
struct mac_table *mac_table_new(unsigned order, uint32_t age_s);
void mac_table_free(struct mac_table *table);

/* An address is the 48 bits of its six bytes, the first one lowest, as a little-endian load gives them. */
static inline bool mac_is_group(uint64_t mac)
{
	return mac & 1;
}

/* The port of `mac`, or MAC_UNKNOWN. now_s: seconds of any clock, the same in all calls. */
uint16_t mac_lookup(const struct mac_table *table, uint64_t mac, uint32_t now_s);

/* `mac` was seen on `port`. Group addresses, and all zeros, are nobody's and are not learned. */
void mac_learn(struct mac_table *table, uint64_t mac, uint16_t port, uint32_t now_s);

/* `port` may have this many addresses (0: any number). More are not learned, until some of it were not seen for long. */
void mac_limit(struct mac_table *table, uint16_t port, uint32_t most);

/* Forgets what is on `port`; MAC_UNKNOWN: everything. */
void mac_forget(struct mac_table *table, uint16_t port);

struct mac_entry {
	uint64_t mac;
	uint16_t port;
	uint32_t age_s;
};

/* Copies at most `most` entries that have not aged out, and returns how many. */
unsigned mac_list(const struct mac_table *table, uint32_t now_s, struct mac_entry *entries, unsigned most);

#endif
