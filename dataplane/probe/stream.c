/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stream.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_PERIOD_US 10e6
#define HIGHEST_RATE 1e8

static bool number(const char *text, double low, double high, double *found)
{
	char *end;

	*found = strtod(text, &end);
	return end != text && !*end && *found >= low && *found <= high;
}

static const char *whole(const char *text, uint32_t low, uint32_t high, uint32_t *into, const char *wrong)
{
	double found;

	if (!number(text, low, high, &found) || found != (uint32_t)found)
		return wrong;
	*into = (uint32_t)found;
	return NULL;
}

/* "52:54:00:76:67:02" */
static bool address(const char *text, uint8_t found[6])
{
	unsigned byte[6];
	int end = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", byte, byte + 1, byte + 2, byte + 3, byte + 4, byte + 5, &end) != 6 || text[end])
		return false;
	for (int i = 0; i < 6; i++)
		found[i] = (uint8_t)byte[i];
	return true;
}

const char *stream_set(struct stream *stream, const char *name, const char *value)
{
	double found;

	if (!strcmp(name, "period-us")) {
		if (!number(value, 1e6 / HIGHEST_RATE, LONGEST_PERIOD_US, &found))
			return "period-us: need 0.01 to 10000000 microseconds";
		stream->period_us = found;
		return NULL;
	}
	if (!strcmp(name, "rate")) {
		if (!number(value, 0.1, HIGHEST_RATE, &found))
			return "rate: need 0.1 to 100000000 frames a second";
		stream->period_us = 1e6 / found;
		return NULL;
	}
	if (!strcmp(name, "frame-bytes"))
		return whole(value, 64, 1518, &stream->bytes, "frame-bytes: need 64 to 1518, the FCS included");
	if (!strcmp(name, "warmup"))
		return whole(value, 0, 1000000000, &stream->warmup, "warmup: need 0 to 1000000000 frames");
	if (!strcmp(name, "count"))
		return whole(value, 0, 1000000000, &stream->count, "count: need 1 to 1000000000 frames, or 0 for no end");
	if (!strcmp(name, "burst"))
		return whole(value, 1, STREAM_BURST, &stream->burst, "burst: need 1 to 32 frames");
	if (!strcmp(name, "stall-us"))
		return whole(value, 1, 1000000, &stream->stall_us, "stall-us: need 1 to 1000000 microseconds");
	if (!strcmp(name, "flows"))
		return whole(value, 1, STREAM_FLOWS, &stream->flows, "flows: need 1 to 1000000");
	if (!strcmp(name, "target")) {
		stream->away = address(value, stream->target);
		return stream->away ? NULL : "target: need a MAC address, such as 52:54:00:76:67:02";
	}
	return "unknown setting: use period-us, rate, frame-bytes, warmup, count, burst, stall-us, flows or target";
}
