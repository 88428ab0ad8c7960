/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A port's rings in our own hands: taken from librte_vhost, which knows where they are, and given back to it. */
#include <stdio.h>
#include <string.h>

#include <linux/virtio_net.h>
#include <rte_malloc.h>

#include "own_rings.h"
#include "plane.h"
#include "vhost.h"

enum {
	HEADERS = 4095, /* mbufs of a port that refer to its guest's buffers: frames in flight at most */
	HEADERS_CACHE = 128,
};

/* Where a ring's parts are. Returns false where they are not aligned as virtio 1.2 has it (2.7 and 2.8), or its size can't be; librte_vhost
 * takes any address. */
static bool place_ring(const struct rte_vhost_vring *found, struct vring_side *ring)
{
	if (ring->is_packed) {
		ring->packed = found->desc_packed;
		ring->wish = found->driver_event;
		ring->ask = found->device_event;
		return found->size > 0 && found->size <= PACKED_MOST && (uintptr_t)ring->packed % 16 == 0 &&
		       (uintptr_t)ring->wish % 4 == 0 && (uintptr_t)ring->ask % 4 == 0;
	}
	ring->desc = found->desc;
	ring->avail = found->avail;
	ring->used = found->used;
	return found->size > 0 && (found->size & (found->size - 1)) == 0 && (uintptr_t)ring->desc % 16 == 0 &&
	       (uintptr_t)ring->avail % 2 == 0 && (uintptr_t)ring->used % 4 == 0;
}

static int attach_ring(int vid, uint16_t number, bool writes, uint64_t features, const struct guest_memory *memory, struct vring_side *ring)
{
	struct rte_vhost_vring found;

	memset(ring, 0, sizeof(*ring));
	ring->broken = true;
	ring->call_fd = ring->kick_fd = -1;
	/* The union's other names are the parts of a packed ring. */
	if (rte_vhost_get_vhost_vring(vid, number, &found) != 0 || found.desc == NULL || found.avail == NULL || found.used == NULL)
		return 0; /* not set up: nothing is taken from it */
	ring->is_packed = features & (1ULL << VIRTIO_F_RING_PACKED);
	ring->writes = writes;
	ring->call_fd = found.callfd;
	ring->kick_fd = found.kickfd;
	ring->event_idx = features & (1ULL << VIRTIO_RING_F_EVENT_IDX);
	ring->indirect = features & (1ULL << VIRTIO_RING_F_INDIRECT_DESC);
	/* librte_vhost looks at a ring's parts when it is told their addresses; its size may have changed since. */
	if (!place_ring(&found, ring))
		return -1;
	ring->size = found.size;
	if (!vring_fits(ring, memory))
		return -1;
	if (rte_vhost_get_vring_base(vid, number, &ring->taken, &ring->given) != 0)
		return -1;
	if (ring->is_packed && (packed_slot(ring->taken) >= ring->size || packed_slot(ring->given) >= ring->size))
		return -1;
	ring->published = ring->given;
	ring->known = ring->taken;
	ring->broken = false;
	return 0;
}

static int attach_queue(int vid, uint16_t number, uint64_t features, const struct guest_memory *memory, struct own_queue *queue)
{
	/* The last as DPDK's drivers have it, and librte_vhost: no legacy driver knows packed rings. */
	const uint64_t long_header = 1ULL << VIRTIO_NET_F_MRG_RXBUF | 1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_F_RING_PACKED;

	queue->mergeable = features & (1ULL << VIRTIO_NET_F_MRG_RXBUF);
	queue->header = features & long_header ? sizeof(struct virtio_net_hdr_mrg_rxbuf) : sizeof(struct virtio_net_hdr);
	if (attach_ring(vid, from_guest(number), false, features, memory, &queue->in) != 0 ||
		attach_ring(vid, to_guest(number), true, features, memory, &queue->out) != 0)
		return -1;
	rte_free(queue->loan);
	queue->loan = rte_zmalloc("loans", sizeof(struct loan) * RTE_MAX(queue->in.size, 1), RTE_CACHE_LINE_SIZE);
	vring_arm(&queue->in, false);
	vring_arm(&queue->out, false);
	return queue->loan == NULL ? -1 : 0;
}

int own_attach(struct port *port)
{
	struct vhost *vhost = port->own;
	uint64_t features = 0;

	if (vhost_take_memory(vhost->vid, &vhost->memory) != 0 || rte_vhost_get_negotiated_features(vhost->vid, &features) != 0)
		return -1;
	for (uint16_t number = 0; number < port->spec.queues; number++)
		if (attach_queue(vhost->vid, number, features, &vhost->memory, vhost->queue[number]) != 0)
			return -1;
	return 0;
}

static void detach_ring(struct vhost *vhost, uint16_t number, struct vring_side *ring)
{
	if (ring->size == 0)
		return;
	vring_publish(ring);
	rte_vhost_set_vring_base(vhost->vid, number, ring->taken, ring->given);
	vhost->waited |= ring->waited;
	ring->size = 0;
	ring->broken = true;
}

void own_detach(struct port *port)
{
	struct vhost *vhost = port->own;

	if (own_in_flight(port) > 0)
		rte_panic("port %s: %lu frames still lie in the memory of a guest that goes\n", port->name, own_in_flight(port));
	for (uint16_t number = 0; number < port->spec.queues; number++) {
		detach_ring(vhost, from_guest(number), &vhost->queue[number]->in);
		detach_ring(vhost, to_guest(number), &vhost->queue[number]->out);
	}
}

uint64_t own_in_flight(const struct port *port)
{
	const struct vhost *vhost = port->own;
	uint64_t total = 0;

	for (uint16_t number = 0; number < port->spec.queues; number++)
		if (vhost->queue[number] != NULL)
			total += vhost->queue[number]->in_flight;
	return total;
}

uint64_t own_broken(const struct port *port)
{
	const struct vhost *vhost = port->own;
	uint64_t total = 0;

	/* One that was never set up has no size. */
	for (uint16_t number = 0; number < port->spec.queues; number++) {
		const struct own_queue *queue = vhost->queue[number];

		total += (queue->in.size > 0 && queue->in.broken) + (queue->out.size > 0 && queue->out.broken);
	}
	return total;
}

int own_open(struct port *port, struct why *why)
{
	struct vhost *vhost = port->own;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *headers = NULL;

	snprintf(name, sizeof(name), "headers%u", port->slot);
	if (plane.options.zero_copy) {
		headers = rte_pktmbuf_pool_create(name, HEADERS, HEADERS_CACHE, 0, 0, SOCKET_ID_ANY);
		if (headers == NULL)
			return refuse(why, "port %s: no memory for %d mbufs: give DPDK more (-m)", port->name, HEADERS);
	}
	for (uint16_t number = 0; number < port->spec.queues; number++) {
		struct own_queue *queue = rte_zmalloc("queue", sizeof(*queue), RTE_CACHE_LINE_SIZE);

		if (queue == NULL) {
			if (number == 0)
				rte_mempool_free(headers); /* no queue has it yet, and own_close() looks there */
			return refuse(why, "port %s: no memory for its queues: give DPDK more (-m)", port->name);
		}
		queue->in.broken = queue->out.broken = true;
		queue->headers = headers;
		vhost->queue[number] = queue;
	}
	return 0;
}

void own_close(struct port *port)
{
	struct vhost *vhost = port->own;

	if (vhost->queue[0] != NULL)
		rte_mempool_free(vhost->queue[0]->headers);
	for (uint16_t number = 0; number < port->spec.queues; number++) {
		if (vhost->queue[number] != NULL)
			rte_free(vhost->queue[number]->loan);
		rte_free(vhost->queue[number]);
	}
}
