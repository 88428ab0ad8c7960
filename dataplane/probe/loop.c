/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "loop.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <unistd.h>

#include "frame.h"

#define BURST 32
#define PATIENCE_MS 5000

/* What the loop keeps for itself. */
struct state {
	struct loop *loop;
	struct stream stream;
	uint64_t number; /* of the next frame: never one twice, so that a frame of an earlier stream is told from ours */
	struct pacer teaching;
	uint8_t frame[FRAME_LARGEST]; /* from port 0 to port 1, but for its stamp */
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

	if (mbuf && !rte_eth_tx_burst(RECEIVER, 0, &mbuf, 1))
		rte_pktmbuf_free(mbuf);
}

static void send_one(struct state *s)
{
	struct tally *tally = &s->loop->tally;
	struct rte_mbuf *mbuf = filled(s->loop->ports->pool, s->frame, (uint16_t)(s->stream.bytes - FCS_BYTES));
	/* Precise: not before all that was loaded and stored by now. The processor reads its counter early where it may. */
	uint64_t now = rte_rdtsc_precise();

	if (!tally->counting && s->number == tally->arrivals.first) {
		gaps_start(&tally->gaps, now);
		word_set(&tally->pacer.missed, 0);
		word_set(&tally->counting, 1);
	}
	if (mbuf)
		frame_stamp(rte_pktmbuf_mtod(mbuf, uint8_t *), s->number, now);
	s->number++;
	if (mbuf && rte_eth_tx_burst(SENDER, 0, &mbuf, 1)) {
		word_add(&tally->sent, tally->counting);
	} else {
		word_add(&tally->refused, tally->counting);
		rte_pktmbuf_free(mbuf);
	}
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

static void receive(struct tally *tally, bool stalled)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t count = rte_eth_rx_burst(RECEIVER, 0, mbufs, BURST);

	if (!count)
		return;
	uint64_t now = rte_rdtsc_precise();

	for (uint16_t i = 0; i < count; i++)
		take(tally, mbufs[i], now, stalled);
	rte_pktmbuf_free_bulk(mbufs, count);
}

/* The sender gets lessons, and what a switch floods: none of it counts. */
static void drain(uint16_t port)
{
	struct rte_mbuf *mbufs[BURST];

	rte_pktmbuf_free_bulk(mbufs, rte_eth_rx_burst(port, 0, mbufs, BURST));
}

static void begin(struct state *s, uint64_t now)
{
	const struct ports *ports = s->loop->ports;
	const uint8_t *sender = ports->mac[SENDER].addr_bytes, *receiver = ports->mac[RECEIVER].addr_bytes;
	struct tally *tally = &s->loop->tally;
	double hz = (double)rte_get_tsc_hz();

	s->stream = s->loop->wanted;
	memset(tally, 0, sizeof(*tally));
	arrivals_start(&tally->arrivals, s->number + s->stream.warmup);
	stalls_start(&tally->stalls, (uint64_t)(s->stream.stall_us * hz / 1e6));
	pacer_start(&tally->pacer, (uint64_t)(s->stream.period_us * hz / 1e6), now);
	pacer_start(&s->teaching, (uint64_t)hz, now);
	frame_lay_out(s->frame, (uint16_t)(s->stream.bytes - FCS_BYTES), receiver, sender);
	frame_lay_out(s->lesson, FRAME_SMALLEST, sender, receiver);
}

static void round_of(struct state *s)
{
	struct tally *tally = &s->loop->tally;
	uint64_t now = rte_rdtsc();
	bool stalled = tally->counting && stalls_look(&tally->stalls, s->looked, now);

	receive(tally, stalled);
	drain(SENDER);
	if (atomic_load_explicit(&s->loop->sending, memory_order_relaxed)) {
		if (pacer_due(&s->teaching, now))
			teach(s);
		if (pacer_due(&tally->pacer, now)) {
			send_one(s);
			/* Waking a sleeping switch takes a system call, which is the switch's latency and no stall of ours. */
			now = rte_rdtsc();
		}
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
			state.looked = rte_rdtsc();
			begin(&state, state.looked);
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
		if (atomic_load_explicit(&loop->taken, memory_order_acquire) == asked) {
			atomic_store(&loop->sending, true);
			return true;
		}
		usleep(1000);
	}
	return false;
}

void loop_pause(struct loop *loop)
{
	atomic_store(&loop->sending, false);
}
