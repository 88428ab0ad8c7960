/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An end of the path: a pair of rings, what is sent from it, and what has come. */
#ifndef VSPROF_FLOOD_PORT_H
#define VSPROF_FLOOD_PORT_H

#include <pthread.h>
#include <stdatomic.h>

#include "ring.h"

enum {
	PORTS_MOST = 8,
	RING_MOST = 1024,
};

/* What is sent. Flow n has the destination address `target` and n more; both addresses in the host's order of bytes. */
struct flood {
	bool on;
	uint16_t bytes; /* of a frame, without FCS */
	uint16_t flows;
	uint8_t target_mac[6];
	uint32_t source, target;
};

/* Written by the thread that polls, and read by others: words of 64 bits, see ../probe/word.h. */
struct tally {
	uint64_t sent, sent_bytes; /* frames given to the switch, and their bytes without FCS */
	uint64_t received, received_bytes;
	uint64_t foreign;        /* of these, frames that are none of a flood, or are spread over buffers */
	uint64_t send_rounds;    /* rounds in which frames were sent */
	uint64_t sent_dry;       /* of these, rounds in which the switch had none left to take: it could have taken more */
	uint64_t receive_rounds; /* rounds in which frames had come */
	uint64_t received_full;  /* of these, rounds in which the switch had no room left: it may have dropped frames */
};

struct port {
	const char *path;
	bool server; /* the switch connects to us */
	uint8_t mac[6];
	uint64_t features; /* of virtio that it wants beside the usual */
	struct ring receive, send;
	int memory; /* a file */
	uint8_t *mapped;
	size_t memory_bytes;

	/* The main thread's. */
	int listener, connection;
	const char *wrong; /* what was said last of a switch that does not take the rings */
	atomic_bool up;    /* the switch has the rings. Set and taken back by the main thread */

	/* How floods are told. What is written here is written with the lock, which the polling thread never waits for. */
	pthread_mutex_t telling; /* one teller at a time, from the question to the answer */
	pthread_mutex_t lock;
	struct flood wanted;
	atomic_uint asked, taken;

	/* The polling thread's, in lines of the cache that no other one writes. */
	_Alignas(64) struct flood flood;
	uint64_t number; /* of the next frame */
	uint16_t ours;   /* buffers of `send` that the switch has not: the first so many of `idle` */
	uint16_t idle[RING_MOST];
	uint16_t came[RING_MOST]; /* buffers of `receive` with the frames of this round */
	struct tally tally;
	atomic_ulong rounds;
	_Alignas(64) char end[];
};

/* Makes its memory and its rings of `size` descriptors. NULL, or why not. */
const char *port_open(struct port *port, uint16_t size);

/* Empties its rings, and makes all room for frames available to the next switch. Only while no switch has them. */
void port_reset(struct port *port);

/* One round: takes what has come, takes back what was sent, and sends. By the thread that polls it alone. */
void port_poll(struct port *port);

/*
 * Lets it send `wanted` from now on, once the switch has none of the frames that were sent before. False, and nothing is sent, if that
 * takes longer than 5 s.
 */
bool port_tell(struct port *port, const struct flood *wanted);

/* Waits until the thread that polls has ended the round in which it was, and knows what was written before. */
void port_settle(struct port *port);

#endif
