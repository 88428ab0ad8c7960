/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "port.h"

#include <errno.h>
#include <string.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/virtio_net.h>

#include "../probe/frame.h"
#include "../probe/word.h"

#define BURST 32
#define HUGEPAGE (2u << 20)
#define PATIENCE_MS 5000

const char *port_open(struct port *port, uint16_t size)
{
	size_t half = ring_bytes(size);

	pthread_mutex_init(&port->telling, NULL);
	pthread_mutex_init(&port->lock, NULL);
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

/* Each flow has as many buffers as the others. */
static uint16_t usable(const struct port *port)
{
	return port->flood.flows ? port->send.size / port->flood.flows * port->flood.flows : port->send.size;
}

void port_reset(struct port *port)
{
	/* The polling thread lays out frames also while no switch is there. */
	pthread_mutex_lock(&port->lock);
	ring_reset(&port->receive);
	ring_reset(&port->send);
	for (uint16_t id = 0; id < port->receive.size; id++)
		ring_give(&port->receive, &id, 1, BUFFER_BYTES - FRAME_AT);
	ring_publish(&port->receive);
	ring_wake(&port->receive);
	port->ours = usable(port);
	for (uint16_t id = 0; id < port->ours; id++)
		port->idle[id] = id;
	pthread_mutex_unlock(&port->lock);
}

/* ---- the thread that polls ---- */

static void lay_out(struct port *port)
{
	const struct flood *flood = &port->flood;

	port->ours = usable(port);
	for (uint16_t id = 0; id < port->ours; id++) {
		uint8_t *frame = ring_frame(&port->send, id);

		memset(frame - HEADER_BYTES, 0, HEADER_BYTES);
		frame_lay_out(frame, flood->bytes, flood->target_mac, port->mac);
		frame_set_addresses(frame, flood->source, flood->target + id % flood->flows);
		port->idle[id] = id;
	}
}

/* Takes up what it was told, once the switch has none of the frames that were sent before: they lie where the new ones will. */
static void take_up(struct port *port)
{
	unsigned asked = atomic_load_explicit(&port->asked, memory_order_relaxed);

	if (asked == atomic_load_explicit(&port->taken, memory_order_relaxed) || pthread_mutex_trylock(&port->lock))
		return;
	asked = port->asked;
	port->flood.on = false;
	if (asked != port->taken && !(port->wanted.on && atomic_load(&port->up) && port->send.held)) {
		port->flood = port->wanted;
		if (port->flood.on)
			lay_out(port);
		atomic_store(&port->taken, asked);
	}
	pthread_mutex_unlock(&port->lock);
}

/* Whether it is one of a flood, in one buffer: every driver reads the header where buffers can be merged, and the frame. */
static bool is_ours(const struct port *port, uint16_t id, uint32_t bytes)
{
	const uint8_t *frame = ring_frame(&port->receive, id);
	struct virtio_net_hdr_mrg_rxbuf header;
	struct stamp stamp;

	if (port->receive.reads_header) {
		memcpy(&header, frame - HEADER_BYTES, sizeof(header));
		if (header.num_buffers != 1)
			return false;
	}
	return frame_read(frame, bytes, &stamp);
}

/* A look at each frame that came; then its buffer is the switch's again. */
static void look_at(struct port *port, const uint16_t *ids, const uint32_t *lengths, unsigned count)
{
	uint64_t bytes = 0, foreign = 0;

	for (unsigned i = 0; i < count; i++) {
		uint32_t frame = lengths[i] < HEADER_BYTES ? 0 : lengths[i] - HEADER_BYTES;

		bytes += frame;
		foreign += !is_ours(port, ids[i], frame);
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
	if (atomic_load(&port->up)) {
		receive(port);
		take_back(port);
		if (port->flood.on)
			send_frames(port);
	}
	take_up(port);
	/* In one order with the loads of `up`: see port_settle. */
	atomic_store(&port->rounds, atomic_load_explicit(&port->rounds, memory_order_relaxed) + 1);
}

/* ---- others ---- */

static bool wait_until_taken(struct port *port, unsigned asked)
{
	for (int waited = 0; waited < PATIENCE_MS; waited++) {
		if (atomic_load(&port->taken) == asked)
			return true;
		usleep(1000);
	}
	return false;
}

bool port_tell(struct port *port, const struct flood *wanted)
{
	bool taken;

	pthread_mutex_lock(&port->telling);
	pthread_mutex_lock(&port->lock);
	port->wanted = *wanted;
	unsigned asked = atomic_fetch_add(&port->asked, 1) + 1;
	pthread_mutex_unlock(&port->lock);
	taken = wait_until_taken(port, asked);
	if (!taken) {
		/* Taken back, unless it was taken up just now: what is refused must not begin later. */
		pthread_mutex_lock(&port->lock);
		taken = atomic_load(&port->taken) == asked;
		atomic_store(&port->taken, asked);
		pthread_mutex_unlock(&port->lock);
	}
	pthread_mutex_unlock(&port->telling);
	return taken;
}

void port_settle(struct port *port)
{
	unsigned long before = atomic_load(&port->rounds);

	/* The second of them began after the first was counted, and so after what was written before we looked. */
	while (atomic_load(&port->rounds) < before + 2)
		usleep(100);
}
