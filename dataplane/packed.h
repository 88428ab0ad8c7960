/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A packed virtqueue (virtio 1.2, 2.8), seen from the device's side: one ring, in which the device overwrites the descriptors that it is
 * done with. What vring.h says of a guest's writes holds here, too.
 *
 * A place in the ring is a descriptor's number, and in bit 15 the wrap counter of whoever comes by there: as the protocol of vhost-user has
 * it in SET_VRING_BASE.
 */
#ifndef VS_PACKED_H
#define VS_PACKED_H

#include "vring.h"

enum {
	PACKED_WRAP = 1 << VRING_PACKED_EVENT_F_WRAP_CTR,
	PACKED_MOST = 1 << VRING_PACKED_EVENT_F_WRAP_CTR, /* descriptors of a ring; not only powers of two */
	PACKED_AVAIL = 1 << VRING_PACKED_DESC_F_AVAIL,
	PACKED_USED = 1 << VRING_PACKED_DESC_F_USED,
};

static inline uint16_t packed_slot(uint16_t place)
{
	return place & (PACKED_WRAP - 1);
}

/* The place `slots` further on; at most once around. */
static inline uint16_t packed_on(uint16_t size, uint16_t place, uint16_t slots)
{
	uint32_t slot = packed_slot(place) + (uint32_t)slots;

	return slot < size ? place + slots : (uint16_t)((slot - size) | (~place & PACKED_WRAP));
}

/* Length, ID and flags of a descriptor, before its address is read: the flags say whether that was written yet. */
static inline uint64_t packed_rest(const struct vring_packed_desc *desc)
{
	uint64_t rest = le64toh(((const volatile struct vring_halves *)desc)->rest);

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return rest;
}

static inline uint64_t packed_address(const struct vring_packed_desc *desc)
{
	return le64toh(((const volatile struct vring_halves *)desc)->address);
}

static inline uint16_t packed_flags(uint64_t rest)
{
	return rest >> 48;
}

/* Whether a descriptor with these flags is the device's at this place. */
static inline bool packed_available(uint16_t flags, uint16_t place)
{
	return (flags & (PACKED_AVAIL | PACKED_USED)) == (place & PACKED_WRAP ? PACKED_AVAIL : PACKED_USED);
}

static inline bool packed_waits(const struct vring_side *ring)
{
	return packed_available(packed_flags(packed_rest(&ring->packed[packed_slot(ring->taken)])), ring->taken);
}

/* Looks on at the chain at seen->place, which has several descriptors. False, and the ring is broken, where its end is not to be found. */
bool packed_count(struct vring_side *ring, struct seen *seen);

/*
 * Looks at the chain at a place. Returns whether one waits there; then all but its part is known. The part, too, where it is the usual one:
 * a single descriptor, in one piece of our memory, in the region `near`.
 */
static inline bool packed_look(struct vring_side *ring, const struct guest_region *near, uint16_t place, struct seen *seen)
{
	const uint16_t kind = VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT | VRING_DESC_F_WRITE;
	const struct vring_packed_desc *desc = &ring->packed[packed_slot(place)];
	uint64_t rest = packed_rest(desc), offset;
	uint16_t flags = packed_flags(rest);
	uint32_t length = rest;

	if (!packed_available(flags, place))
		return false;
	seen->id = rest >> 32;
	seen->place = place;
	seen->slots = 1;
	seen->part = (struct part){0};
	if ((flags & kind) != (ring->writes ? VRING_DESC_F_WRITE : 0))
		return !(flags & VRING_DESC_F_NEXT) || packed_count(ring, seen);
	offset = packed_address(desc) - near->guest;
	if (length <= MAX_FRAME && offset < near->size && length <= near->size - offset)
		seen->part = (struct part){near->host + offset, length};
	return true;
}

/* Looks for the part of a single descriptor in any region, which is the near one then. */
void packed_single(struct vring_side *ring, const struct guest_memory *memory, struct seen *seen);

/* Reads a chain that was seen. Returns false where it is to be refused: see vring_chain(). */
bool packed_chain(const struct vring_side *ring, const struct guest_memory *memory, const struct seen *seen, struct chain *chain);

/* The flags of a descriptor that is given back at this place. */
static inline uint16_t packed_used(bool writes, uint16_t place)
{
	return (place & PACKED_WRAP ? PACKED_AVAIL | PACKED_USED : 0) | (writes ? VRING_DESC_F_WRITE : 0);
}

/*
 * Notes at a place that a chain is done with, `length` bytes written. Of all that is noted between two publications the first one's flags
 * are left: a guest takes them in their order, so it sees none before that one, which packed_show() writes.
 */
static inline void packed_note(
	struct vring_packed_desc *ring, bool writes, uint16_t published, uint16_t place, uint16_t id, uint32_t length)
{
	struct vring_packed_desc *desc = &ring[packed_slot(place)];
	uint64_t rest = length | (uint64_t)id << 32 | (uint64_t)packed_used(writes, place) << 48;

	if (place != published) {
		__atomic_thread_fence(__ATOMIC_RELEASE);
		((volatile struct vring_halves *)desc)->rest = htole64(rest);
		return;
	}
	desc->len = htole32(length);
	desc->id = htole16(id);
}

/* Shows the guest what was noted. */
void packed_show(struct vring_side *ring);

/* Whether the guest asked for an interrupt somewhere in what was published from `before` on. */
bool packed_wanted(const struct vring_side *ring, uint16_t before);

/* Asks the guest to notify us of new chains, or not to. */
void packed_ask(struct vring_side *ring, bool on);

#endif
