/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames in and out of a guest's rings by our own hands (--rings own): copied, or, with --dequeue zero-copy, left where they are.
 *
 * Split and packed rings go the same way: what is done for each usual frame has `packed` as a constant, and is compiled twice.
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

#include "own_rings.h"
#include "plane.h"
#include "vhost.h"

enum {
	/*
	 * What one poll of a queue, or one send to it, may cost, whatever its guest put into its rings: the neighbours wait meanwhile. More than
	 * any burst of usual frames takes: 32 of 1518 bytes in two descriptors each. What is left is for the next time.
	 */
	VISITS_MOST = 256,
	BYTES_MOST = 64 << 10,
	DESCRIPTORS_OF_A_LINE = RTE_CACHE_LINE_SIZE / sizeof(struct vring_desc),
	USED_OF_A_LINE = RTE_CACHE_LINE_SIZE / sizeof(struct vring_used_elem),
	PACKED_OF_A_LINE = RTE_CACHE_LINE_SIZE / sizeof(struct vring_packed_desc),
};

/* Notes that a chain is done with, `length` bytes written. The guest sees it when it is published. */
static inline void give(struct vring_side *ring, uint16_t id, uint16_t slots, uint32_t length)
{
	if (ring->is_packed)
		packed_give(ring, id, slots, length);
	else
		vring_give(ring, id, length);
}

/* Reads a chain that was seen. Returns false where it is to be refused. */
static bool read_chain(const struct vring_side *ring, const struct guest_memory *memory, const struct seen *seen, struct chain *chain)
{
	return ring->is_packed ? packed_chain(ring, memory, seen, chain) : vring_chain(ring, memory, seen->id, ring->writes, chain);
}

/* ---- from the guest ---- */

/* Where usual chains are given back, in variables of its own: what is written could lie anywhere for the compiler. */
struct used {
	union {
		struct vring_used_elem *split;
		struct vring_packed_desc *packed;
	}; /* the first of them */
	uint16_t room; /* how many before the ring's end */
	uint64_t flags;
	bool first; /* packed: the first one's flags are left */
};

static __rte_always_inline struct used used_of(const struct vring_side *ring, const bool writes, const bool packed)
{
	uint16_t slot = packed ? packed_slot(ring->given) : ring->given & (ring->size - 1);

	if (!packed)
		return (struct used){.split = &ring->used->ring[slot], .room = ring->size - slot};
	return (struct used){
		.packed = &ring->packed[slot],
		.flags = packed_used(writes, ring->given),
		.first = ring->given == ring->published,
		.room = ring->size - slot,
	};
}

/* Gives back a chain of one descriptor, the `i`-th of them. */
static __rte_always_inline void use(const struct used *used, uint16_t i, uint16_t id, uint32_t length, const bool packed)
{
	if (!packed)
		used->split[i] = (struct vring_used_elem){id, length};
	else if (unlikely(i == 0 && used->first))
		packed_write_first(used->packed, id, length);
	else
		packed_write(&used->packed[i], used->flags, id, length);
}

/* So many chains of one descriptor were given back. */
static __rte_always_inline void end_use(struct vring_side *ring, uint16_t count, const bool packed)
{
	ring->given = packed ? packed_on(ring->size, ring->given, count) : ring->given + count;
}

/* The last user of a frame is done: its descriptor can go back. Shown to the guest at the next receive. */
static void end_loan(void *at __rte_unused, void *opaque)
{
	struct loan *loan = opaque;

	loan->out = false;
	loan->queue->in_flight--;
	give(&loan->queue->in, loan->id, loan->slots, 0);
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

static void begin_loan(struct own_queue *queue, const struct seen *seen, uint16_t references)
{
	struct loan *loan = &queue->loan[seen->id];

	loan->shared.free_cb = end_loan;
	loan->shared.fcb_opaque = loan;
	rte_mbuf_ext_refcnt_set(&loan->shared, references);
	loan->queue = queue;
	loan->id = seen->id;
	loan->slots = seen->slots;
	loan->out = true;
	queue->in_flight++;
}

/*
 * Makes `frame`, an empty mbuf without a buffer, refer to a chain. Returns false where it must be copied: the Ethernet header is
 * spread over parts, or a part is longer than an mbuf can say.
 */
static bool borrow(struct own_queue *queue, struct rte_mbuf *frame, const struct seen *seen, const struct chain *chain)
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
	begin_loan(queue, seen, chain->count - first);
	refer(frame, &chain->part[first], skip, &queue->loan[seen->id]);
	frame->pkt_len = chain->length - queue->header;
	frame->nb_segs = chain->count - first;
	for (uint32_t i = first + 1; i < chain->count; i++) {
		struct rte_mbuf *mbuf = more[i - first - 1];

		refer(mbuf, &chain->part[i], 0, &queue->loan[seen->id]);
		frame->next = mbuf;
		frame = mbuf;
	}
	return true;
}

enum taken { TAKEN, BORROWED, REFUSED, NO_MEMORY };

/* A usual frame. rte_memcpy() asks much before it copies the shortest ones, of which there are the most in a second. */
static __rte_always_inline void copy_frame(uint8_t *to, const uint8_t *from, size_t length)
{
	if (likely(length >= 32 && length <= 64)) {
		rte_mov32(to, from);
		rte_mov32(to + length - 32, from + length - 32);
	} else {
		rte_memcpy(to, from, length);
	}
}

/*
 * Copies the first of some chains, as long as they are usual ones: one part, into one mbuf, which is as it was freed. Returns how many, and
 * adds their bytes to *bytes.
 */
static __rte_always_inline uint16_t take_singles(struct own_queue *queue, const struct seen *seen, uint16_t count, struct rte_mbuf **frames,
	uint16_t room, uint32_t *bytes, const bool packed)
{
	const struct used used = used_of(&queue->in, false, packed);
	const uint16_t header = queue->header;
	uint32_t sum = 0;
	uint16_t i;

	count = RTE_MIN(count, used.room);

	for (i = 0; i < count; i++) {
		const struct part *part = &seen[i].part;
		struct rte_mbuf *frame = frames[i];
		uint32_t length = part->length - header;

		/* Shorter than virtio's header, as one that is not usual, it would be longer than any room. */
		if (unlikely(length < HEADER_LENGTH || length > room))
			break;
		/* What else is read of it is as it must be in an mbuf that was freed, or is read where a flag says so. */
		frame->data_off = RTE_PKTMBUF_HEADROOM;
		frame->ol_flags = 0;
		frame->data_len = frame->pkt_len = length;
		copy_frame(rte_pktmbuf_mtod(frame, uint8_t *), part->at + header, length);
		if (!packed)
			use(&used, i, seen[i].id, 0, false);
		sum += length;
	}
	/* Only now: the guest polls the line of the first of these, and would take it away again between any two copies. */
	for (uint16_t done = 0; packed && done < i; done++)
		use(&used, done, seen[done].id, 0, true);
	end_use(&queue->in, i, packed);
	*bytes += sum;
	return i;
}

/*
 * Turns a chain that is not the usual one, or is not to be copied, into *frame, which is as it was freed (one that is to borrow: empty), and
 * may be another afterwards.
 */
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
		whole = read_chain(&queue->in, &vhost->memory, seen, &chain);
	}
	*visits += chain.visited;
	if (!whole || chain.length < (uint32_t)queue->header + HEADER_LENGTH)
		return REFUSED;
	if (plane.options.zero_copy) {
		if (borrow(queue, *frame, seen, &chain))
			return BORROWED;
		struct rte_mbuf *other = rte_pktmbuf_alloc(port->pool);

		if (other == NULL)
			return NO_MEMORY;
		rte_pktmbuf_free(*frame);
		*frame = other;
	} else {
		rte_pktmbuf_reset(*frame);
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
		if (unlikely(!vring_single_near(ring, &near, seen[i].id, false, &seen[i].part))) {
			if (!vring_single(ring, memory, seen[i].id, false, &seen[i].part))
				seen[i].part = (struct part){0};
			near = vring_near(ring, memory);
			continue;
		}
		rte_prefetch0(seen[i].part.at + queue->header);
	}
	for (uint16_t i = 0; i < count; i += USED_OF_A_LINE)
		prefetch_to_write(&ring->used->ring[(ring->given + i) & (ring->size - 1)]);
}

/*
 * To the guest: the frame, which mostly begins a line of its own, to write; then the header before it, to read: it mostly says already what
 * we would write (see put_singles), and its line then stays with both cores. A head that is none is seen once more, in put().
 */
static __rte_always_inline void ask_for_room(const struct own_queue *queue, const struct part *part)
{
	prefetch_to_write(part->at + queue->header);
	rte_prefetch0(part->at);
}

/*
 * The next burst of a split ring, where all of it is known to wait: asked for while this one is copied, or the next would begin with two
 * waits, one after the other, for the guest's core: for the heads, and for the descriptors that they name.
 */
static __rte_always_inline void ask_for_heads(const struct vring_side *ring, uint16_t ahead)
{
	for (uint16_t i = 0; i < 2; i++)
		rte_prefetch0(&ring->avail->ring[(uint16_t)(ring->taken + ahead + i * (BURST - 1)) & (ring->size - 1)]);
}

/*
 * Asking for both gained a seventh on an Intel Xeon, where the heads alone were not tried. On two AMD EPYCs it gained nothing, and on one of
 * them the descriptors cost 5 % (docs/dataplane.md).
 */
static bool descriptors_too;

RTE_INIT(know_the_processor)
{
#ifdef RTE_ARCH_X86
	__builtin_cpu_init();
	descriptors_too = __builtin_cpu_is("intel");
#endif
}

/* Of each line of descriptors one: a guest uses them in order, mostly. */
static __rte_always_inline void ask_for_descriptors(const struct vring_side *ring)
{
	for (uint16_t i = 0; descriptors_too && i < BURST; i += DESCRIPTORS_OF_A_LINE)
		rte_prefetch0(&ring->desc[vring_entry(ring, i) & (ring->size - 1)]);
}

static __rte_always_inline void look_out(struct own_queue *queue, const struct guest_memory *memory, struct seen *seen, uint16_t count)
{
	struct vring_side *ring = &queue->out;
	struct guest_region near = vring_near(ring, memory);

	for (uint16_t i = 0; i < count; i++) {
		seen[i].id = vring_entry(ring, i);
		rte_prefetch0(&ring->desc[seen[i].id & (ring->size - 1)]);
	}
	for (uint16_t i = 0; i < count; i++) {
		uint16_t head = seen[i].id;

		if (unlikely(head >= ring->size || !vring_single_near(ring, &near, head, true, &seen[i].part))) {
			if (head >= ring->size || !vring_single(ring, memory, head, true, &seen[i].part))
				seen[i].part = (struct part){0};
			near = vring_near(ring, memory);
			continue;
		}
		ask_for_room(queue, &seen[i].part);
	}
	for (uint16_t i = 0; i < count; i += USED_OF_A_LINE)
		prefetch_to_write(&ring->used->ring[(ring->given + i) & (ring->size - 1)]);
}

/*
 * The same of a packed ring, in either direction: what waits there is what is read. A descriptor is given back where it, or one before it,
 * lies, so its line is owned at once; not before the first one is there: while nothing is, the line stays with the guest. Returns how many.
 */
static __rte_always_inline uint16_t look_packed(struct own_queue *queue, struct vring_side *ring, const struct guest_memory *memory,
	struct seen *seen, uint16_t most, const bool out)
{
	struct guest_region near = vring_near(ring, memory);
	const uint16_t size = ring->size, enough = RTE_MIN((uint16_t)VISITS_MOST, size);
	uint16_t place = ring->taken, looked = 0, i;

	if (ring->broken || !packed_waits(ring, place))
		return 0;
	/* However a guest turns the flags while we look: no ring holds more than its size. */
	most = RTE_MIN(most, size);
	for (i = 0; i < most; i += PACKED_OF_A_LINE)
		prefetch_to_write(&ring->packed[packed_slot(packed_on(size, place, i))]);
	for (i = 0; i < most && looked < enough;) {
		uint16_t run = RTE_MIN((uint16_t)(most - i), (uint16_t)(size - packed_slot(place))), to;

		run = RTE_MIN(run, (uint16_t)(enough - looked));
		to = i + packed_singles(ring, &near, place, run, &seen[i]);
		place = packed_on(size, place, to - i);
		looked += to - i;
		for (; i < to; i++) {
			if (out)
				ask_for_room(queue, &seen[i].part);
			else
				rte_prefetch0(seen[i].part.at + queue->header);
		}
		if (likely(i == most) || looked == enough || !packed_look(ring, place, size - looked, &seen[i]))
			break;
		/* Another one, or the first behind the ring's end. */
		packed_single(ring, memory, &seen[i]);
		near = vring_near(ring, memory);
		place = packed_on(size, place, seen[i].slots);
		looked += seen[i++].slots;
	}
	return i;
}

/* Whether a chain is not on loan. The same one twice: the second would be given back under the first one's feet. */
static bool may_be_lent(struct own_queue *queue, const struct seen *seen)
{
	if (seen->id < queue->in.size && !queue->loan[seen->id].out)
		return true;
	queue->in.broken = true;
	return false;
}

/* *next: whether the next burst is known to wait, too. */
static uint16_t heads_waiting(struct own_queue *queue, struct seen *seen, uint16_t most, bool *next)
{
	uint16_t known = vring_waiting_for(&queue->in, most + BURST), waiting = RTE_MIN(known, most);

	*next = known >= waiting + BURST;
	if (*next)
		ask_for_heads(&queue->in, waiting);

	for (uint16_t i = 0; i < waiting; i++) {
		int head = vring_head(&queue->in, i);

		if (head < 0)
			return i;
		seen[i].id = head;
		if (plane.options.zero_copy) {
			seen[i].slots = 1;
			if (!may_be_lent(queue, &seen[i]))
				return i;
		}
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
		if (!may_be_lent(queue, &seen[i]))
			break;
		taken = take(port, queue, &seen[i], &frames[received], &visits);
		if (taken == NO_MEMORY)
			break;
		if (likely(taken != REFUSED))
			bytes += frames[received++]->pkt_len;
		else
			port->received[queue_id].refused++;
		if (taken != BORROWED)
			give(&queue->in, seen[i].id, seen[i].slots, 0);
	}
	port->received[queue_id].bytes += bytes;
	*done = i;
	return received;
}

static __rte_always_inline uint16_t copy_burst(struct port *port, uint16_t queue_id, const struct seen *seen, uint16_t count,
	struct rte_mbuf **frames, uint16_t *done, const bool packed)
{
	struct vhost *vhost = port->own;
	struct own_queue *queue = vhost->queue[queue_id];
	const uint16_t room = rte_pktmbuf_data_room_size(port->pool) - RTE_PKTMBUF_HEADROOM;
	uint32_t visits = 0, bytes = 0;
	uint16_t i = 0, received = 0;

	while (i < count && likely(visits < VISITS_MOST && bytes < BYTES_MOST)) {
		uint16_t singles = take_singles(queue, &seen[i], count - i, &frames[received], room, &bytes, packed);
		enum taken taken;

		received += singles;
		i += singles;
		/* All of them, or up to the ring's end, or to one that is not usual. */
		if (singles > 0)
			continue;
		taken = take(port, queue, &seen[i], &frames[received], &visits);
		if (taken == NO_MEMORY)
			break;
		if (taken == TAKEN)
			bytes += frames[received++]->pkt_len;
		else
			port->received[queue_id].refused++;
		give(&queue->in, seen[i].id, seen[i].slots, 0);
		i++;
	}
	port->received[queue_id].bytes += bytes;
	*done = i;
	return received;
}

/* The mbufs of a burst: those that are to borrow are empty, others as they were freed. */
static __rte_always_inline bool make_room(struct port *port, struct own_queue *queue, struct rte_mbuf **frames, uint16_t count)
{
	if (plane.options.zero_copy)
		return rte_pktmbuf_alloc_bulk(queue->headers, frames, count) == 0;
	return rte_mempool_get_bulk(port->pool, (void **)frames, count) == 0;
}

static __rte_always_inline uint16_t receive_burst(
	struct port *port, uint16_t queue_id, struct rte_mbuf **frames, uint16_t most, const bool packed)
{
	struct vhost *vhost = port->own;
	struct own_queue *queue = vhost->queue[queue_id];
	bool zero_copy = plane.options.zero_copy;
	struct seen seen[BURST];
	uint16_t count, received, done;
	bool next = false;

	/* What was freed since the last time, and what could not be shown then. */
	vring_publish(&queue->in);
	count = packed ? look_packed(queue, &queue->in, &vhost->memory, seen, most, false) : heads_waiting(queue, seen, most, &next);
	if (count == 0)
		return 0;
	/* Of a split ring: between asking for the descriptors and reading them. */
	if (!make_room(port, queue, frames, count))
		return 0;
	if (!packed)
		look_in(queue, &vhost->memory, seen, count);
	received = zero_copy ? borrow_burst(port, queue_id, seen, count, frames, &done)
			     : copy_burst(port, queue_id, seen, count, frames, &done, packed);
	if (unlikely(received < count))
		rte_pktmbuf_free_bulk(frames + received, count - received);
	/* Shown to the guest at the next receive (or arm, or detach): its core needs the lines that it would read now for the frames that it writes. */
	if (!packed)
		queue->in.taken += done;
	else if (likely(done > 0))
		queue->in.taken = packed_on(queue->in.size, seen[done - 1].place, seen[done - 1].slots);
	if (next)
		ask_for_descriptors(&queue->in);
	return received;
}

uint16_t own_receive(struct port *port, uint16_t queue_id, struct rte_mbuf **frames, uint16_t most)
{
	const struct vhost *vhost = port->own;

	most = RTE_MIN(most, (uint16_t)BURST);
	return vhost->queue[queue_id]->in.is_packed ? receive_burst(port, queue_id, frames, most, true)
						    : receive_burst(port, queue_id, frames, most, false);
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
static __rte_always_inline uint16_t put_singles(struct own_queue *queue, const struct seen *seen, uint16_t count,
	struct rte_mbuf *const *frames, uint64_t *bytes, const bool packed)
{
	static const struct virtio_net_hdr_mrg_rxbuf header = {.num_buffers = RTE_LE16(1)};
	const struct used used = used_of(&queue->out, true, packed);
	const uint16_t header_length = queue->header;
	uint64_t sum = 0;
	uint16_t i;

	count = RTE_MIN(count, used.room);

	for (i = 0; i < count; i++) {
		const struct part *part = &seen[i].part;
		const struct rte_mbuf *frame = frames[i];
		uint16_t length = frame->data_len;

		/* That one is not usual shows by its length, too. */
		if (unlikely(frame->nb_segs > 1 || part->length < (uint32_t)header_length + length))
			break;
		/*
		 * The longer header, whose end a shorter one's frame covers: a frame is longer than the difference. Most buffers come back with the
		 * one that we wrote when they were here last.
		 */
		if (unlikely(memcmp(part->at, &header, sizeof(header)) != 0))
			memcpy(part->at, &header, sizeof(header));
		copy_frame(part->at + header_length, rte_pktmbuf_mtod(frame, const uint8_t *), length);
		if (!packed)
			use(&used, i, seen[i].id, (uint32_t)header_length + length, false);
		sum += length;
	}
	/* As in take_singles(). */
	for (uint16_t done = 0; packed && done < i; done++)
		use(&used, done, seen[done].id, (uint32_t)header_length + frames[done]->data_len, true);
	end_use(&queue->out, i, packed);
	queue->out.taken = packed ? packed_on(queue->out.size, queue->out.taken, i) : queue->out.taken + i;
	*bytes += sum;
	return i;
}

/* Where a frame is put: behind its first `chains`, of `slots` descriptors, of a ring that has `waiting` (of a packed one nobody knows). */
struct ahead {
	uint16_t chains, slots, waiting;
};

static bool waits_ahead(const struct vring_side *ring, const struct ahead *ahead)
{
	if (!ring->is_packed)
		return ahead->chains < ahead->waiting;
	return !ring->broken && ahead->slots < ring->size && packed_waits(ring, packed_on(ring->size, ring->taken, ahead->slots));
}

/* The chain that waits there. False, and the ring is broken, where there is none. */
static bool look_ahead(struct vring_side *ring, const struct ahead *ahead, struct seen *seen)
{
	int head;

	if (ring->is_packed)
		return packed_look(ring, packed_on(ring->size, ring->taken, ahead->slots), ring->size - ahead->slots, seen);
	head = vring_head(ring, ahead->chains);
	*seen = (struct seen){.id = head};
	return head >= 0;
}

/* Puts a frame into the guest's buffers. Returns how many it took; NO_ROOM, or TOO_LONG for any room. *visits: of descriptors so far. */
static int put(struct own_queue *queue, const struct guest_memory *memory, const struct rte_mbuf *frame, uint16_t waiting, uint32_t *visits)
{
	struct vring_side *ring = &queue->out;
	struct ahead ahead = {.waiting = waiting};
	struct cursor cursor = {frame, 0};
	struct chain first, more;
	struct seen seen[MAX_PARTS];
	uint32_t lengths[MAX_PARTS], of_frame = 0;

	while (cursor.mbuf != NULL) {
		uint16_t count = ahead.chains;
		struct chain *chain = count == 0 ? &first : &more;
		uint32_t skip = count == 0 ? queue->header : 0;

		if (!waits_ahead(ring, &ahead))
			return NO_ROOM;
		/* A guest may cut its buffers as small as it likes. A frame for which that many are needed is too long for them. */
		if (count == MAX_PARTS || of_frame >= MAX_PARTS || (count == 1 && !queue->mergeable))
			return TOO_LONG;
		if (!look_ahead(ring, &ahead, &seen[count]) || !read_chain(ring, memory, &seen[count], chain) || chain->length < skip) {
			ring->broken = true;
			return NO_ROOM;
		}
		of_frame += chain->visited;
		/* A packed one's are read twice. */
		*visits += chain->visited + seen[count].slots;
		ahead.slots += seen[count].slots;
		lengths[count] = skip + copy_out(&cursor, chain, skip);
		ahead.chains++;
	}
	write_header(&first, queue->header, ahead.chains);
	for (uint16_t i = 0; i < ahead.chains; i++)
		give(ring, seen[i].id, seen[i].slots, lengths[i]);
	ring->taken = ring->is_packed ? packed_on(ring->size, ring->taken, ahead.slots) : ring->taken + ahead.chains;
	return ahead.chains;
}

/* Frees frames that are others' too, or lie in a guest's memory, in several mbufs, or in those of another pool. */
static __rte_always_inline void free_others(struct rte_mbuf **frames, uint16_t count, struct rte_mempool *pool)
{
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

/* Frees frames. Most are nobody else's, in one mbuf each with a buffer of its own, and of one pool, which gets them back as they are. */
static __rte_always_inline void free_sent(struct rte_mbuf **frames, uint16_t count)
{
	struct rte_mempool *pool = count > 0 ? frames[0]->pool : NULL;
	uint16_t plain = 0;

	while (plain < count && frames[plain]->pool == pool && frames[plain]->nb_segs == 1 && rte_mbuf_refcnt_read(frames[plain]) == 1 &&
		RTE_MBUF_DIRECT(frames[plain]))
		plain++;
	if (plain > 0)
		rte_mempool_put_bulk(pool, (void **)frames, plain);
	if (unlikely(plain < count))
		free_others(frames + plain, count - plain, pool);
}

static __rte_always_inline uint16_t send_burst(
	struct port *port, uint16_t queue_id, struct rte_mbuf **frames, uint16_t count, struct send_counters *sent, const bool packed)
{
	struct vhost *vhost = port->own;
	struct own_queue *queue = vhost->queue[queue_id];
	struct seen seen[BURST];
	uint16_t ahead, waiting = 0, at = 0, taken = 0;
	uint32_t visits = 0;
	bool next = false;

	if (packed) {
		ahead = look_packed(queue, &queue->out, &vhost->memory, seen, count, true);
	} else {
		waiting = vring_waiting_for(&queue->out, count + BURST);
		ahead = RTE_MIN(waiting, count);
		next = waiting >= ahead + BURST;
		if (next)
			ask_for_heads(&queue->out, ahead);
		look_out(queue, &vhost->memory, seen, ahead);
	}
	while (taken < count && likely(visits < VISITS_MOST)) {
		uint16_t singles = 0;
		int took;

		/* A frame before may have taken several chains. */
		if (likely(at < ahead))
			singles = put_singles(queue, &seen[at], RTE_MIN(ahead - at, count - taken), &frames[taken], &sent->bytes, packed);
		at += singles;
		taken += singles;
		sent->packets += singles;
		/* All of them, or up to the ring's end, or to a frame or a chain that is not usual. */
		if (singles > 0)
			continue;
		took = put(queue, &vhost->memory, frames[taken], packed ? 0 : vring_waiting_for(&queue->out, MAX_PARTS), &visits);
		if (took == NO_ROOM)
			break;
		if (took == TOO_LONG) {
			sent->too_long++;
		} else {
			at += took;
			sent->packets++;
			sent->bytes += frames[taken]->pkt_len;
		}
		taken++;
	}
	if (next)
		ask_for_descriptors(&queue->out);
	vring_publish(&queue->out);
	free_sent(frames, taken);
	return taken;
}

uint16_t own_send(struct port *port, uint16_t queue_id, struct rte_mbuf **frames, uint16_t count, struct send_counters *sent)
{
	const struct vhost *vhost = port->own;

	return vhost->queue[queue_id]->out.is_packed ? send_burst(port, queue_id, frames, count, sent, true)
						     : send_burst(port, queue_id, frames, count, sent, false);
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
