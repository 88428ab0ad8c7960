/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A virtqueue from the driver's side, split (virtio 1.2, 2.7) or packed (2.8). Each chain is one descriptor, and buffer `id` always lies
 * in place `id` of the ring's buffers. The device is a switch that we chose, and is not defended against, but nothing that it writes is
 * taken for an address. Knows nothing of DPDK.
 */
#ifndef VSPROF_FLOOD_RING_H
#define VSPROF_FLOOD_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/virtio_ring.h>
#include <sys/eventfd.h>

enum {
	BUFFER_BYTES = 2048,
	FRAME_AT = 128,        /* where a frame begins in its buffer: at a line of the cache, as in DPDK's mbufs */
	HEADER_BYTES = 12,     /* of virtio 1: it lies before the frame */
	PLACE_WRAPS = 1 << 15, /* in a place's number in a packed ring, as events and the protocol have it */
};

struct ring {
	union {
		struct {
			struct vring_desc *desc;
			struct vring_avail *avail;
			struct vring_used *used;
		};
		struct {
			struct vring_packed_desc *packed;
			struct vring_packed_desc_event *driver; /* ours: the device need not interrupt us */
			struct vring_packed_desc_event *device; /* whether it wants to be notified */
		};
	};
	uint8_t *buffers;
	bool is_packed;
	bool receives;
	bool reads_header;             /* a frame's header is looked at, too */
	bool wraps_given, wraps_taken; /* packed: the wrap counters of the next two */
	uint16_t size;                 /* a power of two */
	uint16_t given;                /* split: index of the next entry of avail; packed: its place */
	uint16_t taken;                /* the same of the next that the device gives back */
	uint16_t held;                 /* buffers that the device has */
	int kick;                      /* eventfd: notifies the device */
};

static inline uint8_t *ring_frame(const struct ring *ring, uint16_t id)
{
	return ring->buffers + (size_t)id * BUFFER_BYTES + FRAME_AT;
}

/*
 * Asks for a line that is about to be written: to be owned at once, or the write would wait for the switch's core a second time. GCC's
 * builtin is a plain prefetch in a build for any x86-64. A processor that does not know the instruction takes it for none.
 */
static inline void ring_ask(const void *at)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
	__builtin_prefetch(at, 1);
#endif
}

/* A frame that came is read, one that is to be sent is written. */
static inline void ring_ask_frame(const struct ring *ring, uint16_t id)
{
	if (ring->receives)
		__builtin_prefetch(ring_frame(ring, id));
	else
		ring_ask(ring_frame(ring, id));
	if (ring->reads_header)
		__builtin_prefetch(ring_frame(ring, id) - HEADER_BYTES);
}

/*
 * Buffers that the device has given back: their numbers, and the bytes that it wrote into each, with the header; up to `most`. Returns how
 * many. The lines that are read or written next are asked for meanwhile, all before the first is waited for.
 */
static inline unsigned ring_take_split(struct ring *ring, uint16_t *ids, uint32_t *bytes, unsigned most)
{
	const uint16_t mask = ring->size - 1, waiting = __atomic_load_n(&ring->used->idx, __ATOMIC_ACQUIRE) - ring->taken;
	const unsigned count = waiting < most ? waiting : most;

	for (unsigned i = 0; i < count; i++) {
		const struct vring_used_elem *one = &ring->used->ring[(ring->taken + i) & mask];

		ids[i] = one->id & mask;
		bytes[i] = one->len;
		ring_ask(&ring->desc[ids[i]]);
		ring_ask_frame(ring, ids[i]);
	}
	ring->taken += count;
	return count;
}

static inline unsigned ring_take_packed(struct ring *ring, uint16_t *ids, uint32_t *bytes, unsigned most)
{
	const uint16_t mask = ring->size - 1;
	uint16_t place = ring->taken;
	bool wraps = ring->wraps_taken;
	unsigned i;

	for (i = 0; i < most; i++) {
		const struct vring_packed_desc *one = &ring->packed[place];
		uint16_t flags = __atomic_load_n(&one->flags, __ATOMIC_ACQUIRE);

		if (!!(flags & 1 << VRING_PACKED_DESC_F_AVAIL) != wraps || !!(flags & 1 << VRING_PACKED_DESC_F_USED) != wraps)
			break;
		ids[i] = one->id & mask;
		bytes[i] = one->len;
		ring_ask_frame(ring, ids[i]);
		place = (place + 1) & mask;
		wraps ^= !place;
	}
	ring->taken = place;
	ring->wraps_taken = wraps;
	return i;
}

static inline unsigned ring_take(struct ring *ring, uint16_t *ids, uint32_t *bytes, unsigned most)
{
	unsigned count = ring->is_packed ? ring_take_packed(ring, ids, bytes, most) : ring_take_split(ring, ids, bytes, most);

	ring->held -= count;
	return count;
}

static inline void ring_give_split(struct ring *ring, const uint16_t *ids, unsigned count, uint32_t bytes)
{
	const uint16_t mask = ring->size - 1, given = ring->given, flags = ring->receives ? VRING_DESC_F_WRITE : 0;
	struct vring_desc *const desc = ring->desc;
	uint16_t *const avail = ring->avail->ring;
	uint8_t *const first = ring_frame(ring, 0) - HEADER_BYTES;

	for (unsigned i = 0; i < count; i++) {
		uint16_t id = ids[i];

		desc[id] = (struct vring_desc){(uintptr_t)first + (size_t)id * BUFFER_BYTES, bytes, flags, 0};
		avail[(given + i) & mask] = id;
	}
	ring->given = given + count;
}

static inline void ring_give_packed(struct ring *ring, const uint16_t *ids, unsigned count, uint32_t bytes)
{
	const uint16_t mask = ring->size - 1, write = ring->receives ? VRING_DESC_F_WRITE : 0;
	uint8_t *const first = ring_frame(ring, 0) - HEADER_BYTES;
	uint16_t place = ring->given;
	bool wraps = ring->wraps_given;

	for (unsigned i = 0; i < count; i++) {
		struct vring_packed_desc *one = &ring->packed[place];

		one->addr = (uintptr_t)first + (size_t)ids[i] * BUFFER_BYTES;
		one->len = bytes;
		one->id = ids[i];
		/* Last: with them the device sees the descriptor. */
		__atomic_store_n(
			&one->flags, write | (wraps ? 1 << VRING_PACKED_DESC_F_AVAIL : 1 << VRING_PACKED_DESC_F_USED), __ATOMIC_RELEASE);
		place = (place + 1) & mask;
		wraps ^= !place;
	}
	ring->given = place;
	ring->wraps_given = wraps;
}

/* Gives buffers to the device: each with a frame of `bytes` without the header, or room for so many. Seen by it after ring_publish. */
static inline void ring_give(struct ring *ring, const uint16_t *ids, unsigned count, uint32_t bytes)
{
	if (ring->is_packed)
		ring_give_packed(ring, ids, count, bytes + HEADER_BYTES);
	else
		ring_give_split(ring, ids, count, bytes + HEADER_BYTES);
	ring->held += count;
}

/* Lets the device see what was given. */
static inline void ring_publish(struct ring *ring)
{
	if (!ring->is_packed)
		__atomic_store_n(&ring->avail->idx, ring->given, __ATOMIC_RELEASE);
}

/* After one or several ring_publish(): wakes the device where it sleeps. */
static inline void ring_wake(struct ring *ring)
{
	bool wakes;

	/* It looks once more after it said that it sleeps: one of the two sees what the other wrote. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (ring->is_packed)
		wakes = __atomic_load_n(&ring->device->flags, __ATOMIC_RELAXED) != VRING_PACKED_EVENT_FLAG_DISABLE;
	else
		wakes = !(__atomic_load_n(&ring->used->flags, __ATOMIC_RELAXED) & VRING_USED_F_NO_NOTIFY);
	if (wakes)
		eventfd_write(ring->kick, 1);
}

/* The number of the place at which a device begins, as the protocol has it. */
static inline uint32_t ring_base(const struct ring *ring)
{
	return ring->is_packed ? PLACE_WRAPS : 0;
}

/* Lays out an empty ring. Only while no device looks at it. */
void ring_reset(struct ring *ring);

/* Bytes of the three parts of a ring of `size` and of its buffers. */
size_t ring_bytes(uint16_t size);

/* Places the ring's parts and buffers in ring_bytes() at `at`, which begins a page. */
void ring_place(struct ring *ring, uint8_t *at);

#endif
