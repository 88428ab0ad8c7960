/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A virtqueue, seen from the device's side; it is split (virtio 1.2, 2.7), or packed, see packed.h. Knows nothing of DPDK.
 *
 * Whatever is in the ring was written by a guest, which may be broken or hostile and may change it at any moment. So each
 * field is read once; every address is checked against the guest's memory, every index against the ring, every chain is
 * finite. What does not hold is refused, and never followed.
 */
#ifndef VS_VRING_H
#define VS_VRING_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/virtio_ring.h>

enum {
	MAX_REGIONS = 64,
	MAX_PARTS = 64,         /* of a chain, empty ones included; Linux makes at most 19 */
	MAX_FRAME = 65535 + 18, /* the longest IP packet, with header and one VLAN tag */
};

/* Bits of a descriptor's second half, of either kind of ring, that its length has from 64 KiB on. */
#define VRING_LONG UINT64_C(0xffff0000)

/* Where the guest's memory lies in ours. */
struct guest_memory {
	uint32_t count;
	struct guest_region {
		uint64_t guest, size;
		uint8_t *host;
	} region[MAX_REGIONS];
};

/* Our address of a guest's; *length is cut to what is contiguous there. NULL: not the guest's memory. */
static inline uint8_t *guest_at(const struct guest_memory *memory, uint64_t guest, uint64_t *length)
{
	for (uint32_t i = 0; i < memory->count; i++) {
		const struct guest_region *region = &memory->region[i];
		uint64_t offset = guest - region->guest;

		/* An address below the region wraps, and is too large as well. */
		if (offset < region->size) {
			if (*length > region->size - offset)
				*length = region->size - offset;
			return region->host + offset;
		}
	}
	return NULL;
}

/* Whether `length` bytes from `at` on, an address of ours, lie in one region of the guest's memory. */
static inline bool guest_has(const struct guest_memory *memory, const void *at, uint64_t length)
{
	for (uint32_t i = 0; i < memory->count; i++) {
		const struct guest_region *region = &memory->region[i];
		uint64_t offset = (uint64_t)(uintptr_t)at - (uint64_t)(uintptr_t)region->host;

		if (offset < region->size && length <= region->size - offset)
			return true;
	}
	return false;
}

struct vring_side {
	union {
		struct { /* split */
			struct vring_desc *desc;
			struct vring_avail *avail;
			struct vring_used *used;
		};
		struct {
			struct vring_packed_desc *packed;
			struct vring_packed_desc_event *wish; /* the guest's: when we are to interrupt it */
			struct vring_packed_desc_event *ask;  /* ours: when it is to notify us */
		};
	};
	bool is_packed;
	bool writes;        /* its chains are for the device to write */
	uint16_t size;      /* split: a power of two */
	uint16_t taken;     /* split: index of the next chain to take from avail; packed: its place */
	uint16_t given;     /* split: index of the next entry of used that we write; packed: its place */
	uint16_t published; /* the same as the guest sees it */
	uint16_t known;     /* split: index of the first chain that avail did not have yet when we last looked */
	uint32_t near;      /* the region of the guest's memory in which its last buffer lay */
	bool event_idx;     /* VIRTIO_RING_F_EVENT_IDX was negotiated */
	bool indirect;      /* VIRTIO_RING_F_INDIRECT_DESC was */
	bool broken;        /* the guest broke the ring: nothing more is taken from it until it is set up anew */
	bool waited;        /* its endpoint made us wait for it to take an interrupt */
	int call_fd;        /* interrupts the guest; -1: it polls */
	int kick_fd;        /* readable when the guest notified us; -1: it never does */
};

/* A descriptor's two halves, as they lie in the guest's memory; it need not have aligned an indirect table. */
struct vring_halves {
	uint64_t address, rest;
} __attribute__((packed));

/* One read of each half: what is checked is what is used, whatever the guest writes meanwhile. */
static inline struct vring_halves vring_read(const struct vring_desc *desc)
{
	const volatile struct vring_halves *halves = (const volatile struct vring_halves *)desc;

	return (struct vring_halves){le64toh(halves->address), le64toh(halves->rest)};
}

static inline struct vring_desc vring_fetch(const struct vring_desc *desc)
{
	struct vring_halves halves = vring_read(desc);

	return (struct vring_desc){halves.address, (uint32_t)halves.rest, halves.rest >> 32, halves.rest >> 48};
}

/* Whether all of a ring lies in the guest's memory; with event indices each of the last two parts of a split one ends with one. */
static inline bool vring_fits(const struct vring_side *ring, const struct guest_memory *memory)
{
	uint64_t event = ring->event_idx ? sizeof(uint16_t) : 0;

	if (ring->is_packed)
		return guest_has(memory, ring->packed, sizeof(struct vring_packed_desc) * ring->size) &&
		       guest_has(memory, ring->wish, sizeof(*ring->wish)) && guest_has(memory, ring->ask, sizeof(*ring->ask));
	return guest_has(memory, ring->desc, sizeof(struct vring_desc) * ring->size) &&
	       guest_has(memory, ring->avail, sizeof(struct vring_avail) + sizeof(uint16_t) * ring->size + event) &&
	       guest_has(memory, ring->used, sizeof(struct vring_used) + sizeof(struct vring_used_elem) * ring->size + event);
}

struct part {
	uint8_t *at;
	uint32_t length;
};

/* A chain of descriptors, as pieces of our memory. */
struct chain {
	uint32_t count, length;
	uint32_t visited; /* descriptors: what reading it cost */
	struct part part[MAX_PARTS];
};

/* A chain that was looked at before its turn. */
struct seen {
	uint16_t id;      /* what it is given back by: its head, or its buffer's ID */
	uint16_t place;   /* packed: where it begins */
	uint16_t slots;   /* packed: how many descriptors of the ring it is */
	struct part part; /* the one that the usual chain is. Empty, without an address: it is another, to be read when its turn comes */
};

/* Appends the guest's memory from `guest` on, which may be contiguous for the guest and not for us. False: it is none, or too much. */
bool vring_append(struct chain *chain, const struct guest_memory *memory, uint64_t guest, uint32_t length);

/* Chains that wait to be taken; of a packed ring, whether one does. A guest that claims more than the ring holds broke it. */
uint16_t vring_waiting(struct vring_side *ring);

/*
 * Chains of a split ring that are known to wait; looked for only where these are fewer than `enough`: the line with the guest's index
 * stays with its core, which writes it again and again.
 */
static inline uint16_t vring_waiting_for(struct vring_side *ring, uint16_t enough)
{
	uint16_t known = ring->known - ring->taken;

	return known >= enough && !ring->broken ? known : vring_waiting(ring);
}

/* What the guest names as the head of the waiting chain number `ahead`, counted from 0; it may lie outside the ring. */
static inline uint16_t vring_entry(const struct vring_side *ring, uint16_t ahead)
{
	return *(const volatile uint16_t *)&ring->avail->ring[(uint16_t)(ring->taken + ahead) & (ring->size - 1)];
}

/* The same head; -1 (and the ring is broken) if it lies outside the ring. */
static inline int vring_head(struct vring_side *ring, uint16_t ahead)
{
	uint16_t head = vring_entry(ring, ahead);

	if (head < ring->size)
		return head;
	ring->broken = true;
	return -1;
}

/* The region of memory in which the ring's last buffer lay: the next one mostly lies there, too. An empty one where there is no memory. */
static inline struct guest_region vring_near(const struct vring_side *ring, const struct guest_memory *memory)
{
	return ring->near < memory->count ? memory->region[ring->near] : (struct guest_region){0};
}

/*
 * The usual chain, read fast: a single descriptor, of less than 64 KiB, in one piece of our memory, in the region `near`. False: it is
 * another, or none: see vring_single() and vring_chain().
 */
static inline bool vring_single_near(
	const struct vring_side *ring, const struct guest_region *near, uint16_t head, bool writable, struct part *part)
{
	/* Length and flags are looked at together. */
	const uint64_t kind = VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT | VRING_DESC_F_WRITE;
	const uint64_t usual = writable ? (uint64_t)VRING_DESC_F_WRITE << 32 : 0;
	struct vring_halves desc = vring_read(&ring->desc[head]);
	uint64_t offset = desc.address - near->guest;
	uint32_t length = desc.rest;

	if ((desc.rest & (kind << 32 | VRING_LONG)) != usual || offset >= near->size || length > near->size - offset)
		return false;
	*part = (struct part){near->host + offset, length};
	return true;
}

/* The same in any region, which is the near one then. */
bool vring_single(struct vring_side *ring, const struct guest_memory *memory, uint16_t head, bool writable, struct part *part);

/*
 * Reads the chain that begins at `head`. writable: whether its parts must be for the device to write. Returns false where it is to
 * be refused: an address outside the guest's memory, a loop, too many parts, a wrong direction, an absurd length.
 */
bool vring_chain(const struct vring_side *ring, const struct guest_memory *memory, uint16_t head, bool writable, struct chain *chain);

/* Notes that a chain of a split ring is done with, `length` bytes written. The guest sees it when it is published. */
static inline void vring_give(struct vring_side *ring, uint16_t head, uint32_t length)
{
	ring->used->ring[ring->given++ & (ring->size - 1)] = (struct vring_used_elem){head, length};
}

/* Shows the guest what was given, and interrupts it if it wants that. Returns whether it was interrupted. */
bool vring_publish(struct vring_side *ring);

/* Asks the guest to notify us of new chains, or not to. Returns whether chains wait already. */
bool vring_arm(struct vring_side *ring, bool on);

#endif
