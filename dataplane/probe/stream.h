/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is sent: frames of one size, at a pace, of one flow or of several. */
#ifndef VSPROF_PROBE_STREAM_H
#define VSPROF_PROBE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

struct stream {
	double period_us;  /* time from one frame to the next */
	uint32_t bytes;    /* of a frame, with its FCS (RFC 2544) */
	uint32_t warmup;   /* frames that are sent first, and not counted */
	uint32_t count;    /* frames after these, with which sending ends by itself; 0: it does not */
	uint32_t burst;    /* frames that go at once at most, where so many are due; 1 to STREAM_BURST */
	uint32_t stall_us; /* a longer time between two polls is a stall */
	uint32_t flows;    /* frames take turns on so many, which differ in their destination address */
	bool away;         /* they go to `target`, and not to a port of our own: what comes is somebody else's */
	uint8_t target[6];
};

#define STREAM_BURST 32
#define STREAM_FLOWS 1000000
#define STREAM_DEFAULT ((struct stream){.period_us = 350, .bytes = 64, .warmup = 100, .burst = 1, .stall_us = 30, .flows = 1})

/*
 * Takes one setting, "period-us=350": period-us, rate (frames a second), frame-bytes, warmup, count, burst, stall-us, flows, target (a MAC
 * address). Returns NULL, or what is wrong with it.
 */
const char *stream_set(struct stream *stream, const char *name, const char *value);

#endif
