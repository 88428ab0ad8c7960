/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is sent: frames of one size, at a pace. */
#ifndef VSPROF_PROBE_STREAM_H
#define VSPROF_PROBE_STREAM_H

#include <stdint.h>

struct stream {
	double period_us;  /* time from one frame to the next */
	uint32_t bytes;    /* of a frame, with its FCS (RFC 2544) */
	uint32_t warmup;   /* frames that are sent first, and not counted */
	uint32_t count;    /* frames after these, with which sending ends by itself; 0: it does not */
	uint32_t burst;    /* frames that go at once at most, where so many are due; 1 to STREAM_BURST */
	uint32_t stall_us; /* a longer time between two polls is a stall */
};

#define STREAM_BURST 32
#define STREAM_DEFAULT ((struct stream){.period_us = 350, .bytes = 64, .warmup = 100, .burst = 1, .stall_us = 30})

/*
 * Takes one setting, "period-us=350": period-us, rate (frames a second), frame-bytes, warmup, count, burst, stall-us. Returns NULL, or
 * what is wrong with it.
 */
const char *stream_set(struct stream *stream, const char *name, const char *value);

#endif
