/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The probe's frame: Ethernet, IPv4, UDP, and in the datagram's first 18 bytes a mark, the frame's number and the time at which it was
 * sent. 18 is what a frame of 64 bytes (60 without FCS) has room for.
 */
#ifndef VSPROF_PROBE_FRAME_H
#define VSPROF_PROBE_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FRAME_HEADERS (14 + 20 + 8)
#define FRAME_MARK 0x7650 /* as stored */
#define FCS_BYTES 4
#define FRAME_SMALLEST 60
#define FRAME_LARGEST 1514

struct stamp {
	uint16_t mark;
	uint64_t number;
	uint64_t sent; /* [cycles of the TSC] */
} __attribute__((packed));

_Static_assert(FRAME_HEADERS + sizeof(struct stamp) == FRAME_SMALLEST, "the smallest frame must have room for the stamp");

/* Lays out a frame of `bytes` (without FCS) with an empty stamp, which stands for no frame of a stream. */
void frame_lay_out(uint8_t *frame, uint16_t bytes, const uint8_t target[6], const uint8_t source[6]);

/* Makes a frame that was laid out one from and to these IPv4 addresses, in the host's order of bytes. */
void frame_set_addresses(uint8_t *frame, uint32_t source, uint32_t target);

/* Makes a frame that was laid out one of flow number `flow`: its destination address is 10.253.0.0 and so many more. */
void frame_set_flow(uint8_t *frame, uint32_t flow);

static inline void frame_stamp(uint8_t *frame, uint64_t number, uint64_t now)
{
	struct stamp stamp = {FRAME_MARK, number, now};

	memcpy(frame + FRAME_HEADERS, &stamp, sizeof(stamp));
}

/* Reads the stamp of a frame of `bytes`; false if it is no frame of a stream. */
static inline bool frame_read(const uint8_t *frame, uint32_t bytes, struct stamp *stamp)
{
	if (bytes < FRAME_SMALLEST)
		return false;
	memcpy(stamp, frame + FRAME_HEADERS, sizeof(*stamp));
	return stamp->mark == FRAME_MARK;
}

#endif
