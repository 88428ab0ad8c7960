/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A pair of a guest's rings in our own hands (--rings own): own_rings.c moves frames, own_setup.c takes the rings and gives them back. */
#ifndef VS_OWN_RINGS_H
#define VS_OWN_RINGS_H

#include <rte_mbuf.h>

#include "packed.h"
#include "vring.h"

/* What a chain in flight needs, by its ID. */
struct loan {
	struct rte_mbuf_ext_shared_info shared;
	struct own_queue *queue;
	uint16_t id, slots;
	bool out; /* in flight */
};

struct own_queue {
	struct vring_side in, out; /* from the guest, to the guest */
	uint16_t header;           /* length of virtio's header before each frame */
	bool mergeable;            /* a frame may take several buffers of the guest */
	uint32_t in_flight;
	struct rte_mempool *headers;
	struct loan *loan; /* by ID */
};

#endif
