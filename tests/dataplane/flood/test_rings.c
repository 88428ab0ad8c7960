/* SPDX-License-Identifier: GPL-2.0-or-later */
/* frame-flood's rings, the driver's side, against vhost-switch's, the device's side: `make -C dataplane/flood check`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "packed.h"
#include "ring.h"
#include "vring.h"

#define CHECK(holds)                                                                      \
	do {                                                                              \
		if (!(holds)) {                                                           \
			printf("%s:%d: does not hold: %s\n", __FILE__, __LINE__, #holds); \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

enum { SIZE = 64, ROUNDS = 1000, FRAME = 60 };

/* A ring, and who serves it. */
struct both {
	struct ring driver;
	struct vring_side device;
	struct guest_memory memory;
	uint8_t *at;
};

static struct both begin(bool packed, bool receives)
{
	struct both both = {
		.driver = {.size = SIZE, .is_packed = packed, .receives = receives, .kick = eventfd(0, EFD_NONBLOCK)},
		.device = {.size = SIZE, .is_packed = packed, .writes = receives, .call_fd = -1, .kick_fd = -1},
	};

	both.at = aligned_alloc(4096, ring_bytes(SIZE));
	memset(both.at, 0xa5, ring_bytes(SIZE));
	both.memory = (struct guest_memory){1, {{(uintptr_t)both.at, ring_bytes(SIZE), both.at}}};
	ring_place(&both.driver, both.at);
	ring_reset(&both.driver);
	both.device.desc = both.driver.desc;
	both.device.avail = both.driver.avail;
	both.device.used = both.driver.used;
	if (packed)
		both.device.taken = both.device.given = both.device.published = ring_base(&both.driver);
	CHECK(vring_fits(&both.device, &both.memory));
	return both;
}

static void end(struct both *both)
{
	close(both->driver.kick);
	free(both->at);
}

/* What the device takes: the number of a buffer, or -1. Its descriptor must be as was given. */
static int device_takes(struct both *both, uint32_t bytes)
{
	struct vring_side *ring = &both->device;
	struct seen seen = {0};

	if (!vring_waiting(ring))
		return -1;
	if (ring->is_packed) {
		CHECK(packed_look(ring, ring->taken, SIZE, &seen));
		packed_single(ring, &both->memory, &seen);
		ring->taken = packed_on(SIZE, ring->taken, seen.slots);
	} else {
		seen.id = (uint16_t)vring_head(ring, 0);
		CHECK(vring_single(ring, &both->memory, seen.id, ring->writes, &seen.part));
		ring->taken++;
	}
	CHECK(seen.part.at == ring_frame(&both->driver, seen.id) - HEADER_BYTES);
	CHECK(seen.part.length == bytes + HEADER_BYTES);
	return seen.id;
}

static void device_gives(struct both *both, uint16_t id, uint32_t bytes)
{
	if (both->device.is_packed)
		packed_give(&both->device, id, 1, bytes);
	else
		vring_give(&both->device, id, bytes);
}

/* The device gives back what it has in another order, some of it later; each buffer comes back once. */
static void comes_back_in_any_order(bool packed, bool receives)
{
	struct both both = begin(packed, receives);
	bool with_device[SIZE] = {false};
	uint16_t ids[SIZE], kept[SIZE];
	uint32_t lengths[SIZE];
	unsigned given = 0, have = 0, idle = SIZE;

	srand(1);
	for (uint16_t id = 0; id < SIZE; id++)
		ids[id] = id;
	for (int round = 0; round < ROUNDS; round++) {
		ring_give(&both.driver, ids, idle, FRAME);
		ring_publish(&both.driver);
		given += idle;
		CHECK(both.driver.held == SIZE);
		for (int id; (id = device_takes(&both, FRAME)) >= 0; have++) {
			CHECK(!with_device[id]);
			with_device[id] = true;
			kept[have] = (uint16_t)id;
		}
		CHECK(have == SIZE);
		for (unsigned many = (unsigned)rand() % SIZE; many > 0; many--) {
			unsigned which = (unsigned)rand() % have;

			device_gives(&both, kept[which], FRAME + kept[which]);
			kept[which] = kept[--have];
		}
		vring_publish(&both.device);
		idle = ring_take(&both.driver, ids, lengths, SIZE);
		CHECK(idle == SIZE - have && both.driver.held == have);
		for (unsigned i = 0; i < idle; i++) {
			CHECK(with_device[ids[i]] && lengths[i] == (uint32_t)FRAME + ids[i]);
			with_device[ids[i]] = false;
		}
	}
	CHECK(given > 10 * SIZE);
	end(&both);
}

/* No more than were asked for; the others are there the next time. */
static void takes_no_more_than_asked(bool packed)
{
	struct both both = begin(packed, true);
	uint16_t ids[SIZE];
	uint32_t lengths[SIZE];

	for (uint16_t id = 0; id < SIZE; id++)
		ids[id] = id;
	ring_give(&both.driver, ids, SIZE, FRAME);
	ring_publish(&both.driver);
	for (int id; (id = device_takes(&both, FRAME)) >= 0;)
		device_gives(&both, (uint16_t)id, FRAME);
	CHECK(ring_take(&both.driver, ids, lengths, SIZE) == 0);
	vring_publish(&both.device);
	CHECK(ring_take(&both.driver, ids, lengths, 10) == 10);
	CHECK(ring_take(&both.driver, ids, lengths, SIZE) == SIZE - 10);
	CHECK(ring_take(&both.driver, ids, lengths, SIZE) == 0 && both.driver.held == 0);
	end(&both);
}

static uint64_t woken(const struct both *both)
{
	uint64_t times = 0;

	return eventfd_read(both->driver.kick, &times) ? 0 : times;
}

/* A device that polls is never notified; one that asked for it is. */
static void wakes_who_sleeps(bool packed)
{
	struct both both = begin(packed, false);

	vring_arm(&both.device, false);
	ring_publish(&both.driver);
	ring_wake(&both.driver);
	CHECK(woken(&both) == 0);
	vring_arm(&both.device, true);
	ring_wake(&both.driver);
	CHECK(woken(&both) == 1);
	/* Nor does it want to be interrupted. */
	both.device.call_fd = eventfd(0, EFD_NONBLOCK);
	device_gives(&both, 0, 0);
	CHECK(!vring_publish(&both.device));
	close(both.device.call_fd);
	end(&both);
}

int main(void)
{
	for (int packed = 0; packed < 2; packed++) {
		comes_back_in_any_order(packed, false);
		comes_back_in_any_order(packed, true);
		takes_no_more_than_asked(packed);
		wakes_who_sleeps(packed);
		printf("%s rings: ok\n", packed ? "packed" : "split");
	}
	return 0;
}
