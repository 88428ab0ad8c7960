/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames in and out of a guest's split rings by our own hands (--rings own): copied, or, with --dequeue zero-copy, left where they are.
 *
 * Zero copy: the mbuf refers to the guest's buffer, and the descriptor goes back to the guest when the last user of the frame has
 * freed it, in whatever order that happens. A queue's frames are all freed by the worker that polls it, or while the port is paused
 * (plane_publish() has made the workers drop them): so nothing here needs a lock.
 */
#include <stdio.h>
#include <string.h>

#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>
#include <rte_malloc.h>
#include <rte_memcpy.h>

#include "plane.h"
#include "vhost.h"

enum {
	HEADERS = 4095, /* mbufs of a port that refer to its guest's buffers: frames in flight at most */
	HEADERS_CACHE = 128,
	/*
	 * What one poll of a queue, or one send to it, may cost, whatever its guest put into its rings: the neighbours wait meanwhile. More than
	 * any burst of usual frames takes: 32 of 1518 bytes in two descriptors each. What is left is for the next time.
	 */
	VISITS_MOST = 256,
	BYTES_MOST = 64 << 10,
	USED_OF_A_LINE = RTE_CACHE_LINE_SIZE / sizeof(struct vring_used_elem),
};

/* What a chain in flight needs, by its head. */
struct loan {
	struct rte_mbuf_ext_shared_info shared;
	struct own_queue *queue;
	uint16_t head;
	bool out; /* in flight */
};

struct own_queue {
	struct vring_side in, out; /* from the guest, to the guest */
	uint16_t header;           /* length of virtio's header before each frame */
	bool mergeable;            /* a frame may take several buffers of the guest */
	uint32_t in_flight;
	struct rte_mempool *headers;
	struct loan *loan; /* by head */
};

/* ---- from the guest ---- */

/* The last user of a frame is done: its descriptor can go back. Shown to the guest at the next receive. */
static void end_loan(void *at __rte_unused, void *opaque)
{
	struct loan *loan = opaque;

	loan->out = false;
	loan->queue->in_flight--;
	vring_give(&loan->queue->in, loan->head, 0);
}

/* Appends `length` bytes to the last mbuf of a frame, and further ones as needed. */
static int append_copy(struct rte_mbuf *frame, struct rte_mbuf **last, const uint8_t *from, uint32_t length, struct rte_mempool *pool)
{
	while (length > 0) {
		uint32_t piece = RTE_MIN(length, (uint32_t)rte_pktmbuf_tailroom(*last));

		if (piece == 0) {
			struct rte_mbuf *more = rte_pktmbuf_alloc(pool);

			if (more == NULL)
				return -1;
			(*last)->next = more;
			*last = more;
			frame->nb_segs++;
			continue;
		}
		rte_memcpy(rte_pktmbuf_mtod_offset(*last, uint8_t *, (*last)->data_len), from, piece);
		(*last)->data_len += piece;
		frame->pkt_len += piece;
		from += piece;
		length -= piece;
	}
	return 0;
}

/* Copies a chain without its first `skip` bytes into an empty mbuf. */
static int copy_in(struct rte_mbuf *frame, const struct chain *chain, uint32_t skip, struct rte_mempool *pool)
{
	struct rte_mbuf *last = frame;

	for (uint32_t i = 0; i < chain->count; i++) {
		const struct part *part = &chain->part[i];
		uint32_t skipped = RTE_MIN(skip, part->length);

		skip -= skipped;
		if (append_copy(frame, &last, part->at + skipped, part->length - skipped, pool) != 0)
			return -1;
	}
	return 0;
}

static void refer(struct rte_mbuf *mbuf, const struct part *part, uint32_t skip, struct loan *loan)
{
	/* No device may read it: ports that would hand it to one copy it first. So its bus address is nobody's business. */
	rte_pktmbuf_attach_extbuf(mbuf, part->at + skip, RTE_BAD_IOVA, part->length - skip, &loan->shared);
	mbuf->data_len = part->length - skip;
}

static void begin_loan(struct own_queue *queue, uint16_t head, uint16_t references)
{
	struct loan *loan = &queue->loan[head];

	loan->shared.free_cb = end_loan;
	loan->shared.fcb_opaque = loan;
	rte_mbuf_ext_refcnt_set(&loan->shared, references);
	loan->queue = queue;
	loan->head = head;
	loan->out = true;
	queue->in_flight++;
}

/*
 * Makes `frame`, an empty mbuf without a buffer, refer to a chain. Returns false where it must be copied: the Ethernet header is
 * spread over parts, or a part is longer than an mbuf can say.
 */
static bool borrow(struct own_queue *queue, struct rte_mbuf *frame, uint16_t head, const struct chain *chain)
{
	struct rte_mbuf *more[MAX_PARTS];
	uint32_t skip = queue->header, first = 0;

	while (skip >= chain->part[first].length)
		skip -= chain->part[first++].length;
	if (chain->part[first].length - skip < HEADER_LENGTH || chain->part[first].length - skip > UINT16_MAX)
		return false;
	for (uint32_t i = first + 1; i < chain->count; i++)
		if (chain->part[i].length > UINT16_MAX)
			return false;
	if (chain->count - first > 1 && rte_pktmbuf_alloc_bulk(queue->headers, more, chain->count - first - 1) != 0)
		return false;
	begin_loan(queue, head, chain->count - first);
	refer(frame, &chain->part[first], skip, &queue->loan[head]);
	frame->pkt_len = chain->length - queue->header;
	frame->nb_segs = chain->count - first;
	for (uint32_t i = first + 1; i < chain->count; i++) {
		struct rte_mbuf *mbuf = more[i - first - 1];

		refer(mbuf, &chain->part[i], 0, &queue->loan[head]);
		frame->next = mbuf;
		frame = mbuf;
	}
	return true;
}

/* A chain that was looked at before its turn: its head, and its one part. Without an address: it is not the usual one, to be read anew. */
struct seen {
	uint16_t head;
	struct part part;
};

enum taken { TAKEN, BORROWED, REFUSED, NO_MEMORY };

/*
 * Copies the first of some chains, as long as they are usual ones: one part, into one mbuf, which is empty. Returns how many, and adds
 * their bytes to *bytes. What is written could lie anywhere for the compiler: so what it needs is in variables of its own.
 */
static __rte_always_inline uint16_t take_singles(
	struct own_queue *queue, const struct seen *seen, uint16_t count, struct rte_mbuf **frames, uint32_t *bytes)
{
	struct vring_used_elem *used = queue->in.used->ring;
	const uint16_t given = queue->in.given, mask = queue->in.size - 1, header = queue->header, room = rte_pktmbuf_tailroom(frames[0]);
	uint32_t sum = 0;
	uint16_t i;

	for (i = 0; i < count; i++) {
		const struct part *part = &seen[i].part;
		struct rte_mbuf *frame = frames[i];
		uint32_t length = part->length - header;

		/* Shorter than virtio's header, it would be longer than any room. */
		if (unlikely(part->at == NULL || length < HEADER_LENGTH || length > room))
			break;
		frame->data_len = frame->pkt_len = length;
		rte_memcpy(rte_pktmbuf_mtod(frame, uint8_t *), part->at + header, length);
		used[(uint16_t)(given + i) & mask] = (struct vring_used_elem){seen[i].head, 0};
		sum += length;
	}
	queue->in.given = given + i;
	*bytes += sum;
	return i;
}

/* Turns a chain that is not the usual one, or is not to be copied, into *frame, which is an empty mbuf, and may be another afterwards. */
static enum taken take(struct port *port, struct own_queue *queue, const struct seen *seen, struct rte_mbuf **frame, uint32_t *visits)
{
	struct vhost *vhost = port->own;
	struct chain chain;
	bool whole = true;

	if (seen->part.at != NULL) {
		chain.count = chain.visited = 1;
		chain.length = seen->part.length;
		chain.part[0] = seen->part;
	} else {
		whole = vring_chain(&queue->in, &vhost->memory, seen->head, false, &chain);
	}
	*visits += chain.visited;
	if (!whole || chain.length < (uint32_t)queue->header + HEADER_LENGTH)
		return REFUSED;
	if (plane.options.zero_copy) {
		if (borrow(queue, *frame, seen->head, &chain))
			return BORROWED;
		struct rte_mbuf *other = rte_pktmbuf_alloc(port->pool);

		if (other == NULL)
			return NO_MEMORY;
		rte_pktmbuf_free(*frame);
		*frame = other;
	}
	return copy_in(*frame, &chain, queue->header, port->pool) == 0 ? TAKEN : NO_MEMORY;
}

/* DPDK's own is a plain prefetch in a build for any x86-64. A processor that does not know the instruction takes it for none. */
static __rte_always_inline void prefetch_to_write(const void *at)
{
#ifdef RTE_ARCH_X86
	asm volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
	__builtin_prefetch(at, 1, 3);
#endif
}

/*
 * Descriptors, then buffers, are another core's latest writes: ask for all of a burst before waiting for the first. What is only read is
 * asked for as it is; what is to be written, to be owned at once, or the write would wait for the guest's core a second time.
 *
 * From the guest: virtio's header is not looked at, so its line, where it is not the frame's, stays with the guest, which writes it next.
 */
static __rte_always_inline void look_in(struct own_queue *queue, const struct guest_memory *memory, struct seen *seen, uint16_t count)
{
	struct vring_side *ring = &queue->in;
	struct guest_region near = vring_near(ring, memory);

	for (uint16_t i = 0; i < count; i++) {
		if (unlikely(!vring_single_near(ring, &near, seen[i].head, false, &seen[i].part))) {
			if (!vring_single(ring, memory, seen[i].head, false, &seen[i].part))
				seen[i].part.at = NULL;
			near = vring_near(ring, memory);
			continue;
		}
		rte_prefetch0(seen[i].part.at + queue->header);
	}
	for (uint16_t i = 0; i < count; i += USED_OF_A_LINE)
		prefetch_to_write(&ring->used->ring[(ring->given + i) & (ring->size - 1)]);
}

/* To the guest: the header, and the frame behind it, which mostly begins a line of its own. A head that is none is seen once more, in put(). */
static __rte_always_inline void look_out(struct own_queue *queue, const struct guest_memory *memory, struct seen *seen, uint16_t count)
{
	struct vring_side *ring = &queue->out;
	struct guest_region near = vring_near(ring, memory);

	for (uint16_t i = 0; i < count; i++) {
		seen[i].head = vring_entry(ring, i);
		rte_prefetch0(&ring->desc[seen[i].head & (ring->size - 1)]);
	}
	for (uint16_t i = 0; i < count; i++) {
		uint16_t head = seen[i].head;

		if (unlikely(head >= ring->size || !vring_single_near(ring, &near, head, true, &seen[i].part))) {
			if (head >= ring->size || !vring_single(ring, memory, head, true, &seen[i].part))
				seen[i].part.at = NULL;
			near = vring_near(ring, memory);
			continue;
		}
		prefetch_to_write(seen[i].part.at);
		prefetch_to_write(seen[i].part.at + queue->header);
	}
	for (uint16_t i = 0; i < count; i += USED_OF_A_LINE)
		prefetch_to_write(&ring->used->ring[(ring->given + i) & (ring->size - 1)]);
}

static uint16_t heads_waiting(struct own_queue *queue, struct seen *seen, uint16_t most)
{
	uint16_t waiting = RTE_MIN(vring_waiting(&queue->in), most);

	for (uint16_t i = 0; i < waiting; i++) {
		int head = vring_head(&queue->in, i);

		/* The same chain twice: the second would be given back under the first one's feet. */
		if (head < 0 || (plane.options.zero_copy && queue->loan[head].out)) {
			queue->in.broken = true;
			return i;
		}
		seen[i].head = head;
		rte_prefetch0(&queue->in.desc[head]);
	}
	return waiting;
}

/* A burst in which frames stay where they are. Returns how many were received; *done: chains that were taken. */
static uint16_t borrow_burst(
	struct port *port, uint16_t queue_id, const struct seen *seen, uint16_t count, struct rte_mbuf **frames, uint16_t *done)
{
	struct vhost *vhost = port->own;
	struct own_queue *queue = vhost->queue[queue_id];
	uint32_t visits = 0, bytes = 0;
	uint16_t received = 0, i;

	for (i = 0; i < count && likely(visits < VISITS_MOST && bytes < BYTES_MOST); i++) {
		enum taken taken;

		/* Twice in one burst is twice, too. */
		if (queue->loan[seen[i].head].out) {
			queue->in.broken = true;
			break;
		}
		taken = take(port, queue, &seen[i], &frames[received], &visits);
		if (taken == NO_MEMORY)
			break;
		if (likely(taken != REFUSED))
			bytes += frames[received++]->pkt_len;
		else
			port->received[queue_id].refused++;
		if (taken != BORROWED)
			vring_give(&queue->in, seen[i].head, 0);
	}
	*done = i;
	return received;
}

static uint16_t copy_burst(
	struct port *port, uint16_t queue_id, const struct seen *seen, uint16_t count, struct rte_mbuf **frames, uint16_t *done)
{
	struct vhost *vhost = port->own;
	struct own_queue *queue = vhost->queue[queue_id];
	uint32_t visits = 0, bytes = 0;
	uint16_t i = 0, received = 0;

	while (i < count && likely(visits < VISITS_MOST && bytes < BYTES_MOST)) {
		uint16_t singles = take_singles(queue, &seen[i], count - i, &frames[received], &bytes);
		enum taken taken;

		received += singles;
		i += singles;
		if (likely(i == count))
			break;
		taken = take(port, queue, &seen[i], &frames[received], &visits);
		if (taken == NO_MEMORY)
			break;
		if (taken == TAKEN)
			bytes += frames[received++]->pkt_len;
		else
			port->received[queue_id].refused++;
		vring_give(&queue->in, seen[i++].head, 0);
	}
	*done = i;
	return received;
}

uint16_t own_receive(struct port *port, uint16_t queue_id, struct rte_mbuf **frames, uint16_t most)
{
	struct vhost *vhost = port->own;
	struct own_queue *queue = vhost->queue[queue_id];
	bool zero_copy = plane.options.zero_copy;
	struct seen seen[BURST];
	uint16_t count, received, done;

	/* What was freed since the last time, and what could not be shown then. */
	vring_publish(&queue->in);
	count = heads_waiting(queue, seen, RTE_MIN(most, (uint16_t)BURST));
	if (count == 0)
		return 0;
	/* Between asking for the descriptors and reading them. */
	if (rte_pktmbuf_alloc_bulk(zero_copy ? queue->headers : port->pool, frames, count) != 0)
		return 0;
	look_in(queue, &vhost->memory, seen, count);
	received = zero_copy ? borrow_burst(port, queue_id, seen, count, frames, &done)
			     : copy_burst(port, queue_id, seen, count, frames, &done);
	if (unlikely(received < count))
		rte_pktmbuf_free_bulk(frames + received, count - received);
	/* Shown to the guest at the next receive (or arm, or detach): its core needs the lines that it would read now for the frames that it writes. */
	queue->in.taken += done;
	return received;
}

/* ---- to the guest ---- */

/* Where we are in a frame that is being copied out. */
struct cursor {
	const struct rte_mbuf *mbuf;
	uint32_t offset;
};

static uint32_t copy_part(struct cursor *cursor, uint8_t *to, uint32_t room)
{
	uint32_t copied = 0;

	while (copied < room && cursor->mbuf != NULL) {
		uint32_t piece = RTE_MIN(room - copied, cursor->mbuf->data_len - cursor->offset);

		rte_memcpy(to + copied, rte_pktmbuf_mtod_offset(cursor->mbuf, const uint8_t *, cursor->offset), piece);
		copied += piece;
		cursor->offset += piece;
		if (cursor->offset == cursor->mbuf->data_len)
			*cursor = (struct cursor){cursor->mbuf->next, 0};
	}
	return copied;
}

/* Copies on into a chain behind its first `skip` bytes. Returns how many bytes. */
static uint32_t copy_out(struct cursor *cursor, const struct chain *chain, uint32_t skip)
{
	uint32_t copied = 0;

	for (uint32_t i = 0; i < chain->count && cursor->mbuf != NULL; i++) {
		const struct part *part = &chain->part[i];
		uint32_t skipped = RTE_MIN(skip, part->length);

		skip -= skipped;
		copied += copy_part(cursor, part->at + skipped, part->length - skipped);
	}
	return copied;
}

/* virtio's header: no offload, and how many of the guest's buffers the frame took. It may be spread over parts. */
static void write_header(const struct chain *chain, uint16_t length, uint16_t buffers)
{
	struct virtio_net_hdr_mrg_rxbuf header = {.num_buffers = rte_cpu_to_le_16(buffers)};
	uint32_t done = 0;

	for (uint32_t i = 0; done < length; i++) {
		uint32_t piece = RTE_MIN(length - done, chain->part[i].length);

		memcpy(chain->part[i].at, (const uint8_t *)&header + done, piece);
		done += piece;
	}
}

enum { NO_ROOM = -1, TOO_LONG = 0 };

/*
 * Puts the first of some frames into the chains that were seen, as long as both are usual: one mbuf, and one part that is long enough.
 * Returns how many, and adds their bytes to *bytes.
 */
static __rte_always_inline uint16_t put_singles(
	struct own_queue *queue, const struct seen *seen, uint16_t count, struct rte_mbuf *const *frames, uint64_t *bytes)
{
	static const struct virtio_net_hdr_mrg_rxbuf header = {.num_buffers = RTE_LE16(1)};
	struct vring_used_elem *used = queue->out.used->ring;
	const uint16_t given = queue->out.given, mask = queue->out.size - 1, header_length = queue->header;
	uint64_t sum = 0;
	uint16_t i;

	for (i = 0; i < count; i++) {
		const struct part *part = &seen[i].part;
		const struct rte_mbuf *frame = frames[i];
		uint16_t length = frame->data_len;

		if (unlikely(part->at == NULL || frame->nb_segs > 1 || part->length < (uint32_t)header_length + length ||
			     part->length < sizeof(header)))
			break;
		/* The longer header, whose end a shorter one's frame covers. */
		memcpy(part->at, &header, sizeof(header));
		rte_memcpy(part->at + header_length, rte_pktmbuf_mtod(frame, const uint8_t *), length);
		used[(uint16_t)(given + i) & mask] = (struct vring_used_elem){seen[i].head, (uint32_t)header_length + length};
		sum += length;
	}
	queue->out.given = given + i;
	queue->out.taken += i;
	*bytes += sum;
	return i;
}

/* Puts a frame into the guest's buffers. Returns how many it took; NO_ROOM, or TOO_LONG for any room. *visits: of descriptors so far. */
static int put(struct own_queue *queue, const struct guest_memory *memory, const struct rte_mbuf *frame, uint16_t waiting, uint32_t *visits)
{
	struct vring_side *ring = &queue->out;
	struct cursor cursor = {frame, 0};
	struct chain first, more;
	uint16_t heads[MAX_PARTS];
	uint32_t lengths[MAX_PARTS], of_frame = 0;
	int count = 0;

	while (cursor.mbuf != NULL) {
		struct chain *chain = count == 0 ? &first : &more;
		uint32_t skip = count == 0 ? queue->header : 0;
		int head;

		if (count == waiting)
			return NO_ROOM;
		/* A guest may cut its buffers as small as it likes. A frame for which that many are needed is too long for them. */
		if (count == MAX_PARTS || of_frame >= MAX_PARTS || (count == 1 && !queue->mergeable))
			return TOO_LONG;
		head = vring_head(ring, count);
		if (head < 0 || !vring_chain(ring, memory, head, true, chain) || chain->length < skip) {
			ring->broken = true;
			return NO_ROOM;
		}
		of_frame += chain->visited;
		*visits += chain->visited;
		heads[count] = head;
		lengths[count++] = skip + copy_out(&cursor, chain, skip);
	}
	write_header(&first, queue->header, count);
	for (int i = 0; i < count; i++)
		vring_give(ring, heads[i], lengths[i]);
	ring->taken += count;
	return count;
}

/* Frees frames, most of which are in one mbuf each, and of one pool: it gets them back at once. */
static __rte_always_inline void free_sent(struct rte_mbuf **frames, uint16_t count)
{
	struct rte_mempool *pool = count > 0 ? frames[0]->pool : NULL;
	struct rte_mbuf *free[BURST];
	uint16_t freed = 0;

	for (uint16_t i = 0; i < count; i++) {
		struct rte_mbuf *frame = frames[i];

		if (unlikely(frame->nb_segs > 1 || frame->pool != pool))
			rte_pktmbuf_free(frame);
		else if (likely((frame = rte_pktmbuf_prefree_seg(frame)) != NULL))
			free[freed++] = frame;
	}
	if (freed > 0)
		rte_mempool_put_bulk(pool, (void **)free, freed);
}

uint16_t own_send(struct port *port, uint16_t queue_id, struct rte_mbuf **frames, uint16_t count, struct send_counters *sent)
{
	struct vhost *vhost = port->own;
	struct own_queue *queue = vhost->queue[queue_id];
	uint16_t waiting = vring_waiting(&queue->out), began = queue->out.taken, ahead = RTE_MIN(waiting, count), taken = 0;
	struct seen seen[BURST];
	uint32_t visits = 0;

	look_out(queue, &vhost->memory, seen, ahead);
	while (taken < count && likely(visits < VISITS_MOST)) {
		/* A frame before may have taken several chains. */
		uint16_t at = queue->out.taken - began, singles = 0;
		int took;

		if (likely(at < ahead))
			singles = put_singles(queue, &seen[at], RTE_MIN(ahead - at, count - taken), &frames[taken], &sent->bytes);
		taken += singles;
		waiting -= singles;
		sent->packets += singles;
		if (likely(taken == count))
			break;
		took = put(queue, &vhost->memory, frames[taken], waiting, &visits);
		if (took == NO_ROOM)
			break;
		if (took == TOO_LONG) {
			sent->too_long++;
		} else {
			waiting -= took;
			sent->packets++;
			sent->bytes += frames[taken]->pkt_len;
		}
		taken++;
	}
	vring_publish(&queue->out);
	free_sent(frames, taken);
	return taken;
}

bool own_arm(struct port *port, uint16_t queue_id, bool on)
{
	struct vhost *vhost = port->own;

	vring_publish(&vhost->queue[queue_id]->in);
	return vring_arm(&vhost->queue[queue_id]->in, on) && on;
}

int own_wake_fd(struct port *port, uint16_t queue_id)
{
	struct vhost *vhost = port->own;

	return vhost->queue[queue_id]->in.kick_fd;
}

/* ---- set-up ---- */

static int attach_ring(int vid, uint16_t number, uint64_t features, const struct guest_memory *memory, struct vring_side *ring)
{
	struct rte_vhost_vring found;

	memset(ring, 0, sizeof(*ring));
	ring->broken = true;
	ring->call_fd = ring->kick_fd = -1;
	if (rte_vhost_get_vhost_vring(vid, number, &found) != 0 || found.desc == NULL || found.avail == NULL || found.used == NULL)
		return 0; /* not set up: nothing is taken from it */
	if (found.size == 0 || (found.size & (found.size - 1)) != 0)
		return -1;
	/* As virtio 1.2, 2.7 has it. librte_vhost takes any address. */
	if ((uintptr_t)found.desc % 16 != 0 || (uintptr_t)found.avail % 2 != 0 || (uintptr_t)found.used % 4 != 0)
		return -1;
	ring->desc = found.desc;
	ring->avail = found.avail;
	ring->used = found.used;
	ring->size = found.size;
	ring->call_fd = found.callfd;
	ring->kick_fd = found.kickfd;
	ring->event_idx = features & (1ULL << VIRTIO_RING_F_EVENT_IDX);
	ring->indirect = features & (1ULL << VIRTIO_RING_F_INDIRECT_DESC);
	/* librte_vhost looks at a ring's parts when it is told their addresses; its size may have changed since. */
	if (!vring_fits(ring, memory))
		return -1;
	if (rte_vhost_get_vring_base(vid, number, &ring->taken, &ring->given) != 0)
		return -1;
	ring->published = ring->given;
	ring->broken = false;
	return 0;
}

static int attach_queue(int vid, uint16_t number, uint64_t features, const struct guest_memory *memory, struct own_queue *queue)
{
	const uint64_t long_header = 1ULL << VIRTIO_NET_F_MRG_RXBUF | 1ULL << VIRTIO_F_VERSION_1;

	queue->mergeable = features & (1ULL << VIRTIO_NET_F_MRG_RXBUF);
	queue->header = features & long_header ? sizeof(struct virtio_net_hdr_mrg_rxbuf) : sizeof(struct virtio_net_hdr);
	if (attach_ring(vid, from_guest(number), features, memory, &queue->in) != 0 ||
		attach_ring(vid, to_guest(number), features, memory, &queue->out) != 0)
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
