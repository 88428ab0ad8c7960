/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "loop.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <unistd.h>

#include "frame.h"

#define BURST STREAM_BURST
#define PATIENCE_MS 5000
/* A switch whose threads share a CPU can pause for some milliseconds. */
#define QUIET_MS 10

/* What the loop keeps for itself. */
struct state {
	struct loop *loop;
	struct stream stream;
	uint64_t number; /* of the next frame: never one twice, so that a frame of an earlier stream is told from ours */
	uint32_t flow;   /* of the next frame */
	struct pacer teaching;
	uint8_t frame[FRAME_LARGEST]; /* from the sender to the receiver, but for its stamp */
	uint8_t lesson[FRAME_SMALLEST];
	uint64_t looked; /* when the last round ended [cycles] */
};

static struct rte_mbuf *filled(struct rte_mempool *pool, const uint8_t *frame, uint16_t bytes)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

	if (mbuf)
		memcpy(rte_pktmbuf_append(mbuf, bytes), frame, bytes);
	return mbuf;
}

/* A switch learns who is behind a port from what comes out of it; the receiver would else never say a word. */
static void teach(struct state *s)
{
	struct rte_mbuf *mbuf = filled(s->loop->ports->pool, s->lesson, FRAME_SMALLEST);

	if (mbuf && !rte_eth_tx_burst(s->loop->ports->receiver, 0, &mbuf, 1))
		rte_pktmbuf_free(mbuf);
}

/* The warm-up is over. */
static void start_counting(struct tally *tally, uint64_t now)
{
	gaps_start(&tally->gaps, now);
	word_set(&tally->pacer.missed, 0);
	word_set(&tally->counting, 1);
}

/* `count` more frames were due, of which the port took the first `taken`; those of the warm-up count for nothing. */
static void count_sent(struct state *s, uint32_t count, uint32_t taken)
{
	struct tally *tally = &s->loop->tally;

	for (uint32_t i = 0; i < count; i++)
		word_add(i < taken ? &tally->sent : &tally->refused, s->number++ >= tally->arrivals.first);
}

/* The next frame is of the next flow. */
static void take_turns(struct state *s, uint8_t *frame)
{
	if (s->stream.flows == 1)
		return;
	frame_set_flow(frame, s->flow);
	s->flow = s->flow + 1 < s->stream.flows ? s->flow + 1 : 0;
}

/* Sends `count` frames with one call of the driver: where it rings a doorbell, that costs as much as many frames. */
static void send_frames(struct state *s, uint32_t count)
{
	struct tally *tally = &s->loop->tally;
	uint16_t bytes = (uint16_t)(s->stream.bytes - FCS_BYTES), made = 0, taken;
	struct rte_mbuf *mbufs[BURST];

	while (made < count && (mbufs[made] = filled(s->loop->ports->pool, s->frame, bytes))) {
		take_turns(s, rte_pktmbuf_mtod(mbufs[made], uint8_t *));
		made++;
	}
	/* Precise: not before all that was loaded and stored by now. The processor reads its counter early where it may. */
	uint64_t now = rte_rdtsc_precise();

	if (!tally->counting && s->number + count > tally->arrivals.first)
		start_counting(tally, now);
	for (uint16_t i = 0; i < made; i++)
		frame_stamp(rte_pktmbuf_mtod(mbufs[i], uint8_t *), s->number + i, now);
	taken = rte_eth_tx_burst(SENDER, 0, mbufs, made);
	rte_pktmbuf_free_bulk(mbufs + taken, made - taken);
	count_sent(s, count, taken);
}

/* How many frames are due, but no more than are left of a stream that ends: with the last one it has. */
static uint32_t due(struct state *s, uint64_t now)
{
	struct tally *tally = &s->loop->tally;
	uint64_t end = tally->arrivals.first + s->stream.count;
	uint32_t count = pacer_due(&tally->pacer, now, s->stream.burst);

	if (!s->stream.count || s->number + count < end)
		return count;
	atomic_store_explicit(&s->loop->sending, false, memory_order_relaxed);
	return (uint32_t)(end - s->number);
}

static void take(struct tally *tally, const struct rte_mbuf *mbuf, uint64_t now, bool stalled)
{
	struct stamp stamp;

	if (!frame_read(rte_pktmbuf_mtod(mbuf, const uint8_t *), rte_pktmbuf_data_len(mbuf), &stamp)) {
		word_add(&tally->foreign, 1);
		return;
	}
	word_add(&tally->arrived, 1);
	if (!arrivals_take(&tally->arrivals, stamp.number))
		return;
	gaps_arrival(&tally->gaps, now);
	histogram_add(stalled ? &tally->disturbed : &tally->latency, now - stamp.sent);
}

static void receive(struct tally *tally, uint16_t port, bool stalled)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t count = rte_eth_rx_burst(port, 0, mbufs, BURST);

	if (!count)
		return;
	uint64_t now = rte_rdtsc_precise();

	for (uint16_t i = 0; i < count; i++)
		take(tally, mbufs[i], now, stalled);
	rte_pktmbuf_free_bulk(mbufs, count);
}

/* The sender gets lessons, what a switch floods, and what others send: none of it counts but in the port's own counters. */
static void drain(uint16_t port)
{
	struct rte_mbuf *mbufs[BURST];

	rte_pktmbuf_free_bulk(mbufs, rte_eth_rx_burst(port, 0, mbufs, BURST));
}

static void begin(struct state *s)
{
	const struct ports *ports = s->loop->ports;
	const uint8_t *sender = ports->mac[SENDER].addr_bytes, *receiver = ports->mac[ports->receiver].addr_bytes;
	struct tally *tally = &s->loop->tally;
	double hz = (double)rte_get_tsc_hz();

	s->stream = s->loop->wanted;
	s->flow = 0;
	memset(tally, 0, sizeof(*tally));
	arrivals_start(&tally->arrivals, s->number + s->stream.warmup);
	stalls_start(&tally->stalls, (uint64_t)(s->stream.stall_us * hz / 1e6));
	frame_lay_out(s->frame, (uint16_t)(s->stream.bytes - FCS_BYTES), s->stream.away ? s->stream.target : receiver, sender);
	frame_lay_out(s->lesson, FRAME_SMALLEST, sender, receiver);
	/* Last: what is due from the beginning on is no burst. */
	s->looked = rte_rdtsc();
	pacer_start(&tally->pacer, (uint64_t)(s->stream.period_us * hz / 1e6), s->looked);
	pacer_start(&s->teaching, (uint64_t)hz, s->looked);
	atomic_store_explicit(&s->loop->sending, true, memory_order_relaxed);
}

/* The other port learns who is here, and gets what a switch floods. Where there is none, nothing but the stream goes and comes. */
static void serve_other(struct state *s, uint64_t now, bool sending)
{
	if (s->loop->ports->receiver == SENDER)
		return;
	drain(SENDER);
	if (sending && pacer_due(&s->teaching, now, 1))
		teach(s);
}

static void round_of(struct state *s)
{
	struct tally *tally = &s->loop->tally;
	uint64_t now = rte_rdtsc();
	bool stalled = tally->counting && stalls_look(&tally->stalls, s->looked, now);
	bool sending = atomic_load_explicit(&s->loop->sending, memory_order_relaxed);
	uint32_t count = sending ? due(s, now) : 0;

	if (s->stream.away)
		drain(s->loop->ports->receiver);
	else
		receive(tally, s->loop->ports->receiver, stalled);
	serve_other(s, now, sending);
	if (count) {
		send_frames(s, count);
		/* Waking a sleeping switch takes a system call, which is the switch's latency and no stall of ours. */
		now = rte_rdtsc();
	}
	s->looked = now;
}

int loop_run(void *argument)
{
	struct state state = {.loop = argument};
	struct loop *loop = argument;

	while (!atomic_load_explicit(&loop->quit, memory_order_relaxed)) {
		unsigned asked = atomic_load_explicit(&loop->asked, memory_order_acquire);
		if (asked != atomic_load_explicit(&loop->taken, memory_order_relaxed)) {
			begin(&state);
			atomic_store_explicit(&loop->taken, asked, memory_order_release);
		}
		round_of(&state);
	}
	return 0;
}

bool loop_send(struct loop *loop, const struct stream *stream)
{
	unsigned asked = atomic_load(&loop->asked) + 1;

	loop->wanted = *stream;
	atomic_store_explicit(&loop->asked, asked, memory_order_release);
	for (int waited = 0; waited < PATIENCE_MS; waited++) {
		if (atomic_load_explicit(&loop->taken, memory_order_acquire) == asked)
			return true;
		usleep(1000);
	}
	return false;
}

void loop_pause(struct loop *loop)
{
	atomic_store(&loop->sending, false);
}

bool loop_wait(const struct loop *loop)
{
	uint64_t before, arrived = word_get(&loop->tally.arrived);

	do {
		before = arrived;
		if (usleep(QUIET_MS * 1000))
			return false;
		arrived = word_get(&loop->tally.arrived);
	} while (atomic_load(&loop->sending) || arrived != before);
	return true;
}
