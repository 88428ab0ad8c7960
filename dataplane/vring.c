/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vring.h"

#include <stdatomic.h>
#include <stddef.h>

#include "interrupt.h"
#include "packed.h"

#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile __typeof__(x) *)&(x) = (value))

uint16_t vring_waiting(struct vring_side *ring)
{
	uint16_t waiting;

	if (ring->broken)
		return 0;
	if (ring->is_packed)
		return packed_waits(ring, ring->taken);
	waiting = __atomic_load_n(&ring->avail->idx, __ATOMIC_ACQUIRE) - ring->taken;
	if (waiting > ring->size) {
		ring->broken = true;
		return 0;
	}
	ring->known = ring->taken + waiting;
	return waiting;
}

bool vring_single(struct vring_side *ring, const struct guest_memory *memory, uint16_t head, bool writable, struct part *part)
{
	for (uint32_t i = 0; i < memory->count; i++)
		if (vring_single_near(ring, &memory->region[i], head, writable, part)) {
			ring->near = i;
			return true;
		}
	return false;
}

bool vring_append(struct chain *chain, const struct guest_memory *memory, uint64_t guest, uint32_t length)
{
	if (length > MAX_FRAME || chain->length + length > MAX_FRAME)
		return false;
	chain->length += length;
	while (length > 0) {
		uint64_t piece = length;
		uint8_t *at = guest_at(memory, guest, &piece);

		if (at == NULL || chain->count == MAX_PARTS)
			return false;
		chain->part[chain->count++] = (struct part){at, piece};
		guest += piece;
		length -= piece;
	}
	return true;
}

/*
 * Follows descriptors of a table with `size` entries from `at` on. No more than MAX_PARTS: what a chain of many empty parts, or a loop,
 * would cost, the neighbours would pay.
 */
static bool follow(
	const struct vring_desc *table, uint32_t size, uint32_t at, const struct guest_memory *memory, bool writable, struct chain *chain)
{
	while (chain->visited < MAX_PARTS) {
		struct vring_desc desc = vring_fetch(&table[at]);

		chain->visited++;
		/* A table within a table is forbidden, and so is a part in the other direction. */
		if (desc.flags & VRING_DESC_F_INDIRECT || !!(desc.flags & VRING_DESC_F_WRITE) != writable)
			return false;
		if (!vring_append(chain, memory, desc.addr, desc.len))
			return false;
		if (!(desc.flags & VRING_DESC_F_NEXT))
			return true;
		at = desc.next;
		if (at >= size)
			return false;
	}
	return false;
}

/* An indirect table must lie in one piece of our memory: a table across two regions is refused. */
static bool follow_indirect(struct vring_desc desc, const struct guest_memory *memory, bool writable, struct chain *chain)
{
	uint64_t length = desc.len, whole = length;
	const uint8_t *table = guest_at(memory, desc.addr, &length);

	if (table == NULL || length != whole || whole == 0 || whole % sizeof(desc) != 0 || whole / sizeof(desc) > UINT16_MAX)
		return false;
	return follow((const struct vring_desc *)table, whole / sizeof(desc), 0, memory, writable, chain);
}

bool vring_chain(const struct vring_side *ring, const struct guest_memory *memory, uint16_t head, bool writable, struct chain *chain)
{
	struct vring_desc desc = vring_fetch(&ring->desc[head]);

	chain->count = chain->length = chain->visited = 0;
	if (desc.flags & VRING_DESC_F_INDIRECT)
		return ring->indirect && !(desc.flags & VRING_DESC_F_NEXT) && follow_indirect(desc, memory, writable, chain);
	return follow(ring->desc, ring->size, head, memory, writable, chain);
}

/* Whether the guest asked for an interrupt somewhere in what was published just now. */
static bool wanted(const struct vring_side *ring, uint16_t before)
{
	if (ring->event_idx)
		return vring_need_event(READ_ONCE(ring->avail->ring[ring->size]), ring->published, before);
	return !(READ_ONCE(ring->avail->flags) & VRING_AVAIL_F_NO_INTERRUPT);
}

bool vring_publish(struct vring_side *ring)
{
	uint16_t before = ring->published;
	enum interrupt interrupt;

	if (ring->given == before)
		return false;
	if (ring->is_packed)
		packed_show(ring);
	else
		__atomic_store_n(&ring->used->idx, ring->given, __ATOMIC_RELEASE);
	ring->published = ring->given;
	/* The guest writes its wish, then reads what we gave; we the other way round. Without the fence both could miss the other. */
	atomic_thread_fence(memory_order_seq_cst);
	if (ring->call_fd < 0 || !(ring->is_packed ? packed_wanted(ring, before) : wanted(ring, before)))
		return false;
	interrupt = interrupt_guest(ring->call_fd);
	if (interrupt == INTERRUPT_WAITED) {
		ring->broken = ring->waited = true;
		ring->call_fd = -1;
	}
	return interrupt == INTERRUPT_SENT;
}

/* Asks the guest of a split ring to notify us of new chains, or not to. */
static void ask(struct vring_side *ring, bool on)
{
	/* avail_event stands behind the used ring's entries. */
	uint16_t *event = (void *)&ring->used->ring[ring->size];

	if (ring->event_idx)
		/* Off: an index that lies behind, which the guest comes to after 65,535 chains, and notifies us once in vain. */
		__atomic_store_n(event, on ? ring->taken : (uint16_t)(ring->taken - 1), __ATOMIC_RELAXED);
	else
		WRITE_ONCE(ring->used->flags, on ? 0 : VRING_USED_F_NO_NOTIFY);
}

bool vring_arm(struct vring_side *ring, bool on)
{
	if (ring->broken)
		return false;
	if (ring->is_packed)
		packed_ask(ring, on);
	else
		ask(ring, on);
	atomic_thread_fence(memory_order_seq_cst);
	return vring_waiting(ring) > 0;
}
