/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whatever lies in a guest's memory and ring, split or packed, and however it changes meanwhile: what vring.c and packed.c hand on lies in the
 * guest's memory, is finite, and costs no more than it may. AddressSanitizer sees each step beside the memory, which is allocated to its very size.
 *
 * The input: how the ring is laid out, then the memory, then what the guest writes between two looks of the device.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "packed.h"
#include "vring.h"

enum { BASE = 0x10000, MEMORY = 1 << 14, ROUNDS = 8, HEADER = 16 };

/* Two regions of one guest, which are no neighbours for us. */
static void boot(struct guest_memory *memory, uint32_t border)
{
	uint32_t first = 64 + border % (MEMORY - 128);

	memory->count = 2;
	memory->region[0] = (struct guest_region){BASE, first, calloc(1, first)};
	memory->region[1] = (struct guest_region){BASE + first, MEMORY - first, calloc(1, MEMORY - first)};
}

/* Up to the end of the guest's memory. */
static void write_guest(const struct guest_memory *memory, uint32_t at, const uint8_t *from, size_t length)
{
	while (length > 0 && at < MEMORY) {
		uint64_t piece = length;
		uint8_t *to = guest_at(memory, BASE + at, &piece);

		memcpy(to, from, piece);
		at += piece;
		from += piece;
		length -= piece;
	}
}

/* All of it, with the image again and again. */
static void fill_guest(const struct guest_memory *memory, const uint8_t *image, size_t length)
{
	for (uint32_t at = 0; at < MEMORY; at += length)
		write_guest(memory, at, image, length);
}

/* Where `length` bytes would be whose first lies at `at`; it need not be all the guest's: that is what vring_fits() is for. */
static void *place(const struct guest_memory *memory, uint32_t at, uint32_t alignment)
{
	const struct guest_region *region = &memory->region[at & 1];

	return region->host + (at >> 1) % region->size / alignment * alignment;
}

static void look_at(const struct guest_memory *memory, const struct chain *chain)
{
	uint32_t length = 0;

	for (uint32_t p = 0; p < chain->count; p++) {
		must(chain->part[p].length > 0 && guest_has(memory, chain->part[p].at, chain->part[p].length));
		length += chain->part[p].length;
	}
	must(length == chain->length && length <= MAX_FRAME);
}

static void look_packed(struct vring_side *ring, const struct guest_memory *memory)
{
	struct guest_region near = vring_near(ring, memory);
	struct chain chain;
	struct seen seen;

	for (int i = 0; i < 32 && !ring->broken && packed_look(ring, ring->taken, ring->size, &seen); i++) {
		must(seen.slots > 0 && seen.slots <= MAX_PARTS && seen.slots <= ring->size);
		if (packed_singles(ring, &near, ring->taken, 1, &seen) == 0)
			packed_single(ring, memory, &seen);
		must(seen.part.at == NULL || seen.part.length == 0 || guest_has(memory, seen.part.at, seen.part.length));
		if (packed_chain(ring, memory, &seen, &chain))
			look_at(memory, &chain);
		must(chain.count <= MAX_PARTS && chain.visited <= MAX_PARTS + 1);
		packed_give(ring, seen.id, seen.slots, chain.length);
		ring->taken = packed_on(ring->size, ring->taken, seen.slots);
		must(packed_slot(ring->taken) < ring->size && ring->taken == ring->given);
	}
	vring_publish(ring);
	vring_arm(ring, ring->taken & 1);
}

static void look(struct vring_side *ring, const struct guest_memory *memory, bool writable)
{
	/* The guest may have turned its index back meanwhile. */
	uint16_t waiting = vring_waiting_for(ring, 64);
	struct chain chain;
	struct part part;

	must(waiting <= ring->size);
	for (uint16_t i = 0; i < waiting && i < 32; i++) {
		int head = vring_head(ring, i);
		uint32_t length = 0;

		if (head < 0)
			return;
		must(head < ring->size);
		if (vring_single(ring, memory, head, writable, &part))
			must(part.length == 0 || guest_has(memory, part.at, part.length));
		if (vring_chain(ring, memory, head, writable, &chain)) {
			look_at(memory, &chain);
			length = chain.length;
		}
		must(chain.count <= MAX_PARTS && chain.visited <= MAX_PARTS);
		vring_give(ring, head, length);
		ring->taken++;
	}
	vring_publish(ring);
	vring_arm(ring, waiting & 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct guest_memory memory;
	struct vring_side ring = {.call_fd = -1, .kick_fd = -1};
	uint32_t flags, image;

	if (size < HEADER)
		return 0;
	boot(&memory, next(&input, 2));
	flags = next(&input, 1);
	ring.size = next(&input, 1);
	/* A packed one may have any. */
	ring.size = flags & 8 ? ring.size + 1 : 1 << ring.size % 11;
	ring.event_idx = flags & 1;
	ring.indirect = flags & 2;
	ring.writes = flags & 4;
	ring.is_packed = flags & 8;
	/* Aligned as own_rings.c wants them. calloc() aligns to 16. */
	ring.desc = place(&memory, next(&input, 2), 16);
	ring.avail = place(&memory, next(&input, 2), ring.is_packed ? 4 : 2);
	ring.used = place(&memory, next(&input, 2), 4);
	ring.taken = next(&input, 2);
	ring.given = ring.published = next(&input, 2);
	if (ring.is_packed)
		/* A place in the ring; its wrap counter stays. */
		ring.given = ring.published = ring.taken = packed_slot(ring.taken) % ring.size | (ring.taken & PACKED_WRAP);
	ring.known = ring.taken;
	image = next(&input, 2) % (input.left + 1);
	if (image > 0)
		fill_guest(&memory, input.at, image);
	input.at += image;
	input.left -= image;
	for (int i = 0; i < ROUNDS && vring_fits(&ring, &memory); i++) {
		uint32_t at = next(&input, 2), length = next(&input, 1);

		ring.is_packed ? look_packed(&ring, &memory) : look(&ring, &memory, ring.writes);
		at %= MEMORY;
		length = length < input.left ? length : input.left;
		write_guest(&memory, at, input.at, length);
		input.at += length;
		input.left -= length;
	}
	free(memory.region[0].host);
	free(memory.region[1].host);
	return 0;
}
