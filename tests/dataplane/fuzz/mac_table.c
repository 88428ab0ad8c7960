/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any sequence of learning, looking up, forgetting and ageing: an address is unknown or where it was seen last, and no port has more
 * addresses than it may. The input is a list of operations, six bytes each; there are few addresses, so that they meet.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "mac_table.h"

enum { OPERATION = 6, ORDER = 2, AGE_S = 10, ADDRESSES = 256, ENTRIES = (1 << ORDER) * MAC_WAYS };

static void look_at_all(const struct mac_table *table, const uint16_t *seen_on, const uint32_t *limit, uint32_t now_s)
{
	struct mac_entry entries[ENTRIES + 1];
	unsigned count = mac_list(table, now_s, entries, ENTRIES + 1), of_port[MAC_PORTS] = {0};

	must(count <= ENTRIES);
	for (unsigned i = 0; i < count; i++) {
		must(entries[i].mac % 2 == 0 && entries[i].port < MAC_PORTS && entries[i].age_s <= AGE_S);
		must(seen_on[entries[i].mac >> 8] == entries[i].port);
		of_port[entries[i].port]++;
	}
	for (unsigned port = 0; port < MAC_PORTS; port++)
		must(limit[port] == 0 || of_port[port] <= limit[port]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mac_table *table = mac_table_new(ORDER, AGE_S);
	uint16_t seen_on[ADDRESSES];
	uint32_t limit[MAC_PORTS] = {[1] = 1, [2] = 3}, now_s = 1000;

	memset(seen_on, 0xff, sizeof(seen_on));
	for (uint16_t port = 0; port < MAC_PORTS; port++)
		mac_limit(table, port, limit[port]);
	for (; size >= OPERATION; size -= OPERATION, data += OPERATION) {
		uint64_t mac = (uint64_t)data[1] << 8;
		uint16_t port = data[2] % MAC_PORTS, found;

		switch (data[0] % 4) {
		case 0:
			mac_learn(table, mac, port, now_s);
			found = mac_lookup(table, mac, now_s);
			must(limit[port] != 0 || mac == 0 || found == port);
			if (found == port)
				seen_on[data[1]] = port;
			break;
		case 1:
			found = mac_lookup(table, mac, now_s);
			must(found == MAC_UNKNOWN || found == seen_on[data[1]]);
			break;
		case 2:
			mac_forget(table, port);
			must(mac_lookup(table, mac, now_s) != port);
			break;
		case 3:
			now_s += data[3] % (2 * AGE_S);
			break;
		}
		look_at_all(table, seen_on, limit, now_s);
	}
	mac_table_free(table);
	return 0;
}
