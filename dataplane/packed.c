/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "packed.h"

bool packed_count(struct vring_side *ring, uint16_t most, struct seen *seen)
{
	uint64_t rest;

	/* The ID is the last one's (2.8.6). What a longer chain costs, the neighbours would pay. */
	do {
		if (seen->slots == MAX_PARTS || seen->slots >= most) {
			ring->broken = true;
			return false;
		}
		rest = packed_rest(&ring->packed[packed_slot(packed_on(ring->size, seen->place, seen->slots++))]);
		seen->id = rest >> 32;
	} while (packed_flags(rest) & VRING_DESC_F_NEXT);
	return true;
}

void packed_single(struct vring_side *ring, const struct guest_memory *memory, struct seen *seen)
{
	const uint16_t kind = VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT | VRING_DESC_F_WRITE;
	const struct vring_packed_desc *desc = &ring->packed[packed_slot(seen->place)];
	/* The guest may have made it another meanwhile: by what it is given back is what was seen first. */
	uint64_t rest = packed_rest(desc), address = packed_address(desc);
	uint32_t length = rest;

	if (seen->slots > 1 || (packed_flags(rest) & kind) != (ring->writes ? VRING_DESC_F_WRITE : 0) || length > MAX_FRAME)
		return;
	for (uint32_t i = 0; i < memory->count; i++) {
		uint64_t offset = address - memory->region[i].guest;

		if (offset < memory->region[i].size && length <= memory->region[i].size - offset) {
			seen->part = (struct part){memory->region[i].host + offset, length};
			ring->near = i;
			return;
		}
	}
}

/* Follows an indirect table, which has no chains: its length says how many descriptors there are (2.8.7). */
static bool follow_table(
	uint64_t address, uint32_t bytes, const struct vring_side *ring, const struct guest_memory *memory, struct chain *chain)
{
	uint64_t length = bytes;
	const struct vring_packed_desc *table = (const void *)guest_at(memory, address, &length);

	if (!ring->indirect || table == NULL || length != bytes || bytes == 0 || bytes % sizeof(*table) != 0)
		return false;
	for (uint32_t i = 0; i < bytes / sizeof(*table); i++) {
		/* It need not be aligned. */
		const volatile struct vring_halves *entry = (const volatile struct vring_halves *)&table[i];
		uint64_t rest = le64toh(entry->rest);

		if (i == MAX_PARTS || packed_flags(rest) & VRING_DESC_F_INDIRECT ||
			!!(packed_flags(rest) & VRING_DESC_F_WRITE) != ring->writes)
			return false;
		chain->visited++;
		if (!vring_append(chain, memory, le64toh(entry->address), rest))
			return false;
	}
	return true;
}

bool packed_chain(const struct vring_side *ring, const struct guest_memory *memory, const struct seen *seen, struct chain *chain)
{
	chain->count = chain->length = chain->visited = 0;
	for (uint16_t i = 0; i < seen->slots; i++) {
		const struct vring_packed_desc *desc = &ring->packed[packed_slot(packed_on(ring->size, seen->place, i))];
		uint64_t rest = packed_rest(desc);

		chain->visited++;
		if (packed_flags(rest) & VRING_DESC_F_INDIRECT)
			return seen->slots == 1 && follow_table(packed_address(desc), rest, ring, memory, chain);
		if (!!(packed_flags(rest) & VRING_DESC_F_WRITE) != ring->writes || !vring_append(chain, memory, packed_address(desc), rest))
			return false;
	}
	return true;
}

void packed_show(struct vring_side *ring)
{
	struct vring_packed_desc *desc = &ring->packed[packed_slot(ring->published)];

	__atomic_store_n(&desc->flags, htole16(packed_used(ring->writes, ring->published)), __ATOMIC_RELEASE);
}

/* How many descriptors lie between two places. The ring is gone around twice before a place comes again. */
static uint32_t distance(uint32_t size, uint16_t from, uint16_t to)
{
	uint32_t at = packed_slot(from) + (from & PACKED_WRAP ? 0 : size), other = packed_slot(to) + (to & PACKED_WRAP ? 0 : size);

	return (other + 2 * size - at) % (2 * size);
}

bool packed_wanted(const struct vring_side *ring, uint16_t before)
{
	uint16_t flags = le16toh(__atomic_load_n(&ring->wish->flags, __ATOMIC_ACQUIRE)) & 3;

	if (flags != VRING_PACKED_EVENT_FLAG_DESC || !ring->event_idx)
		return flags != VRING_PACKED_EVENT_FLAG_DISABLE;
	return distance(ring->size, before, le16toh(__atomic_load_n(&ring->wish->off_wrap, __ATOMIC_RELAXED))) <
	       distance(ring->size, before, ring->published);
}

void packed_ask(struct vring_side *ring, bool on)
{
	uint16_t flags = !on               ? VRING_PACKED_EVENT_FLAG_DISABLE
			 : ring->event_idx ? VRING_PACKED_EVENT_FLAG_DESC
					   : VRING_PACKED_EVENT_FLAG_ENABLE;

	__atomic_store_n(&ring->ask->off_wrap, htole16(ring->taken), __ATOMIC_RELAXED);
	__atomic_store_n(&ring->ask->flags, htole16(flags), __ATOMIC_RELEASE);
}
