/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of frame-probe that count, without DPDK: each against values that are known, or against a naive count. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrivals.h"
#include "frame.h"
#include "gaps.h"
#include "histogram.h"
#include "pacer.h"
#include "stalls.h"
#include "stream.h"
#include "tally.h"

#define CHECK(condition)                                                                        \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                                \
		}                                                                               \
	} while (0)

#define EQUAL(found, expected) check_equal((uint64_t)(found), (uint64_t)(expected), __LINE__, #found)

static void check_equal(uint64_t found, uint64_t expected, int line, const char *what)
{
	if (found == expected)
		return;
	fprintf(stderr, "%s:%d: %s is %" PRIu64 ", not %" PRIu64 "\n", __FILE__, line, what, found, expected);
	exit(1);
}

/* Knuth's MMIX generator, of whose bits the upper ones are good. */
static uint64_t any(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 16;
}

static void every_value_is_in_its_bucket(uint64_t value)
{
	unsigned index = histogram_index(value);

	CHECK(index < HISTOGRAM_BUCKETS);
	CHECK(histogram_low(index) <= value && value <= histogram_high(index));
	/* No bucket is wider than 1/256 of its values. */
	CHECK(histogram_high(index) - histogram_low(index) <= histogram_low(index) / 256);
}

static void the_histogram_holds_what_it_says(void)
{
	uint64_t state = 1;

	for (uint64_t value = 0; value < 100000; value++)
		every_value_is_in_its_bucket(value);
	for (int bit = 0; bit < 64; bit++)
		for (int more = -1; more <= 1; more++)
			every_value_is_in_its_bucket((1ull << bit) + (uint64_t)more);
	for (int i = 0; i < 100000; i++)
		every_value_is_in_its_bucket(any(&state) << (any(&state) % 17));
	/* One bucket begins where the one before ends. */
	for (unsigned i = 1; i < HISTOGRAM_BUCKETS; i++)
		EQUAL(histogram_low(i), histogram_high(i - 1) + 1);
	EQUAL(histogram_high(HISTOGRAM_BUCKETS - 1), UINT64_MAX);
}

static void the_histogram_counts(void)
{
	static struct histogram h;

	histogram_add(&h, 7);
	histogram_add(&h, 1000000);
	histogram_add(&h, 7);
	EQUAL(h.count, 3);
	EQUAL(h.sum, 1000014);
	EQUAL(h.largest, 1000000);
	EQUAL(h.bucket[7], 2);
	EQUAL(h.bucket[histogram_index(1000000)], 1);
}

static void frames_are_told_apart(void)
{
	struct arrivals a;

	arrivals_start(&a, 100);
	CHECK(!arrivals_take(&a, 99)); /* warm-up */
	CHECK(arrivals_take(&a, 100));
	CHECK(arrivals_take(&a, 103)); /* 101 and 102 are missing */
	CHECK(arrivals_take(&a, 101)); /* late */
	CHECK(!arrivals_take(&a, 101));
	CHECK(!arrivals_take(&a, 103));
	CHECK(arrivals_take(&a, 1000));
	CHECK(arrivals_take(&a, 102)); /* so late that nobody knows whether it came before */
	EQUAL(a.received, 5);
	EQUAL(a.reordered, 2);
	EQUAL(a.duplicates, 2);
	EQUAL(a.next, 1001);
}

/* What is known of the last 64 outlives a jump ahead. */
static void a_jump_forgets_nothing(void)
{
	struct arrivals a;

	arrivals_start(&a, 0);
	CHECK(arrivals_take(&a, 0) && arrivals_take(&a, 63));
	CHECK(!arrivals_take(&a, 0));
	CHECK(arrivals_take(&a, 1));
	EQUAL(a.duplicates, 1);
	CHECK(arrivals_take(&a, 63 + 64));
	CHECK(!arrivals_take(&a, 63 + 64));
	CHECK(arrivals_take(&a, 64)); /* the oldest that is still known */
	CHECK(!arrivals_take(&a, 64));
}

/* A shuffled stream in which some frames are missing and some come twice, counted with a table of all of them. */
static void arrivals_agree_with_a_table(void)
{
	static uint8_t seen[4096];
	uint64_t state = 3, received = 0, reordered = 0, duplicates = 0, highest = 0;
	struct arrivals a;

	arrivals_start(&a, 0);
	for (uint64_t i = 64; i < sizeof(seen); i++) {
		uint64_t number = i - any(&state) % 32;
		bool counts = arrivals_take(&a, number);
		EQUAL(counts, !seen[number]);
		duplicates += seen[number];
		received += !seen[number];
		reordered += !seen[number] && number < highest;
		highest = number > highest ? number : highest;
		seen[number] = 1;
	}
	EQUAL(a.received, received);
	EQUAL(a.reordered, reordered);
	EQUAL(a.duplicates, duplicates);
	CHECK(duplicates > 100 && reordered > 100);
}

static void the_longest_gap_is_found(void)
{
	struct gaps g, copy;

	gaps_start(&g, 1000);
	for (uint64_t now = 1010; now <= 2000; now += 10)
		gaps_arrival(&g, now);
	gaps_arrival(&g, 2500);
	gaps_arrival(&g, 2510);
	EQUAL(g.longest, 500);
	EQUAL(g.began, 2000);
	copy = g;
	CHECK(!gaps_close(&copy, 2600)); /* the open one is shorter */
	EQUAL(copy.longest, 500);
	copy = g;
	CHECK(gaps_close(&copy, 9000));
	EQUAL(copy.longest, 6490);
	EQUAL(copy.began, 2510);
	copy = g;
	CHECK(!gaps_close(&copy, 2505)); /* the clock was read before the last arrival */
	EQUAL(copy.longest, 500);
	EQUAL(g.longest, 500);
}

static void nothing_at_all_is_one_open_gap(void)
{
	struct gaps g;

	gaps_start(&g, 5000);
	CHECK(gaps_close(&g, 6000));
	EQUAL(g.longest, 1000);
	EQUAL(g.began, 5000);
}

static void frames_are_due_each_period(void)
{
	struct pacer p;
	int sent = 0;

	pacer_start(&p, 100, 1000);
	for (uint64_t now = 1000; now < 2000; now++)
		sent += (int)pacer_due(&p, now, 1);
	EQUAL(sent, 10);
	EQUAL(p.missed, 0);
	/* Nobody looked for 5 periods and a half: one frame goes, four moments are gone, and the beat is kept. */
	EQUAL(pacer_due(&p, 2450, 1), 1);
	EQUAL(p.missed, 4);
	EQUAL(pacer_due(&p, 2499, 1), 0);
	EQUAL(pacer_due(&p, 2500, 1), 1);
	EQUAL(p.missed, 4);
}

static void what_is_due_at_once_goes_at_once(void)
{
	uint64_t state = 5, sent = 0, now = 1000;
	struct pacer p;

	pacer_start(&p, 100, 1000);
	EQUAL(pacer_due(&p, 1000, 32), 1);
	EQUAL(pacer_due(&p, 1350, 32), 3);
	EQUAL(pacer_due(&p, 1399, 32), 0);
	/* 32 moments, and then 33: one too many. */
	EQUAL(pacer_due(&p, 4599, 32), 32);
	EQUAL(p.missed, 0);
	EQUAL(pacer_due(&p, 7800, 32), 32);
	EQUAL(p.missed, 1);
	/* Each moment is a frame, or one that was missed, whenever somebody looks. */
	pacer_start(&p, 7, now);
	for (int i = 0; i < 100000; i++) {
		now += any(&state) % 600;
		sent += pacer_due(&p, now, 32);
	}
	EQUAL(sent + p.missed, (p.due - 1000) / 7);
	CHECK(p.due > now && p.due <= now + 7);
	CHECK(p.missed > 1000);
}

static void a_stall_is_longer_than_its_limit(void)
{
	struct stalls s;

	stalls_start(&s, 50);
	CHECK(!stalls_look(&s, 100, 150));
	CHECK(stalls_look(&s, 150, 201));
	CHECK(stalls_look(&s, 300, 400));
	EQUAL(s.count, 2);
	EQUAL(s.cycles, 151);
	EQUAL(s.longest, 100);
}

/* A right checksum makes the sum over the IP header all ones (RFC 1071). */
static void the_header_is_whole(const uint8_t *frame)
{
	uint32_t sum = 0;

	for (int i = 14; i < 34; i += 2)
		sum += (uint32_t)frame[i] << 8 | frame[i + 1];
	EQUAL((sum & 0xffff) + (sum >> 16), 0xffff);
}

static void a_flow_is_known_by_its_destination(void)
{
	static const uint8_t target[6] = {0x52, 0x54, 0, 0x76, 0x67, 2}, source[6] = {0x52, 0x54, 0, 0x76, 0x67, 1};
	uint8_t frame[FRAME_SMALLEST];

	frame_lay_out(frame, FRAME_SMALLEST, target, source);
	for (uint32_t flow = 0; flow < STREAM_FLOWS; flow += 999) {
		frame_set_flow(frame, flow);
		the_header_is_whole(frame);
		EQUAL((uint32_t)frame[30] << 24 | frame[31] << 16 | frame[32] << 8 | frame[33], (10u << 24 | 253u << 16) + flow);
	}
	CHECK(!memcmp(frame, target, 6));
}

static void a_frame_is_udp_with_a_stamp(void)
{
	static const uint8_t target[6] = {0x52, 0x54, 0, 0x76, 0x67, 2}, source[6] = {0x52, 0x54, 0, 0x76, 0x67, 1};
	uint8_t frame[FRAME_LARGEST];
	struct stamp stamp;

	for (uint16_t bytes = FRAME_SMALLEST; bytes <= FRAME_LARGEST; bytes++) {
		frame_lay_out(frame, bytes, target, source);
		CHECK(!frame_read(frame, bytes, &stamp));
		frame_stamp(frame, 0x123456789abcdef0, 42);
		CHECK(frame_read(frame, bytes, &stamp));
		CHECK(stamp.number == 0x123456789abcdef0 && stamp.sent == 42);
		EQUAL(frame[16] << 8 | frame[17], bytes - 14);
		EQUAL(frame[38] << 8 | frame[39], bytes - 34);
	}
	CHECK(!memcmp(frame, target, 6) && !memcmp(frame + 6, source, 6) && frame[12] == 8 && frame[13] == 0);
	the_header_is_whole(frame);
	CHECK(!frame_read(frame, FRAME_SMALLEST - 1, &stamp));
}

static void settings_are_checked(void)
{
	static const char *bad[][2] = {{"period-us", "0"}, {"period-us", "abc"}, {"period-us", "1x"}, {"period-us", ""},
		{"period-us", "nan"}, {"rate", "-1"}, {"frame-bytes", "63"}, {"frame-bytes", "1519"}, {"frame-bytes", "64.5"},
		{"warmup", "-1"}, {"count", "-1"}, {"count", "1000000001"}, {"burst", "0"}, {"burst", "33"}, {"burst", "1.5"},
		{"stall-us", "0"}, {"speed", "1"}, {"rate", "100000001"}, {"flows", "0"}, {"flows", "1000001"}, {"target", ""},
		{"target", "52:54:00:76:67"}, {"target", "52:54:00:76:67:0a:01"}, {"target", "52:54:00:76:67:0g"}};
	struct stream s = STREAM_DEFAULT;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(stream_set(&s, bad[i][0], bad[i][1]));
	CHECK(!stream_set(&s, "rate", "10000") && s.period_us == 100);
	CHECK(!stream_set(&s, "period-us", "350") && s.period_us == 350);
	CHECK(!stream_set(&s, "frame-bytes", "1518") && s.bytes == 1518);
	CHECK(!stream_set(&s, "warmup", "0") && s.warmup == 0);
	CHECK(s.burst == 1 && s.count == 0);
	CHECK(!stream_set(&s, "count", "20000") && s.count == 20000);
	CHECK(!stream_set(&s, "burst", "32") && s.burst == STREAM_BURST);
	CHECK(!stream_set(&s, "flows", "1000000") && s.flows == STREAM_FLOWS);
	CHECK(!s.away && s.flows == STREAM_FLOWS && !stream_set(&s, "target", "52:54:00:76:67:0a") && s.away);
	CHECK(s.target[0] == 0x52 && s.target[5] == 0x0a);
}

static void a_copy_of_words_is_whole(void)
{
	static struct tally from, to;

	histogram_add(&from.latency, 12345);
	from.counting = 1;
	from.disturbed.bucket[HISTOGRAM_BUCKETS - 1] = 9;
	words_copy(&to, &from, sizeof(to));
	CHECK(!memcmp(&from, &to, sizeof(to)));
}

int main(void)
{
	the_histogram_holds_what_it_says();
	the_histogram_counts();
	frames_are_told_apart();
	a_jump_forgets_nothing();
	arrivals_agree_with_a_table();
	the_longest_gap_is_found();
	nothing_at_all_is_one_open_gap();
	frames_are_due_each_period();
	what_is_due_at_once_goes_at_once();
	a_stall_is_longer_than_its_limit();
	a_frame_is_udp_with_a_stamp();
	a_flow_is_known_by_its_destination();
	settings_are_checked();
	a_copy_of_words_is_whole();
	return 0;
}
