/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A port with rings of our own (own_rings.c), and a guest that writes what it likes into its memory and rings, between any two polls of
 * its switch: every frame that comes out is whole, nothing beside the guest's memory is touched, no frame and no loan is lost. With DPDK's
 * own mbufs and memory pools; librte_vhost's part, which tells of the memory table and the rings, is played here.
 *
 * The input: features, regions and rings, then the memory, then what the guest writes and the switch does in turn.
 */
#include <stdlib.h>
#include <string.h>

#include <linux/virtio_net.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#include "../input.h"
#include "own_rings.h"
#include "plane.h"
#include "vhost.h"

enum { BASE = 0x10000, MEMORY = 1 << 14, ROUNDS = 16, INPUT_HEADER = 24, REGIONS = 3, HELD = 256, MBUFS = 1023, SEGMENTS = 3 };

struct plane plane;

static struct {
	struct rte_vhost_vring ring[2];
	uint16_t taken[2], given[2];
	uint64_t features;
	struct guest_memory memory;
} guest;

static struct vhost vhosts[2];
static struct port ports[2]; /* copying, and lending (zero copy) */
static struct rte_mempool *pool;
static struct rte_mbuf *held[HELD];
static unsigned held_count;

/* ---- librte_vhost, and vhost.c ---- */

int vhost_take_memory(int vid, struct guest_memory *memory)
{
	(void)vid;
	*memory = guest.memory;
	return 0;
}

int rte_vhost_get_negotiated_features(int vid, uint64_t *features)
{
	(void)vid;
	*features = guest.features;
	return 0;
}

int rte_vhost_get_vhost_vring(int vid, uint16_t number, struct rte_vhost_vring *ring)
{
	(void)vid;
	*ring = guest.ring[number];
	return 0;
}

int rte_vhost_get_vring_base(int vid, uint16_t number, uint16_t *taken, uint16_t *given)
{
	(void)vid;
	*taken = guest.taken[number];
	*given = guest.given[number];
	return 0;
}

int rte_vhost_set_vring_base(int vid, uint16_t number, uint16_t taken, uint16_t given)
{
	(void)vid;
	guest.taken[number] = taken;
	guest.given[number] = given;
	return 0;
}

/* ---- once ---- */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char *words[] = {"fuzz", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "-m", "128", "-l", "0", "--log-level=4"};
	struct why why;

	(void)argc;
	(void)argv;
	must(rte_eal_init(RTE_DIM(words), words) >= 0);
	/* No cache: how many are free is known at any moment. */
	pool = rte_pktmbuf_pool_create("frames", MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	must(pool != NULL);
	for (int lending = 0; lending < 2; lending++) {
		struct port *port = &ports[lending];

		strcpy(port->name, "guest");
		port->slot = lending;
		port->spec.queues = port->queues = 1;
		port->pool = pool;
		port->own = &vhosts[lending];
		plane.options.zero_copy = lending;
		must(own_open(port, &why) == 0);
	}
	return 0;
}

/* ---- the guest ---- */

/* Regions that follow one another for the guest, and lie anywhere for us. */
static void boot(struct input *input)
{
	uint32_t at = 0;

	guest.memory.count = REGIONS;
	for (int i = 0; i < REGIONS; i++) {
		uint32_t left = MEMORY - at, size = i == REGIONS - 1 ? left : 64 + next(input, 2) % (left / 2);

		guest.memory.region[i] = (struct guest_region){BASE + at, size, calloc(1, size)};
		at += size;
	}
}

static void write_guest(uint32_t at, const uint8_t *from, size_t length)
{
	while (length > 0 && at < MEMORY) {
		uint64_t piece = length;
		uint8_t *to = guest_at(&guest.memory, BASE + at, &piece);

		memcpy(to, from, piece);
		at += piece;
		from += piece;
		length -= piece;
	}
}

static void *place(uint32_t at, uint32_t alignment)
{
	const struct guest_region *region = &guest.memory.region[at % REGIONS];

	return region->host + (at / REGIONS) % region->size / alignment * alignment;
}

/* A packed ring's size may be any, and where it goes on has a wrap counter. */
static void lay_rings(struct input *input, bool packed, uint16_t wrap)
{
	for (int i = 0; i < 2; i++) {
		uint32_t size = next(input, 1);

		guest.ring[i] = (struct rte_vhost_vring){
			.desc = place(next(input, 2), 16),
			.avail = place(next(input, 2), packed ? 4 : 2),
			.used = place(next(input, 2), 4),
			.size = size & 0x80 ? size
				: packed    ? size + 1
					    : 1U << size % 9,
			.callfd = -1,
			.kickfd = -1,
		};
		guest.taken[i] = guest.given[i] = next(input, 1);
		if (packed && guest.ring[i].size > 0)
			guest.taken[i] = guest.given[i] = guest.taken[i] % guest.ring[i].size | wrap;
	}
}

static void write_some(struct input *input)
{
	uint32_t at = next(input, 2) % MEMORY, length = next(input, 1);

	length = length < input->left ? length : input->left;
	write_guest(at, input->at, length);
	input->at += length;
	input->left -= length;
}

/* ---- the switch ---- */

static void look_at(const struct rte_mbuf *frame)
{
	const char *why;
	uint32_t total = 0, sum = 0;

	must(rte_mbuf_check(frame, 1, &why) == 0);
	for (const struct rte_mbuf *part = frame; part != NULL; part = part->next) {
		const uint8_t *data = rte_pktmbuf_mtod(part, const uint8_t *);

		/* A loan lies in the guest's memory. Reading has AddressSanitizer look. */
		must(!RTE_MBUF_HAS_EXTBUF(part) || guest_has(&guest.memory, data, part->data_len));
		for (uint32_t i = 0; i < part->data_len; i++)
			sum += data[i];
		total += part->data_len;
	}
	must(total == frame->pkt_len && total >= HEADER_LENGTH && total <= MAX_FRAME && frame->data_len >= HEADER_LENGTH);
	must(sum <= 255 * total);
}

static void receive(struct port *port)
{
	struct rte_mbuf *frames[BURST];
	uint16_t count = own_receive(port, 0, frames, BURST);

	must(count <= BURST);
	for (uint16_t i = 0; i < count; i++) {
		look_at(frames[i]);
		if (held_count < HELD)
			held[held_count++] = frames[i];
		else
			rte_pktmbuf_free(frames[i]);
	}
}

/* In any order: a receiver may be slow. */
static void free_some(uint32_t which, uint32_t count)
{
	while (count-- > 0 && held_count > 0) {
		uint32_t at = which++ % held_count;

		rte_pktmbuf_free(held[at]);
		held[at] = held[--held_count];
	}
}

static struct rte_mbuf *frame_of(uint32_t length)
{
	struct rte_mbuf *first = NULL;
	uint32_t segments = length % SEGMENTS + 1;

	while (segments-- > 0) {
		struct rte_mbuf *part = rte_pktmbuf_alloc(pool);

		if (part == NULL)
			break;
		memset(rte_pktmbuf_append(part, HEADER_LENGTH + length % 2000), 0x5a, HEADER_LENGTH + length % 2000);
		if (first == NULL)
			first = part;
		else
			must(rte_pktmbuf_chain(first, part) == 0);
	}
	return first;
}

static void send(struct port *port, uint32_t length, uint32_t count)
{
	struct send_counters sent = {0};
	struct rte_mbuf *frames[BURST];
	uint16_t made = 0, taken;

	while (made < count % BURST && (frames[made] = frame_of(length + made)) != NULL)
		made++;
	taken = own_send(port, 0, frames, made, &sent);
	must(taken <= made && sent.packets + sent.too_long == taken);
	rte_pktmbuf_free_bulk(frames + taken, made - taken);
}

static void act(struct port *port, struct input *input)
{
	uint32_t what = next(input, 1);

	switch (what % 4) {
	case 0:
		receive(port);
		break;
	case 1:
		send(port, next(input, 2), what >> 2);
		break;
	case 2:
		free_some(next(input, 1), what >> 2);
		break;
	default:
		own_arm(port, 0, what & 4);
	}
}

static void stays_in_its_rings(const struct own_queue *queue)
{
	const struct vring_side *rings[] = {&queue->in, &queue->out};

	for (int i = 0; i < 2; i++)
		must(!rings[i]->is_packed ||
			(packed_slot(rings[i]->taken) < rings[i]->size && packed_slot(rings[i]->given) < rings[i]->size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct port *port;
	uint32_t flags, image;

	if (size < INPUT_HEADER)
		return 0;
	flags = next(&input, 1);
	port = &ports[flags & 1];
	plane.options.zero_copy = flags & 1;
	guest.features = (flags & 2 ? 1ULL << VIRTIO_RING_F_EVENT_IDX : 0) | (flags & 4 ? 1ULL << VIRTIO_RING_F_INDIRECT_DESC : 0) |
			 (flags & 8 ? 1ULL << VIRTIO_NET_F_MRG_RXBUF : 0) | (flags & 16 ? 1ULL << VIRTIO_F_VERSION_1 : 0) |
			 (flags & 32 ? 1ULL << VIRTIO_F_RING_PACKED : 0);
	boot(&input);
	lay_rings(&input, flags & 32, flags & 64 ? PACKED_WRAP : 0);
	image = next(&input, 2) % (input.left + 1);
	for (uint32_t at = 0; image > 0 && at < MEMORY; at += image)
		write_guest(at, input.at, image);
	input.at += image;
	input.left -= image;
	if (own_attach(port) == 0)
		for (int i = 0; i < ROUNDS && input.left > 0; i++) {
			write_some(&input);
			act(port, &input);
			stays_in_its_rings(vhosts[flags & 1].queue[0]);
		}
	free_some(0, HELD);
	must(own_in_flight(port) == 0);
	own_detach(port);
	must(rte_mempool_avail_count(pool) == MBUFS);
	for (int i = 0; i < REGIONS; i++)
		free(guest.memory.region[i].host);
	return 0;
}
