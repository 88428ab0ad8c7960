/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "port.h"

#include <errno.h>
#include <string.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../probe/frame.h"
#include "../probe/word.h"

#define BURST 32
#define HUGEPAGE (2u << 20)
#define PATIENCE_MS 5000

const char *port_open(struct port *port, uint16_t size)
{
	size_t half = ring_bytes(size);

	port->receive.size = port->send.size = size;
	port->receive.receives = true;
	port->memory_bytes = (2 * half + HUGEPAGE - 1) / HUGEPAGE * HUGEPAGE;
	port->memory = memfd_create("frame-flood", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
	if (port->memory < 0 || ftruncate(port->memory, (off_t)port->memory_bytes))
		return strerror(errno);
	/* Populated: a page that is missing is an error here, and not a signal later. */
	port->mapped = mmap(NULL, port->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, port->memory, 0);
	if (port->mapped == MAP_FAILED)
		return strerror(errno);
	ring_place(&port->receive, port->mapped);
	ring_place(&port->send, port->mapped + half);
	port_reset(port);
	return NULL;
}

void port_reset(struct port *port)
{
	ring_reset(&port->receive);
	ring_reset(&port->send);
	for (uint16_t id = 0; id < port->receive.size; id++)
		ring_give(&port->receive, &id, 1, BUFFER_BYTES - FRAME_AT);
	ring_publish(&port->receive);
	ring_wake(&port->receive);
	for (uint16_t id = 0; id < port->send.size; id++)
		port->idle[id] = id;
	port->ours = port->send.size;
}

/* ---- the thread that polls ---- */

static void lay_out(struct port *port)
{
	for (uint16_t id = 0; id < port->send.size; id++) {
		uint8_t *frame = ring_frame(&port->send, id);

		memset(frame - HEADER_BYTES, 0, HEADER_BYTES);
		frame_lay_out(frame, port->flood.bytes, port->flood.target, port->mac);
		if (port->flood.flows > 1)
			frame_set_flow(frame, id % port->flood.flows);
	}
}

/* Takes up what it was told, once the switch has none of the frames that were sent before: they lie where the new ones will. */
static void take_up(struct port *port)
{
	unsigned asked = atomic_load_explicit(&port->asked, memory_order_acquire);

	if (asked == atomic_load_explicit(&port->taken, memory_order_relaxed))
		return;
	port->flood.on = false;
	if (port->wanted.on && port->send.held)
		return;
	port->flood = port->wanted;
	if (port->flood.on)
		lay_out(port);
	atomic_store_explicit(&port->taken, asked, memory_order_release);
}

/* A look at each frame that came, as every receiver takes one; then its buffer is the switch's again. */
static void look_at(struct port *port, const uint16_t *ids, const uint32_t *lengths, unsigned count)
{
	uint64_t bytes = 0, foreign = 0;
	struct stamp stamp;

	for (unsigned i = 0; i < count; i++) {
		uint32_t frame = lengths[i] < HEADER_BYTES ? 0 : lengths[i] - HEADER_BYTES;

		bytes += frame;
		foreign += !frame_read(ring_frame(&port->receive, ids[i]), frame, &stamp);
	}
	ring_give(&port->receive, ids, count, BUFFER_BYTES - FRAME_AT);
	ring_publish(&port->receive);
	word_add(&port->tally.received_bytes, bytes);
	word_add(&port->tally.foreign, foreign);
}

static void receive(struct port *port)
{
	uint32_t lengths[RING_MOST];
	unsigned count = ring_take(&port->receive, port->came, lengths, RING_MOST);

	if (!count)
		return;
	word_add(&port->tally.receive_rounds, 1);
	word_add(&port->tally.received_full, !port->receive.held);
	for (unsigned at = 0; at < count; at += BURST)
		look_at(port, port->came + at, lengths + at, at + BURST < count ? BURST : count - at);
	ring_wake(&port->receive);
	word_add(&port->tally.received, count);
}

static void take_back(struct port *port)
{
	uint32_t nothing[RING_MOST]; /* is written by the switch */

	port->ours += ring_take(&port->send, port->idle + port->ours, nothing, port->send.size - port->ours);
}

static void send_burst(struct port *port, const uint16_t *ids, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		frame_stamp(ring_frame(&port->send, ids[i]), port->number + i, 0);
	port->number += count;
	ring_give(&port->send, ids, count, port->flood.bytes);
	ring_publish(&port->send);
}

static void send_frames(struct port *port)
{
	struct tally *tally = &port->tally;
	unsigned count = port->ours;

	if (!count)
		return;
	word_add(&tally->send_rounds, 1);
	word_add(&tally->sent_dry, !port->send.held);
	for (unsigned at = 0; at < count; at += BURST)
		send_burst(port, port->idle + at, at + BURST < count ? BURST : count - at);
	port->ours = 0;
	ring_wake(&port->send);
	word_add(&tally->sent, count);
	word_add(&tally->sent_bytes, (uint64_t)count * port->flood.bytes);
}

void port_poll(struct port *port)
{
	if (atomic_load_explicit(&port->up, memory_order_acquire)) {
		receive(port);
		take_back(port);
		if (port->flood.on)
			send_frames(port);
	}
	take_up(port);
	atomic_store_explicit(&port->rounds, atomic_load_explicit(&port->rounds, memory_order_relaxed) + 1, memory_order_release);
}

/* ---- others ---- */

bool port_tell(struct port *port, const struct flood *wanted)
{
	unsigned asked = atomic_load(&port->asked) + 1;

	port->wanted = *wanted;
	atomic_store_explicit(&port->asked, asked, memory_order_release);
	for (int waited = 0; waited < PATIENCE_MS; waited++) {
		if (atomic_load_explicit(&port->taken, memory_order_acquire) == asked)
			return true;
		usleep(1000);
	}
	return false;
}

void port_settle(struct port *port)
{
	unsigned long before = atomic_load(&port->rounds);

	while (atomic_load_explicit(&port->rounds, memory_order_acquire) < before + 2)
		usleep(100);
}
