/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts that know nothing of DPDK, under AddressSanitizer and UBSan: `make check`. Prints a line a test. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "counters.h"
#include "interrupt.h"
#include "mac_table.h"
#include "packed.h"
#include "vring.h"

#define CHECK(holds)                                                                      \
	do {                                                                              \
		if (!(holds)) {                                                           \
			printf("%s:%d: does not hold: %s\n", __FILE__, __LINE__, #holds); \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

enum { SIZE = 8, AGE_S = 300 };

/* ---- addresses ---- */

static const uint64_t A = 0x020000000052, B = 0x030000000052, GROUP = 0x01;

static void learns_and_moves(void)
{
	struct mac_table *table = mac_table_new(4, AGE_S);

	CHECK(mac_lookup(table, A, 100) == MAC_UNKNOWN);
	mac_learn(table, A, 3, 100);
	mac_learn(table, B, 0, 100);
	CHECK(mac_lookup(table, A, 100) == 3);
	CHECK(mac_lookup(table, B, 100) == 0);
	mac_learn(table, A, 7, 101);
	CHECK(mac_lookup(table, A, 101) == 7);
	mac_table_free(table);
}

static void ages(void)
{
	struct mac_table *table = mac_table_new(4, AGE_S);

	mac_learn(table, A, 3, 100);
	CHECK(mac_lookup(table, A, 100 + AGE_S) == 3);
	CHECK(mac_lookup(table, A, 101 + AGE_S) == MAC_UNKNOWN);
	/* A worker whose clock is behind. */
	CHECK(mac_lookup(table, A, 99) == 3);
	mac_learn(table, A, 3, 101 + AGE_S);
	CHECK(mac_lookup(table, A, 101 + AGE_S) == 3);
	mac_table_free(table);
}

static void learns_nobody(void)
{
	struct mac_table *table = mac_table_new(4, AGE_S);

	mac_learn(table, GROUP, 3, 100);
	mac_learn(table, 0, 3, 100);
	CHECK(mac_lookup(table, GROUP, 100) == MAC_UNKNOWN);
	CHECK(mac_lookup(table, 0, 100) == MAC_UNKNOWN);
	mac_table_free(table);
}

static void forgets_a_port(void)
{
	struct mac_table *table = mac_table_new(4, AGE_S);
	struct mac_entry entries[4];

	mac_learn(table, A, 3, 100);
	mac_learn(table, B, 4, 90);
	mac_forget(table, 3);
	CHECK(mac_lookup(table, A, 100) == MAC_UNKNOWN);
	CHECK(mac_list(table, 100, entries, 4) == 1);
	CHECK(entries[0].mac == B && entries[0].port == 4 && entries[0].age_s == 10);
	mac_forget(table, MAC_UNKNOWN);
	CHECK(mac_list(table, 100, entries, 4) == 0);
	mac_table_free(table);
}

/* More than fit: the newest are known, and no address has another's port. Port: lowest bits of the address. */
/* A port that says too many addresses keeps the first of them, and takes none of its neighbours'. */
static void limits_a_port(void)
{
	struct mac_table *table = mac_table_new(6, AGE_S);
	struct mac_entry entries[600];
	unsigned own = 0;

	mac_limit(table, 3, 20);
	for (uint64_t i = 1; i <= 100; i++)
		mac_learn(table, i << 8, 7, 100);
	for (uint64_t i = 1; i <= 5000; i++)
		mac_learn(table, (i + 1000) << 8, 3, 100);
	for (unsigned i = 0, count = mac_list(table, 100, entries, 600); i < count; i++)
		own += entries[i].port == 3;
	CHECK(own == 20);
	/* One that it has moves on; a new one is learned when others were not seen for long. */
	mac_learn(table, 1001 << 8, 5, 101);
	mac_learn(table, 9000 << 8, 3, 101);
	CHECK(mac_lookup(table, 9000 << 8, 101) == 3);
	mac_learn(table, 9001 << 8, 3, 101);
	CHECK(mac_lookup(table, 9001 << 8, 101) == MAC_UNKNOWN);
	mac_learn(table, 9001 << 8, 3, 102 + AGE_S);
	CHECK(mac_lookup(table, 9001 << 8, 102 + AGE_S) == 3);
	mac_forget(table, 3);
	mac_learn(table, 9002 << 8, 3, 102 + AGE_S);
	CHECK(mac_lookup(table, 9002 << 8, 102 + AGE_S) == 3);
	mac_table_free(table);
}

/* Who does not know the key can't aim at a bucket: addresses that differ in a few bits are spread. */
static void spreads(void)
{
	struct mac_table *table = mac_table_new(6, AGE_S);
	struct mac_entry entries[600];

	for (uint64_t i = 0; i < 256; i++)
		mac_learn(table, (i << 40) | 0x52, i % 31, 100);
	/* In one bucket there would be 8. By chance some of 64 buckets get more than their 8: 256 of 512 leave few behind. */
	CHECK(mac_list(table, 100, entries, 600) > 200);
	mac_table_free(table);
}

static void full_table_stays_right(void)
{
	struct mac_table *table = mac_table_new(4, AGE_S);
	unsigned known = 0;

	for (uint64_t i = 1; i <= 1000; i++)
		mac_learn(table, i << 8, i % 31, 100 + i / 100);
	for (uint64_t i = 1; i <= 1000; i++) {
		uint16_t port = mac_lookup(table, i << 8, 110);

		CHECK(port == MAC_UNKNOWN || port == i % 31);
		known += port != MAC_UNKNOWN;
	}
	CHECK(known == 16 * MAC_WAYS);
	CHECK(mac_lookup(table, UINT64_C(1000) << 8, 110) == 1000 % 31);
	mac_table_free(table);
}

/* ---- rings ---- */

/* A guest: its memory, with a ring of SIZE in it, as it sees it from address BASE on. */
enum { MEMORY = 1 << 17, BASE = 0x10000, TABLE_AT = 0x8000, DATA_AT = 0xc000 };

static struct guest {
	uint8_t *bytes;
	struct vring_desc *desc;
	struct guest_memory memory;
	struct vring_side ring;
} guest;

static void boot(void)
{
	free(guest.bytes);
	memset(&guest, 0, sizeof(guest));
	/* Allocated to its very size: AddressSanitizer sees any step beside it. */
	guest.bytes = calloc(1, MEMORY);
	guest.desc = (struct vring_desc *)guest.bytes;
	guest.memory.count = 1;
	guest.memory.region[0] = (struct guest_region){BASE, MEMORY, guest.bytes};
	guest.ring.desc = guest.desc;
	guest.ring.avail = (struct vring_avail *)(guest.bytes + 0x1000);
	guest.ring.used = (struct vring_used *)(guest.bytes + 0x2000);
	guest.ring.size = SIZE;
	guest.ring.call_fd = -1;
	guest.ring.indirect = true;
}

static void describe(struct vring_desc *desc, uint64_t at, uint32_t length, uint16_t flags, uint16_t next)
{
	*desc = (struct vring_desc){at, length, flags, next};
}

static void offer(uint16_t head)
{
	guest.ring.avail->ring[guest.ring.avail->idx++ % SIZE] = head;
}

static bool chain_at(uint16_t head, bool writable, struct chain *chain)
{
	return vring_chain(&guest.ring, &guest.memory, head, writable, chain);
}

/* What a chain costs to read is bounded, however long it is, and whatever it holds. */
static void visits_no_more_than_a_few(void)
{
	struct chain chain;

	boot();
	for (int i = 0; i < SIZE; i++)
		describe(&guest.desc[i], BASE + DATA_AT, 0, VRING_DESC_F_NEXT, (i + 1) % SIZE);
	CHECK(!chain_at(0, false, &chain));
	CHECK(chain.visited <= MAX_PARTS);
	describe(&guest.desc[0], BASE + TABLE_AT, 16 * 700, VRING_DESC_F_INDIRECT, 0);
	for (int i = 0; i < 700; i++)
		describe((struct vring_desc *)(guest.bytes + TABLE_AT) + i, BASE + DATA_AT, i == 699, i < 699 ? VRING_DESC_F_NEXT : 0,
			i + 1);
	CHECK(!chain_at(0, false, &chain));
	CHECK(chain.visited == MAX_PARTS);
	describe(&guest.desc[0], BASE + TABLE_AT, 16 * MAX_PARTS, VRING_DESC_F_INDIRECT, 0);
	describe((struct vring_desc *)(guest.bytes + TABLE_AT) + MAX_PARTS - 1, BASE + DATA_AT, 60, 0, 0);
	CHECK(chain_at(0, false, &chain));
	CHECK(chain.length == 60);
}

/* A ring lies in one region as a whole, the indices behind its last two parts included. */
static void fits_or_not(void)
{
	size_t used = sizeof(struct vring_used) + SIZE * sizeof(struct vring_used_elem);
	size_t available = sizeof(struct vring_avail) + SIZE * sizeof(uint16_t);

	boot();
	CHECK(vring_fits(&guest.ring, &guest.memory));
	guest.ring.used = (struct vring_used *)(guest.bytes + MEMORY - used);
	CHECK(vring_fits(&guest.ring, &guest.memory));
	guest.ring.event_idx = true;
	CHECK(!vring_fits(&guest.ring, &guest.memory));
	guest.ring.used = (struct vring_used *)(guest.bytes + MEMORY - used - 2);
	CHECK(vring_fits(&guest.ring, &guest.memory));
	guest.ring.avail = (struct vring_avail *)(guest.bytes + MEMORY - available);
	CHECK(!vring_fits(&guest.ring, &guest.memory));
	boot();
	guest.ring.desc = (struct vring_desc *)(guest.bytes + MEMORY - SIZE * sizeof(struct vring_desc) + 16);
	CHECK(!vring_fits(&guest.ring, &guest.memory));
	/* Over the border of two regions, though they are neighbours here. */
	boot();
	guest.memory.count = 2;
	guest.memory.region[0].size = 0x2010;
	guest.memory.region[1] = (struct guest_region){BASE + 0x2010, MEMORY - 0x2010, guest.bytes + 0x2010};
	CHECK(!vring_fits(&guest.ring, &guest.memory));
	guest.memory.count = 0;
	CHECK(!vring_fits(&guest.ring, &guest.memory));
}

static void follows_a_chain(void)
{
	struct chain chain;

	boot();
	describe(&guest.desc[2], BASE + DATA_AT, 12, VRING_DESC_F_NEXT, 5);
	describe(&guest.desc[5], BASE + DATA_AT + 64, 60, 0, 0);
	CHECK(chain_at(2, false, &chain));
	CHECK(chain.count == 2 && chain.length == 72);
	CHECK(chain.part[0].at == guest.bytes + DATA_AT && chain.part[0].length == 12);
	CHECK(chain.part[1].at == guest.bytes + DATA_AT + 64 && chain.part[1].length == 60);
}

static void follows_an_indirect_table(void)
{
	struct vring_desc *table;
	struct chain chain;

	boot();
	table = (struct vring_desc *)(guest.bytes + TABLE_AT);
	describe(&table[0], BASE + DATA_AT, 12, VRING_DESC_F_NEXT, 1);
	describe(&table[1], BASE + DATA_AT + 12, 100, 0, 0);
	describe(&guest.desc[0], BASE + TABLE_AT, 2 * sizeof(*table), VRING_DESC_F_INDIRECT, 0);
	CHECK(chain_at(0, false, &chain));
	CHECK(chain.count == 2 && chain.length == 112);
	guest.ring.indirect = false; /* not negotiated */
	CHECK(!chain_at(0, false, &chain));
}

/* What is contiguous for the guest may lie apart for us. */
static void splits_at_regions(void)
{
	uint8_t other[4096];
	struct chain chain;

	boot();
	guest.memory.count = 2;
	guest.memory.region[1] = (struct guest_region){BASE + MEMORY, sizeof(other), other};
	describe(&guest.desc[0], BASE + MEMORY - 10, 30, 0, 0);
	CHECK(chain_at(0, false, &chain));
	CHECK(chain.count == 2 && chain.length == 30);
	CHECK(chain.part[0].length == 10 && chain.part[1].at == other && chain.part[1].length == 20);
}

static void refuses(uint64_t at, uint32_t length, uint16_t flags, uint16_t next)
{
	struct chain chain;

	boot();
	describe(&guest.desc[0], at, length, flags, next);
	CHECK(!chain_at(0, false, &chain));
}

static void refuses_hostile_descriptors(void)
{
	struct vring_desc *table;
	struct chain chain;

	refuses(0, 60, 0, 0);                      /* below its memory */
	refuses(BASE + MEMORY, 60, 0, 0);          /* above */
	refuses(BASE + MEMORY - 10, 11, 0, 0);     /* across the end */
	refuses(UINT64_MAX - 5, 60, 0, 0);         /* wraps */
	refuses(BASE + DATA_AT, UINT32_MAX, 0, 0); /* absurdly long */
	refuses(BASE + DATA_AT, MAX_FRAME + 1, 0, 0);
	refuses(BASE + DATA_AT, 60, VRING_DESC_F_WRITE, 0);  /* wrong direction */
	refuses(BASE + DATA_AT, 1, VRING_DESC_F_NEXT, 0);    /* a loop */
	refuses(BASE + DATA_AT, 0, VRING_DESC_F_NEXT, 0);    /* a loop of nothing */
	refuses(BASE + DATA_AT, 1, VRING_DESC_F_NEXT, SIZE); /* out of the ring */
	refuses(BASE + TABLE_AT, 0, VRING_DESC_F_INDIRECT, 0);
	refuses(BASE + TABLE_AT, 17, VRING_DESC_F_INDIRECT, 0);
	refuses(BASE + MEMORY - 16, 32, VRING_DESC_F_INDIRECT, 0);
	refuses(BASE + TABLE_AT, 0xfffffff0, VRING_DESC_F_INDIRECT, 0);
	refuses(BASE + TABLE_AT, 16, VRING_DESC_F_INDIRECT | VRING_DESC_F_NEXT, 1);

	boot(); /* a table in a table */
	table = (struct vring_desc *)(guest.bytes + TABLE_AT);
	describe(&table[0], BASE + TABLE_AT, 16, VRING_DESC_F_INDIRECT, 0);
	describe(&guest.desc[0], BASE + TABLE_AT, 16, VRING_DESC_F_INDIRECT, 0);
	CHECK(!chain_at(0, false, &chain));

	boot(); /* more parts than a frame can have */
	table = (struct vring_desc *)(guest.bytes + TABLE_AT);
	for (uint16_t i = 0; i <= MAX_PARTS; i++)
		describe(&table[i], BASE + DATA_AT, 1, i < MAX_PARTS ? VRING_DESC_F_NEXT : 0, i + 1);
	describe(&guest.desc[0], BASE + TABLE_AT, (MAX_PARTS + 1) * 16, VRING_DESC_F_INDIRECT, 0);
	CHECK(!chain_at(0, false, &chain));
}

/* Whatever is in the tables: no step beside the guest's memory, and an end. AddressSanitizer watches. */
static void survives_noise(void)
{
	struct chain chain;
	unsigned accepted = 0;

	boot();
	srandom(1);
	for (int round = 0; round < 200000; round++) {
		for (int i = 0; i < SIZE; i++) {
			uint64_t at = random() % 4 == 0 ? (uint64_t)random() << 33 : BASE + (uint64_t)random() % (MEMORY + 64);

			describe(&guest.desc[i], at, random() % 3 ? random() % 200 : (uint32_t)random() << 1, random() % 8,
				random() % (SIZE + 2));
		}
		if (chain_at(random() % SIZE, round & 1, &chain)) {
			uint32_t length = 0;

			accepted++;
			CHECK(chain.count <= MAX_PARTS && chain.length <= MAX_FRAME);
			for (uint32_t i = 0; i < chain.count; i++) {
				length += chain.part[i].length;
				CHECK(chain.part[i].at >= guest.bytes && chain.part[i].at + chain.part[i].length <= guest.bytes + MEMORY);
			}
			CHECK(length == chain.length);
		}
	}
	CHECK(accepted > 1000);
}

static void breaks_a_ring_that_lies(void)
{
	boot();
	guest.ring.avail->idx = SIZE;
	CHECK(vring_waiting(&guest.ring) == SIZE && !guest.ring.broken);
	guest.ring.avail->idx = SIZE + 1;
	CHECK(vring_waiting(&guest.ring) == 0 && guest.ring.broken);
	guest.ring.avail->idx = 1;
	CHECK(vring_waiting(&guest.ring) == 0);

	boot();
	offer(SIZE);
	CHECK(vring_waiting(&guest.ring) == 1);
	CHECK(vring_head(&guest.ring, 0) == -1 && guest.ring.broken);
}

static void counts_wrap(void)
{
	boot();
	guest.ring.taken = guest.ring.given = guest.ring.published = 65534;
	guest.ring.avail->idx = 65534;
	for (uint16_t head = 0; head < 4; head++)
		offer(head);
	CHECK(vring_waiting(&guest.ring) == 4);
	for (uint16_t ahead = 0; ahead < 4; ahead++)
		CHECK(vring_head(&guest.ring, ahead) == ahead);
	for (uint16_t head = 0; head < 4; head++)
		vring_give(&guest.ring, 3 - head, 10 + head);
	CHECK(guest.ring.used->idx == 0);
	vring_publish(&guest.ring);
	CHECK(guest.ring.used->idx == 2);
	CHECK(guest.ring.used->ring[65534 % SIZE].id == 3 && guest.ring.used->ring[65535 % SIZE].len == 11);
	CHECK(guest.ring.used->ring[0].id == 1 && guest.ring.used->ring[1].id == 0);
}

static void looks_again_when_it_knows_of_too_few(void)
{
	boot();
	guest.ring.taken = guest.ring.known = 65534;
	guest.ring.avail->idx = 65534;
	CHECK(vring_waiting_for(&guest.ring, 1) == 0);
	for (uint16_t head = 0; head < 3; head++)
		offer(head);
	/* A guest that adds more is not asked while those suffice. */
	CHECK(vring_waiting_for(&guest.ring, 3) == 3);
	offer(3);
	guest.ring.taken++;
	CHECK(vring_waiting_for(&guest.ring, 2) == 2);
	CHECK(vring_waiting_for(&guest.ring, 3) == 3);
	/* One that lies is found out when it is asked, and has no more chains then. */
	guest.ring.avail->idx += SIZE;
	CHECK(vring_waiting_for(&guest.ring, 3) == 3);
	CHECK(vring_waiting_for(&guest.ring, 4) == 0 && guest.ring.broken);
	CHECK(vring_waiting_for(&guest.ring, 1) == 0);
}

static bool interrupted(void)
{
	eventfd_t value;

	return eventfd_read(guest.ring.call_fd, &value) == 0;
}

static void interrupts_when_asked(void)
{
	boot();
	guest.ring.call_fd = eventfd(0, EFD_NONBLOCK);
	CHECK(!vring_publish(&guest.ring) && !interrupted());
	vring_give(&guest.ring, 0, 0);
	CHECK(vring_publish(&guest.ring) && interrupted());
	guest.ring.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	vring_give(&guest.ring, 0, 0);
	CHECK(!vring_publish(&guest.ring) && !interrupted());

	/* With event indices: when used->idx comes past what the guest wrote. */
	guest.ring.event_idx = true;
	guest.ring.avail->ring[SIZE] = 3;
	vring_give(&guest.ring, 0, 0);
	CHECK(!vring_publish(&guest.ring) && !interrupted());
	vring_give(&guest.ring, 0, 0);
	CHECK(vring_publish(&guest.ring) && interrupted());
	vring_give(&guest.ring, 0, 0);
	CHECK(!vring_publish(&guest.ring));
	close(guest.ring.call_fd);
}

/* Its counter is full, and whoever writes to it waits: without the watch this test would never end. */
static void does_not_wait_for_a_guest(void)
{
	const eventfd_t full = UINT64_MAX - 1;
	uint16_t taken;

	boot();
	CHECK(interrupt_watch() == 0);
	guest.ring.call_fd = eventfd(0, EFD_NONBLOCK);
	CHECK(eventfd_write(guest.ring.call_fd, full) == 0);
	vring_give(&guest.ring, 0, 0);
	CHECK(!vring_publish(&guest.ring) && !guest.ring.waited && !guest.ring.broken);
	fcntl(guest.ring.call_fd, F_SETFL, 0);
	vring_give(&guest.ring, 0, 0);
	CHECK(!vring_publish(&guest.ring) && guest.ring.waited && guest.ring.broken);
	taken = guest.ring.taken;
	vring_give(&guest.ring, 0, 0);
	CHECK(!vring_publish(&guest.ring) && guest.ring.taken == taken);
}

static void arms(void)
{
	boot();
	CHECK(!vring_arm(&guest.ring, false));
	CHECK(guest.ring.used->flags == VRING_USED_F_NO_NOTIFY);
	CHECK(!vring_arm(&guest.ring, true));
	CHECK(guest.ring.used->flags == 0);
	offer(0);
	CHECK(vring_arm(&guest.ring, true));
	guest.ring.event_idx = true;
	guest.ring.taken = 1;
	CHECK(!vring_arm(&guest.ring, true));
	CHECK(*(uint16_t *)&guest.ring.used->ring[SIZE] == 1);
}

/* ---- packed rings ---- */

enum { PACKED_SIZE = 5 }; /* no power of two */

static void boot_packed(bool writes)
{
	boot();
	guest.ring = (struct vring_side){
		.packed = (void *)guest.bytes,
		.wish = (void *)(guest.bytes + 0x1000),
		.ask = (void *)(guest.bytes + 0x2000),
		.is_packed = true,
		.writes = writes,
		.size = PACKED_SIZE,
		.taken = PACKED_WRAP,
		.given = PACKED_WRAP,
		.published = PACKED_WRAP,
		.indirect = true,
		.call_fd = -1,
	};
}

/* What a guest writes that comes by a place. */
static void offer_packed(uint16_t place, uint64_t at, uint32_t length, uint16_t id, uint16_t flags)
{
	guest.ring.packed[packed_slot(place)] =
		(struct vring_packed_desc){at, length, id, flags | (place & PACKED_WRAP ? PACKED_AVAIL : PACKED_USED)};
}

static bool look_packed(uint16_t place, struct seen *seen)
{
	return packed_look(&guest.ring, place, PACKED_SIZE, seen);
}

static void give_packed(uint16_t id, uint16_t slots, uint32_t length)
{
	packed_give(&guest.ring, id, slots, length);
}

static void packed_places_go_around(void)
{
	uint16_t place = PACKED_WRAP;

	for (int i = 0; i < 20; i++) {
		CHECK(packed_slot(place) == i % PACKED_SIZE && (place & PACKED_WRAP) == (i / PACKED_SIZE % 2 ? 0 : PACKED_WRAP));
		place = packed_on(PACKED_SIZE, place, 1);
	}
	CHECK(packed_on(PACKED_SIZE, PACKED_WRAP | 4, 3) == 2 && packed_on(PACKED_SIZE, 2, PACKED_SIZE) == (PACKED_WRAP | 2));
	CHECK(packed_on(PACKED_MOST, PACKED_MOST - 1, 1) == PACKED_WRAP && packed_on(PACKED_MOST, PACKED_WRAP | 1, 1) == (PACKED_WRAP | 2));
}

/* The last descriptor of a chain has its ID; the next chain lies behind it, and across the ring's end. */
static void packed_chains_are_followed(void)
{
	uint16_t at = PACKED_WRAP | 3;
	struct chain chain;
	struct seen seen;

	boot_packed(false);
	CHECK(!look_packed(at, &seen) && !guest.ring.broken);
	offer_packed(at, BASE + DATA_AT, 12, 1, VRING_DESC_F_NEXT);
	offer_packed(packed_on(PACKED_SIZE, at, 1), BASE + DATA_AT + 100, 60, 1, VRING_DESC_F_NEXT);
	offer_packed(packed_on(PACKED_SIZE, at, 2), BASE + DATA_AT + 300, 5, 77, 0);
	CHECK(look_packed(at, &seen) && seen.slots == 3 && seen.id == 77 && seen.part.at == NULL);
	CHECK(packed_chain(&guest.ring, &guest.memory, &seen, &chain) && chain.count == 3 && chain.length == 77 && chain.visited == 3);
	CHECK(chain.part[2].at == guest.bytes + DATA_AT + 300);
	/* A single one is known at once, and only where it lies in the region that was given. */
	offer_packed(at, BASE + DATA_AT, 72, 9, 0);
	CHECK(packed_singles(&guest.ring, &guest.memory.region[0], at, 2, &seen) == 1 && seen.slots == 1 && seen.id == 9 &&
		seen.place == at);
	CHECK(seen.part.at == guest.bytes + DATA_AT && seen.part.length == 72);
	CHECK(packed_singles(&guest.ring, &(struct guest_region){0}, at, 1, &seen) == 0);
	CHECK(look_packed(at, &seen) && seen.slots == 1 && seen.part.at == NULL);
	packed_single(&guest.ring, &guest.memory, &seen);
	CHECK(seen.part.at == guest.bytes + DATA_AT);
	/* Of the other wrap, given back already, or never offered. */
	CHECK(!look_packed(at ^ PACKED_WRAP, &seen));
	guest.ring.packed[3].flags |= PACKED_USED;
	CHECK(!look_packed(at, &seen) && !look_packed(at ^ PACKED_WRAP, &seen));
}

static void packed_tables_are_followed(void)
{
	struct vring_packed_desc *table;
	struct chain chain;
	struct seen seen;

	boot_packed(true);
	table = (struct vring_packed_desc *)(guest.bytes + TABLE_AT);
	for (int i = 0; i < MAX_PARTS + 1; i++)
		table[i] = (struct vring_packed_desc){BASE + DATA_AT, 10, 0, VRING_DESC_F_WRITE};
	offer_packed(PACKED_WRAP, BASE + TABLE_AT, 16 * 3, 4, VRING_DESC_F_INDIRECT);
	CHECK(look_packed(PACKED_WRAP, &seen) && seen.slots == 1 && seen.part.at == NULL);
	CHECK(packed_chain(&guest.ring, &guest.memory, &seen, &chain) && chain.count == 3 && chain.length == 30);
	offer_packed(PACKED_WRAP, BASE + TABLE_AT, 16 * MAX_PARTS, 4, VRING_DESC_F_INDIRECT);
	CHECK(packed_chain(&guest.ring, &guest.memory, &seen, &chain) && chain.count == MAX_PARTS);
	offer_packed(PACKED_WRAP, BASE + TABLE_AT, 16 * (MAX_PARTS + 1), 4, VRING_DESC_F_INDIRECT);
	CHECK(!packed_chain(&guest.ring, &guest.memory, &seen, &chain));
	offer_packed(PACKED_WRAP, BASE + TABLE_AT, 16 * 3, 4, VRING_DESC_F_INDIRECT);
	table[1].flags = 0;
	CHECK(!packed_chain(&guest.ring, &guest.memory, &seen, &chain));
	table[1].flags = VRING_DESC_F_WRITE | VRING_DESC_F_INDIRECT;
	CHECK(!packed_chain(&guest.ring, &guest.memory, &seen, &chain));
	table[1].flags = VRING_DESC_F_WRITE;
	guest.ring.indirect = false;
	CHECK(!packed_chain(&guest.ring, &guest.memory, &seen, &chain));
}

static void packed_chains_without_an_end_break_the_ring(void)
{
	struct seen seen;

	boot_packed(false);
	for (uint16_t slot = 0; slot < PACKED_SIZE; slot++)
		offer_packed(PACKED_WRAP | slot, BASE + DATA_AT, 1, 0, VRING_DESC_F_NEXT);
	CHECK(!look_packed(PACKED_WRAP, &seen) && guest.ring.broken);
	CHECK(vring_waiting(&guest.ring) == 0);
	/* Nor is an end behind what is left of the ring. */
	guest.ring.broken = false;
	offer_packed(PACKED_WRAP | 3, BASE + DATA_AT, 1, 0, 0);
	CHECK(packed_look(&guest.ring, PACKED_WRAP, 4, &seen) && seen.slots == 4 && !guest.ring.broken);
	CHECK(!packed_look(&guest.ring, PACKED_WRAP, 3, &seen) && guest.ring.broken);
}

/* Of what is given back nothing is seen before it is published: the guest stops at the first. */
static void packed_shows_the_first_last(void)
{
	struct vring_packed_desc *ring;

	boot_packed(true);
	ring = guest.ring.packed;
	for (uint16_t i = 0; i < PACKED_SIZE; i++)
		offer_packed(PACKED_WRAP | i, BASE + DATA_AT, 2048, i, VRING_DESC_F_WRITE);
	give_packed(3, 1, 100);
	give_packed(4, 2, 200);
	CHECK(ring[0].id == 3 && ring[0].len == 100 && ring[0].flags == (PACKED_AVAIL | VRING_DESC_F_WRITE));
	CHECK(ring[1].id == 4 && ring[1].flags == (PACKED_AVAIL | PACKED_USED | VRING_DESC_F_WRITE));
	vring_publish(&guest.ring);
	CHECK(ring[0].flags == (PACKED_AVAIL | PACKED_USED | VRING_DESC_F_WRITE) && guest.ring.published == (PACKED_WRAP | 3));
	give_packed(0, 2, 0);
	vring_publish(&guest.ring);
	CHECK(guest.ring.published == 0 && ring[3].id == 0);
	/* The second time around. */
	give_packed(1, 1, 0);
	vring_publish(&guest.ring);
	CHECK(ring[0].flags == VRING_DESC_F_WRITE && !vring_publish(&guest.ring));
}

static void packed_interrupts_when_asked(void)
{
	boot_packed(false);
	guest.ring.call_fd = eventfd(0, EFD_NONBLOCK);
	give_packed(0, 1, 0);
	CHECK(vring_publish(&guest.ring) && interrupted());
	guest.ring.wish->flags = VRING_PACKED_EVENT_FLAG_DISABLE;
	give_packed(0, 1, 0);
	CHECK(!vring_publish(&guest.ring) && !interrupted());

	/* At place 4 of this round, at 0 of the next one; what was not negotiated counts as always. */
	guest.ring.event_idx = true;
	*guest.ring.wish = (struct vring_packed_desc_event){PACKED_WRAP | 4, VRING_PACKED_EVENT_FLAG_DESC};
	give_packed(0, 2, 0);
	CHECK(!vring_publish(&guest.ring) && !interrupted());
	give_packed(0, 2, 0);
	CHECK(vring_publish(&guest.ring) && interrupted() && guest.ring.given == 1);
	guest.ring.wish->off_wrap = 0;
	give_packed(0, 3, 0);
	CHECK(!vring_publish(&guest.ring));
	guest.ring.wish->off_wrap = PACKED_WRAP;
	give_packed(0, 2, 0);
	CHECK(vring_publish(&guest.ring) && interrupted());
	guest.ring.event_idx = false;
	guest.ring.wish->off_wrap = 0;
	give_packed(0, 1, 0);
	CHECK(vring_publish(&guest.ring) && interrupted());
	close(guest.ring.call_fd);
}

static void packed_arms(void)
{
	boot_packed(false);
	CHECK(!vring_arm(&guest.ring, false) && guest.ring.ask->flags == VRING_PACKED_EVENT_FLAG_DISABLE);
	CHECK(!vring_arm(&guest.ring, true) && guest.ring.ask->flags == VRING_PACKED_EVENT_FLAG_ENABLE);
	offer_packed(PACKED_WRAP, BASE + DATA_AT, 60, 0, 0);
	CHECK(vring_arm(&guest.ring, true));
	guest.ring.event_idx = true;
	guest.ring.taken = 4;
	CHECK(!vring_arm(&guest.ring, true) && guest.ring.ask->flags == VRING_PACKED_EVENT_FLAG_DESC && guest.ring.ask->off_wrap == 4);
}

static void packed_fits_or_not(void)
{
	boot_packed(false);
	CHECK(vring_fits(&guest.ring, &guest.memory));
	guest.ring.ask = (void *)(guest.bytes + MEMORY - 2);
	CHECK(!vring_fits(&guest.ring, &guest.memory));
	guest.ring.ask = guest.ring.wish;
	guest.ring.packed = (void *)(guest.bytes + MEMORY - 16 * (PACKED_SIZE - 1));
	CHECK(!vring_fits(&guest.ring, &guest.memory));
}

/* ---- histogram ---- */

static void buckets_hold_their_values(void)
{
	for (uint64_t cycles = 0; cycles < 100000; cycles++) {
		unsigned bucket = cost_bucket(cycles);

		CHECK(cycles < cost_bound(bucket));
		CHECK(bucket == 0 || cycles >= cost_bound(bucket - 1));
		/* At most 12.5 % wide. */
		CHECK(bucket < COST_STEPS || (cost_bound(bucket) - cost_bound(bucket - 1)) * COST_STEPS <= cost_bound(bucket - 1));
	}
	CHECK(cost_bucket(UINT64_MAX) == COST_BUCKETS - 1);
}

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{"learns_and_moves", learns_and_moves},
		{"ages", ages},
		{"learns_nobody", learns_nobody},
		{"forgets_a_port", forgets_a_port},
		{"limits_a_port", limits_a_port},
		{"spreads", spreads},
		{"full_table_stays_right", full_table_stays_right},
		{"visits_no_more_than_a_few", visits_no_more_than_a_few},
		{"fits_or_not", fits_or_not},
		{"follows_a_chain", follows_a_chain},
		{"follows_an_indirect_table", follows_an_indirect_table},
		{"splits_at_regions", splits_at_regions},
		{"refuses_hostile_descriptors", refuses_hostile_descriptors},
		{"survives_noise", survives_noise},
		{"breaks_a_ring_that_lies", breaks_a_ring_that_lies},
		{"counts_wrap", counts_wrap},
		{"looks_again_when_it_knows_of_too_few", looks_again_when_it_knows_of_too_few},
		{"interrupts_when_asked", interrupts_when_asked},
		{"does_not_wait_for_a_guest", does_not_wait_for_a_guest},
		{"arms", arms},
		{"packed_places_go_around", packed_places_go_around},
		{"packed_chains_are_followed", packed_chains_are_followed},
		{"packed_tables_are_followed", packed_tables_are_followed},
		{"packed_chains_without_an_end_break_the_ring", packed_chains_without_an_end_break_the_ring},
		{"packed_shows_the_first_last", packed_shows_the_first_last},
		{"packed_interrupts_when_asked", packed_interrupts_when_asked},
		{"packed_arms", packed_arms},
		{"packed_fits_or_not", packed_fits_or_not},
		{"buckets_hold_their_values", buckets_hold_their_values},
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		tests[i].run();
		printf("%s: holds\n", tests[i].name);
	}
	free(guest.bytes);
	return 0;
}
