/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report.h"

#include <inttypes.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <time.h>

static double seconds(uint64_t cycles)
{
	return (double)cycles / (double)rte_get_tsc_hz();
}

static void write_count(FILE *out, const char *name, uint64_t value)
{
	fprintf(out, "\"%s\": %" PRIu64 ", ", name, value);
}

static void write_histogram(FILE *out, const char *name, const struct histogram *h)
{
	const char *between = "";

	fprintf(out, "\"%s\": {\"count\": %" PRIu64 ", \"sum_s\": %.9f, \"max_s\": %.9f, \"buckets\": [", name, h->count, seconds(h->sum),
		seconds(h->largest));
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!h->bucket[i])
			continue;
		fprintf(out, "%s[%.9f, %.9f, %" PRIu64 "]", between, seconds(histogram_low(i)), seconds(histogram_high(i)), h->bucket[i]);
		between = ", ";
	}
	fputs("]}, ", out);
}

static void write_ports(FILE *out, const struct ports *ports)
{
	fputs("\"ports\": [", out);
	for (uint16_t port = 0; port < ports->count; port++) {
		struct rte_eth_stats stats = {0};
		struct rte_eth_link link = {0};
		char mac[RTE_ETHER_ADDR_FMT_SIZE];

		/* What a port can't say stays zero. */
		if (rte_eth_stats_get(port, &stats) || rte_eth_link_get_nowait(port, &link))
			link.link_status = RTE_ETH_LINK_DOWN;
		rte_ether_format_addr(mac, sizeof(mac), &ports->mac[port]);
		fprintf(out, "%s{\"mac\": \"%s\", \"up\": %d, ", port ? ", " : "", mac, link.link_status);
		write_count(out, "received_packets", stats.ipackets);
		write_count(out, "received_bytes", stats.ibytes);
		write_count(out, "sent_packets", stats.opackets);
		fprintf(out, "\"sent_bytes\": %" PRIu64 "}", stats.obytes);
	}
	fputs("], ", out);
}

static void write_counts(FILE *out, const struct tally *t)
{
	write_count(out, "arrived", t->arrived);
	write_count(out, "offered", t->sent + t->refused);
	write_count(out, "sent", t->sent);
	write_count(out, "refused", t->refused);
	write_count(out, "skipped", t->pacer.missed);
	write_count(out, "received", t->arrivals.received);
	/* Read while frames are under way: those are not lost, and come out as a few of them. Never below zero. */
	uint64_t offered = t->sent + t->refused, received = t->arrivals.received;
	write_count(out, "lost", offered > received ? offered - received : 0);
	write_count(out, "reordered", t->arrivals.reordered);
	write_count(out, "duplicates", t->arrivals.duplicates);
	write_count(out, "foreign", t->foreign);
}

/*
 * Both clocks were read at the same moment: what was stamped by the one is told in the other. Since nothing is sent any more, nothing has
 * to arrive.
 */
static void write_gap(FILE *out, struct tally *t, double clock, uint64_t now, bool sending)
{
	bool open = t->counting && sending && gaps_close(&t->gaps, now);

	fprintf(out, "\"gap\": {\"longest_s\": %.9f, \"began_s\": %.6f, \"open\": %s}, ", seconds(t->gaps.longest),
		t->counting ? clock - seconds(now - t->gaps.began) : 0.0, open ? "true" : "false");
}

void report_write(FILE *out, const struct loop *loop)
{
	static struct tally tally; /* too large for a stack; one thread writes reports */
	struct timespec wall;
	uint64_t now = rte_rdtsc();

	clock_gettime(CLOCK_REALTIME, &wall);
	words_copy(&tally, &loop->tally, sizeof(tally));
	double clock = (double)wall.tv_sec + (double)wall.tv_nsec / 1e9;

	bool sending = atomic_load(&loop->sending);

	fprintf(out, "{\"clock_s\": %.6f, \"tsc_hz\": %" PRIu64 ", \"sending\": %s, ", clock, rte_get_tsc_hz(), sending ? "true" : "false");
	fprintf(out, "\"period_s\": %.9f, \"frame_bytes\": %" PRIu32 ", ", loop->wanted.period_us / 1e6, loop->wanted.bytes);
	write_counts(out, &tally);
	write_gap(out, &tally, clock, now, sending);
	fprintf(out, "\"stalls\": {\"count\": %" PRIu64 ", \"seconds\": %.9f, \"longest_s\": %.9f}, ", tally.stalls.count,
		seconds(tally.stalls.cycles), seconds(tally.stalls.longest));
	write_histogram(out, "latency", &tally.latency);
	write_histogram(out, "disturbed", &tally.disturbed);
	write_ports(out, loop->ports);
	fprintf(out, "\"unit\": \"seconds, frames\"}\n");
	fflush(out);
}
