/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ring.h"

#include <string.h>

#define PAGE 4096u

/* A part of at most `bytes` begins at a page of its own: the two sides write to different parts. */
static size_t pages(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Of either kind of ring, a split one's is as large as a packed one's or larger. */
static size_t descriptors_bytes(uint16_t size)
{
	return pages(size * sizeof(struct vring_desc));
}

static size_t driver_bytes(uint16_t size)
{
	return pages(sizeof(struct vring_avail) + (size + 1) * sizeof(uint16_t));
}

static size_t device_bytes(uint16_t size)
{
	return pages(sizeof(struct vring_used) + size * sizeof(struct vring_used_elem) + sizeof(uint16_t));
}

size_t ring_bytes(uint16_t size)
{
	return descriptors_bytes(size) + driver_bytes(size) + device_bytes(size) + pages((size_t)size * BUFFER_BYTES);
}

void ring_place(struct ring *ring, uint8_t *at)
{
	ring->desc = (struct vring_desc *)at;
	at += descriptors_bytes(ring->size);
	ring->avail = (struct vring_avail *)at;
	at += driver_bytes(ring->size);
	ring->used = (struct vring_used *)at;
	ring->buffers = at + device_bytes(ring->size);
}

void ring_reset(struct ring *ring)
{
	memset(ring->desc, 0, (size_t)(ring->buffers - (uint8_t *)ring->desc));
	ring->given = ring->taken = ring->held = 0;
	ring->wraps_given = ring->wraps_taken = true;
	if (ring->is_packed)
		ring->driver->flags = VRING_PACKED_EVENT_FLAG_DISABLE;
	else
		ring->avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
}
