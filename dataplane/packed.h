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

/* The place `slots` further on; at most once around: that there are no more is for those to see who add up what a guest says. */
static inline uint16_t packed_on(uint16_t size, uint16_t place, uint16_t slots)
{
	uint32_t slot = packed_slot(place) + (uint32_t)slots;

	return slot < size ? place + slots : (uint16_t)((slot - size) | (~place & PACKED_WRAP));
}

/* A descriptor's halves are read at once: as other than bytes only in a ring, where they are aligned. */
typedef uint64_t __attribute__((may_alias)) packed_half;

/* Length, ID and flags of a descriptor of a ring, before its address is read: the flags say whether that was written yet. */
static inline uint64_t packed_rest(const struct vring_packed_desc *desc)
{
	return le64toh(__atomic_load_n((const packed_half *)&desc->len, __ATOMIC_ACQUIRE));
}

static inline uint64_t packed_address(const struct vring_packed_desc *desc)
{
	return le64toh(__atomic_load_n((const packed_half *)&desc->addr, __ATOMIC_RELAXED));
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

static inline bool packed_waits(const struct vring_side *ring, uint16_t place)
{
	return packed_available(packed_flags(packed_rest(&ring->packed[packed_slot(place)])), place);
}

/* Looks on at the chain at seen->place, which has several descriptors. False, and the ring is broken, where its end is not among `most`. */
bool packed_count(struct vring_side *ring, uint16_t most, struct seen *seen);

/*
 * Looks at the chain at a place, which has at most `most` descriptors. Returns whether one waits there; then all but its part is known.
 * False, and the ring is broken, where it has more.
 */
static inline bool packed_look(struct vring_side *ring, uint16_t place, uint16_t most, struct seen *seen)
{
	uint64_t rest = packed_rest(&ring->packed[packed_slot(place)]);

	if (!packed_available(packed_flags(rest), place))
		return false;
	*seen = (struct seen){.id = rest >> 32, .place = place, .slots = 1};
	return !(packed_flags(rest) & VRING_DESC_F_NEXT) || packed_count(ring, most, seen);
}

/*
 * The usual chains from a place on, read fast: each a single descriptor, of less than 64 KiB, in one piece of our memory, in the region
 * `near`. Returns how many wait there, up to the first that is another, or none: see packed_look(), packed_single() and packed_chain().
 * `most`: not beyond the ring's end, so that all have the same flags.
 */
static inline uint16_t packed_singles(
	const struct vring_side *ring, const struct guest_region *near, uint16_t place, uint16_t most, struct seen *seen)
{
	/* Length and flags are looked at together. */
	const uint64_t flags = PACKED_AVAIL | PACKED_USED | VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT | VRING_DESC_F_WRITE;
	const uint64_t looked_at = flags << 48 | VRING_LONG;
	const uint64_t usual = (uint64_t)((place & PACKED_WRAP ? PACKED_AVAIL : PACKED_USED) | (ring->writes ? VRING_DESC_F_WRITE : 0))
			       << 48;
	const struct vring_packed_desc *desc = &ring->packed[packed_slot(place)];
	uint16_t i;

	for (i = 0; i < most; i++) {
		uint64_t rest = packed_rest(&desc[i]), offset;
		uint32_t length = rest;

		if ((rest & looked_at) != usual)
			break;
		offset = packed_address(&desc[i]) - near->guest;
		if (offset >= near->size || length > near->size - offset)
			break;
		seen[i] = (struct seen){rest >> 32, place + i, 1, {near->host + offset, length}};
	}
	return i;
}

/* Looks for the part of a chain that is a single descriptor, in any region, which is the near one then. */
void packed_single(struct vring_side *ring, const struct guest_memory *memory, struct seen *seen);

/* Reads a chain that was seen. Returns false where it is to be refused: see vring_chain(). */
bool packed_chain(const struct vring_side *ring, const struct guest_memory *memory, const struct seen *seen, struct chain *chain);

/* The flags of a descriptor that is given back at this place. */
static inline uint16_t packed_used(bool writes, uint16_t place)
{
	return (place & PACKED_WRAP ? PACKED_AVAIL | PACKED_USED : 0) | (writes ? VRING_DESC_F_WRITE : 0);
}

/* A descriptor that says so: what a guest reads but for the address. Not before packed_show(), which orders it. */
static inline void packed_write(struct vring_packed_desc *desc, uint64_t flags, uint16_t id, uint32_t length)
{
	__atomic_store_n((packed_half *)&desc->len, htole64(flags << 48 | (uint64_t)id << 32 | length), __ATOMIC_RELAXED);
}

/* The same without its flags: see packed_show(). */
static inline void packed_write_first(struct vring_packed_desc *desc, uint16_t id, uint32_t length)
{
	desc->len = htole32(length);
	desc->id = htole16(id);
}

/*
 * Notes that a chain is done with, `length` bytes written. Of all that is noted between two publications the first one's flags are left: a
 * guest takes them in their order, so it sees none before that one.
 */
static inline void packed_give(struct vring_side *ring, uint16_t id, uint16_t slots, uint32_t length)
{
	struct vring_packed_desc *desc = &ring->packed[packed_slot(ring->given)];

	if (ring->given == ring->published)
		packed_write_first(desc, id, length);
	else
		packed_write(desc, packed_used(ring->writes, ring->given), id, length);
	ring->given = packed_on(ring->size, ring->given, slots);
}

/* Shows the guest what was noted, by the flags that were left. */
void packed_show(struct vring_side *ring);

/* Whether the guest asked for an interrupt somewhere in what was published from `before` on. */
bool packed_wanted(const struct vring_side *ring, uint16_t before);

/* Asks the guest to notify us of new chains, or not to. */
void packed_ask(struct vring_side *ring, bool on);

#endif
