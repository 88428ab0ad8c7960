/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loop that moves frames: dequeue a burst from a queue, parse its headers, look up where each frame goes, enqueue it there.
 *
 * A burst is done with before the next one is taken (run to completion): no frame is handed from worker to worker. The loop is compiled once
 * for each kind of forwarding and of instrumentation, so that what is switched off costs nothing, not even a branch.
 */
#include "worker.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_rcu_qsbr.h>

#include "plane.h"
#include "probes.h"

const char *const stage_names[STAGES] = {"dequeue", "parse", "lookup", "enqueue", "other"};

enum {
	CLOCK_EVERY = 256, /* iterations between two looks at the clock, where nothing else looks at it */
	TO_ALL = 0xfffe,   /* a frame's way: to all ports but its own */
	TO_NONE = 0xffff,
	/* The most that the copies of a burst's frames for all ports may be: they are made while the other ports wait. */
	FLOOD_COPIES = 256,
	FLOOD_BYTES = 256 << 10,
};

/* A burst on its way through the stages. */
struct burst {
	struct port *source;
	uint16_t queue; /* of the source */
	uint16_t count;
	struct rte_mbuf *frame[BURST];
	uint64_t target_mac[BURST], source_mac[BURST];
	uint16_t way[BURST];
	bool parts;           /* not all go the same way */
	uint64_t began;       /* TSC */
	bool split;           /* its stages are told apart */
	uint64_t stage_began; /* TSC, where they are */
	bool sampled;         /* the PMU is read on it */
	uint64_t pmu[PMU_MOST];
};

/* ---- enqueue ---- */

static uint16_t send_queue(const struct worker *worker, const struct port *port)
{
	return worker->index % worker->layout->queues[port->slot];
}

/* Hands frames to a port's driver. Returns how many it took. */
static uint16_t send(struct worker *worker, struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	uint16_t queue = send_queue(worker, port), taken;
	/*
	 * Even where there are queues for all of them: while one worker uses a new layout, with another number of queues, the next one
	 * may still use the old one. A lock that nobody else wants costs some 20 cycles a burst.
	 */
	bool shared = plane.workers > 1;

	if (shared)
		rte_spinlock_lock(&port->sending[queue]);
	taken = port->driver->send(port, queue, frames, count, &worker->sent[port->slot]);
	if (shared)
		rte_spinlock_unlock(&port->sending[queue]);
	return taken;
}

static void hold(struct worker *worker, struct port *port, struct source source, struct rte_mbuf **frames, uint16_t count)
{
	struct held *held = &worker->held[port->slot];
	uint16_t room = HELD_MOST - held->count, kept = count < room ? count : room;

	if (held->count == 0)
		held->since = rte_rdtsc();
	for (uint16_t i = 0; i < kept; i++) {
		held->frame[held->count] = frames[i];
		held->source[held->count++] = source;
	}
	if (held->count > 0)
		worker->holding |= UINT32_C(1) << port->slot;
	if (kept < count) {
		worker->sent[port->slot].dropped_full += count - kept;
		rte_pktmbuf_free_bulk(frames + kept, count - kept);
	}
}

static void send_or_hold(struct worker *worker, struct port *port, struct source source, struct rte_mbuf **frames, uint16_t count)
{
	uint16_t taken = 0;

	/* Behind frames that wait already: a flow stays in order. */
	if (worker->held[port->slot].count == 0)
		taken = send(worker, port, frames, count);
	if (likely(taken == count))
		return;
	if (plane.options.hold_us > 0) {
		hold(worker, port, source, frames + taken, count - taken);
		return;
	}
	worker->sent[port->slot].dropped_full += count - taken;
	rte_pktmbuf_free_bulk(frames + taken, count - taken);
}

/* Keeps those of a port's held frames, from `from` on, whose source is still there; drops the others, and returns how many. */
static uint16_t compact(struct held *held, uint16_t from, const struct layout *layout)
{
	uint16_t kept = 0, dropped = 0;

	for (uint16_t i = from; i < held->count; i++)
		if (layout->ports & (UINT32_C(1) << held->source[i].slot)) {
			held->frame[kept] = held->frame[i];
			held->source[kept++] = held->source[i];
		} else {
			rte_pktmbuf_free(held->frame[i]);
			dropped++;
		}
	held->count = kept;
	return dropped;
}

static void send_held(struct worker *worker, struct port *port)
{
	struct held *held = &worker->held[port->slot];
	uint16_t count = held->count < BURST ? held->count : BURST;
	uint16_t taken = send(worker, port, held->frame, count);
	uint64_t patience = plane.options.hold_us * rte_get_tsc_hz() / US_PER_S;

	if (taken > 0) {
		compact(held, taken, worker->layout);
		held->since = rte_rdtsc();
	} else if (rte_rdtsc() - held->since > patience) {
		worker->sent[port->slot].dropped_full += held->count;
		rte_pktmbuf_free_bulk(held->frame, held->count);
		held->count = 0;
	}
	if (held->count == 0)
		worker->holding &= ~(UINT32_C(1) << port->slot);
}

static void send_all_held(struct worker *worker)
{
	for (uint32_t left = worker->holding; left != 0; left &= left - 1)
		send_held(worker, worker->layout->port[__builtin_ctz(left)]);
}

static struct source source_of(const struct burst *burst)
{
	return (struct source){burst->source->slot, burst->queue};
}

/* Frames for all ports, beyond what a burst may flood, go nowhere, as with the storm control of other switches. */
static void limit_flood(struct worker *worker, struct burst *burst, int others)
{
	uint32_t copies = 0, bytes = 0;

	for (uint16_t i = 0; i < burst->count; i++) {
		if (burst->way[i] != TO_ALL)
			continue;
		copies += others;
		bytes += others * burst->frame[i]->pkt_len;
		if (copies > FLOOD_COPIES || bytes > FLOOD_BYTES) {
			burst->way[i] = TO_NONE;
			worker->counters.flood_dropped++;
		}
	}
}

/* Sends each port's part of a burst whose frames go different ways. */
static void enqueue_apart(struct worker *worker, struct burst *burst)
{
	const struct layout *layout = worker->layout;
	struct rte_mbuf *group[BURST];
	uint32_t ports = layout->ports & ~(UINT32_C(1) << burst->source->slot);
	int others = __builtin_popcount(ports);

	limit_flood(worker, burst, others);
	for (uint16_t i = 0; i < burst->count; i++) {
		if (burst->way[i] == TO_NONE || (burst->way[i] == TO_ALL && others == 0))
			rte_pktmbuf_free(burst->frame[i]);
		else if (burst->way[i] == TO_ALL && others > 1)
			rte_pktmbuf_refcnt_update(burst->frame[i], others - 1);
	}
	for (; ports != 0; ports &= ports - 1) {
		uint16_t slot = __builtin_ctz(ports), count = 0;

		for (uint16_t i = 0; i < burst->count; i++)
			if (burst->way[i] == slot || burst->way[i] == TO_ALL)
				group[count++] = burst->frame[i];
		if (count > 0)
			send_or_hold(worker, layout->port[slot], source_of(burst), group, count);
	}
}

static __rte_always_inline void enqueue(struct worker *worker, struct burst *burst)
{
	uint16_t way = burst->way[0];

	if (likely(!burst->parts && way < MAX_PORTS))
		send_or_hold(worker, worker->layout->port[way], source_of(burst), burst->frame, burst->count);
	else
		enqueue_apart(worker, burst);
}

/* ---- dequeue, parse, look up ---- */

static __rte_always_inline uint16_t dequeue(struct burst *burst, const struct poll_entry *entry)
{
	struct port *port = entry->port;
	uint16_t count = port->driver->receive(port, entry->queue, burst->frame, BURST);

	burst->source = port;
	burst->queue = entry->queue;
	port->received[entry->queue].packets += count;
	burst->count = count;
	return count;
}

static __rte_always_inline uint64_t load_mac(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return rte_le_to_cpu_64(word) & UINT64_C(0xffffffffffff);
}

static __rte_always_inline void parse(struct burst *burst)
{
	for (uint16_t i = 0; i < burst->count; i++) {
		const uint8_t *header = rte_pktmbuf_mtod(burst->frame[i], const uint8_t *);

		/* Eight bytes from offset 6 end with the header's 14. */
		burst->target_mac[i] = load_mac(header);
		burst->source_mac[i] = load_mac(header + 6);
	}
}

static uint16_t way_to(struct worker *worker, const struct burst *burst, uint64_t mac)
{
	uint16_t slot = mac_is_group(mac) ? MAC_UNKNOWN : mac_lookup(plane.macs, mac, worker->now_s);

	if (slot == burst->source->slot)
		return TO_NONE;
	return slot != MAC_UNKNOWN && worker->layout->ports & (UINT32_C(1) << slot) ? slot : TO_ALL;
}

/* Neighbours in a burst mostly have the same addresses: what was found for one holds for the next. */
static __rte_always_inline void look_up(struct worker *worker, struct burst *burst)
{
	uint64_t source = 0, target = ~UINT64_C(0);
	uint16_t way = TO_NONE;

	burst->parts = false;
	for (uint16_t i = 0; i < burst->count; i++) {
		if (burst->source_mac[i] != source) {
			source = burst->source_mac[i];
			mac_learn(plane.macs, source, burst->source->slot, worker->now_s);
		}
		if (burst->target_mac[i] != target) {
			target = burst->target_mac[i];
			way = way_to(worker, burst, target);
			burst->parts |= i > 0 && way != burst->way[0];
		}
		burst->way[i] = way;
		if (unlikely(way == TO_ALL))
			worker->counters.flooded++;
		else if (unlikely(way == TO_NONE))
			worker->counters.filtered++;
	}
}

/* Slots 0 and 1 are a pair, 2 and 3, and so on; in a loop each slot is its own peer. */
static __rte_always_inline void take_wire(struct worker *worker, struct burst *burst)
{
	uint16_t peer = burst->source->slot ^ (plane.options.forward == FORWARD_WIRE);
	uint16_t way = worker->layout->port[peer] != NULL ? peer : TO_NONE;

	burst->parts = false;
	for (uint16_t i = 0; i < burst->count; i++)
		burst->way[i] = way;
}

/* ---- instruments ---- */

static void end_sampled_stage(struct worker *worker, struct burst *burst, enum stage stage)
{
	uint64_t values[PMU_MOST];

	pmu_read(&worker->pmu, values);
	for (unsigned event = 0; event < worker->pmu.count; event++)
		worker->counters.pmu[stage][event] += values[event] - burst->pmu[event];
	/* Again, so that the reading itself is not in the next stage. */
	pmu_read(&worker->pmu, burst->pmu);
}

static __rte_always_inline void end_stage(struct worker *worker, struct burst *burst, enum stage stage, int instruments)
{
	uint64_t now;

	if (instruments == INSTRUMENTS_OFF)
		return;
	if (instruments == INSTRUMENTS_PMU && unlikely(burst->sampled)) {
		end_sampled_stage(worker, burst, stage);
		return;
	}
	if (likely(!burst->split))
		return;
	now = rte_rdtsc();
	worker->counters.stage_cycles[stage] += now - burst->stage_began;
	burst->stage_began = now;
}

static __rte_always_inline void begin_burst(struct worker *worker, struct burst *burst, int instruments)
{
	if (instruments == INSTRUMENTS_OFF)
		return;
	burst->sampled = false;
	burst->began = burst->stage_began = worker->now;
	burst->split = worker->until_split == 0;
	if (instruments != INSTRUMENTS_PMU)
		return;
	burst->sampled = worker->until_sample == 0;
	if (unlikely(burst->sampled))
		pmu_read(&worker->pmu, burst->pmu);
}

static void end_sampled_burst(struct worker *worker, const struct burst *burst)
{
	worker->until_sample = plane.options.pmu_every - 1;
	worker->counters.pmu_bursts++;
	worker->counters.pmu_packets += burst->count;
	/* Its cycles hold the cost of reading: they are nobody's. */
	worker->now = rte_rdtsc();
}

static __rte_always_inline void note_longest(struct worker *worker, const struct burst *burst)
{
	if (unlikely(worker->now - burst->began > worker->counters.longest_cycles))
		worker->counters.longest_cycles = worker->now - burst->began;
}

static __rte_always_inline void end_split(struct worker *worker, const struct burst *burst)
{
	struct worker_counters *counters = &worker->counters;

	counters->split_bursts++;
	counters->split_packets += burst->count;
	counters->costs[cost_bucket((uint32_t)(worker->now - burst->began) / burst->count)]++;
	/* By chance, so that each queue has its share, whatever their order. The clock's lowest bits may stand still. */
	worker->until_split = worker->now >> 4 & (SPLIT_RARELY - 1);
}

static __rte_always_inline void end_burst(struct worker *worker, struct burst *burst, int instruments)
{
	struct worker_counters *counters = &worker->counters;

	counters->bursts++;
	counters->packets += burst->count;
	if (instruments == INSTRUMENTS_OFF)
		return;
	if (instruments == INSTRUMENTS_PMU) {
		if (unlikely(burst->sampled)) {
			end_sampled_burst(worker, burst);
			return;
		}
		if (worker->until_sample > 0)
			worker->until_sample--;
	}
	worker->now = burst->split ? burst->stage_began : rte_rdtsc();
	counters->busy_cycles += worker->now - burst->began;
	note_longest(worker, burst);
	counters->timed_bursts++;
	counters->timed_packets += burst->count;
	counters->burst_sizes[burst->count]++;
	if (unlikely(burst->split))
		end_split(worker, burst);
	else
		worker->until_split--;
}

static __rte_always_inline void empty_poll(struct worker *worker, const struct burst *burst, int instruments)
{
	uint64_t now;

	if (instruments == INSTRUMENTS_OFF)
		return;
	now = rte_rdtsc();
	worker->counters.empty_polls++;
	/* The PMU was read for nothing: that time is nobody's. */
	if (instruments != INSTRUMENTS_PMU || likely(!burst->sampled))
		worker->counters.idle_cycles += now - worker->now;
	worker->now = now;
	/* It may have cost something nevertheless: frames that were refused. */
	note_longest(worker, burst);
}

/* ---- the loop ---- */

static __rte_always_inline bool poll_queue(struct worker *worker, const struct poll_entry *entry, int forward, int instruments)
{
	struct burst burst;
	uint16_t slot = entry->port->slot;

	begin_burst(worker, &burst, instruments);
	if (dequeue(&burst, entry) == 0) {
		empty_poll(worker, &burst, instruments);
		return false;
	}
	end_stage(worker, &burst, STAGE_DEQUEUE, instruments);
	PROBE3(burst_dequeued, slot, entry->queue, burst.count);
	if (forward == FORWARD_SWITCH) {
		parse(&burst);
		end_stage(worker, &burst, STAGE_PARSE, instruments);
		PROBE2(burst_parsed, slot, burst.count);
		look_up(worker, &burst);
		end_stage(worker, &burst, STAGE_LOOKUP, instruments);
		PROBE2(burst_looked_up, slot, burst.count);
	} else {
		take_wire(worker, &burst);
	}
	enqueue(worker, &burst);
	end_stage(worker, &burst, STAGE_ENQUEUE, instruments);
	PROBE2(burst_enqueued, slot, burst.count);
	end_burst(worker, &burst, instruments);
	return true;
}

/*
 * Of the frames held for a port, those whose queue goes to another worker leave, and those whose queue nobody polls any more are
 * dropped: a queue's frames are freed by the worker that polls it.
 */
static void let_go(struct worker *worker, uint16_t slot, const uint8_t *polled, const struct layout *layout)
{
	struct held *held = &worker->held[slot];
	struct handed *leaving = &worker->leaving[slot];
	uint16_t kept = 0;

	for (uint16_t i = 0; i < held->count; i++) {
		struct source source = held->source[i];
		uint8_t bit = 1 << source.queue;

		if (layout->port[slot] != NULL && polled[source.slot] & bit) {
			held->frame[kept] = held->frame[i];
			held->source[kept++] = source;
		} else if (layout->port[slot] != NULL && layout->moving[source.slot] & bit) {
			leaving->frame[leaving->count] = held->frame[i];
			leaving->source[leaving->count++] = source;
		} else {
			worker->sent[slot].dropped_down++;
			rte_pktmbuf_free(held->frame[i]);
		}
	}
	held->count = kept;
}

/* Frames whose queue has come to this worker wait behind its own. */
static void take_in(struct worker *worker, uint16_t slot)
{
	struct handed *arriving = &worker->arriving[slot];
	struct port *port = worker->layout->port[slot];

	worker->sent[slot].dropped_full += arriving->dropped;
	for (uint16_t i = 0; i < arriving->count; i++)
		if (port != NULL) {
			hold(worker, port, arriving->source[i], &arriving->frame[i], 1);
		} else {
			worker->sent[slot].dropped_down++;
			rte_pktmbuf_free(arriving->frame[i]);
		}
	arriving->count = arriving->dropped = 0;
}

/* Takes a new layout: frames for a port that is gone, or in the memory of one, are dropped before anybody relies on it. */
static void adopt(struct worker *worker, const struct layout *layout)
{
	uint8_t polled[MAX_PORTS] = {0};

	worker->layout = layout;
	worker->serial = layout->serial;
	for (uint16_t i = 0; i < layout->polls[worker->index]; i++)
		polled[layout->poll[worker->index][i].port->slot] |= 1 << layout->poll[worker->index][i].queue;
	for (unsigned slot = 0; slot < MAX_PORTS; slot++) {
		let_go(worker, slot, polled, layout);
		take_in(worker, slot);
		if (worker->held[slot].count == 0)
			worker->holding &= ~(UINT32_C(1) << slot);
	}
	/* Who polls wants no notification; who sleeps asks for it before. */
	for (uint16_t i = 0; i < layout->polls[worker->index]; i++) {
		const struct poll_entry *entry = &layout->poll[worker->index][i];

		entry->port->driver->arm(entry->port, entry->queue, false);
	}
	if (plane.options.rx != RX_POLL)
		sleep_adopt(worker);
}

static void look_at_clock(struct worker *worker)
{
	worker->now_s = rte_rdtsc() / rte_get_tsc_hz();
}

static void maybe_sleep(struct worker *worker, bool busy)
{
	uint64_t now = rte_rdtsc();

	if (busy || worker->holding != 0) {
		worker->last_frame = now;
		return;
	}
	if (plane.options.rx == RX_INTERRUPT || now - worker->last_frame > plane.options.idle_us * rte_get_tsc_hz() / US_PER_S) {
		sleep_until_frame(worker);
		look_at_clock(worker);
		/* When the last frame came stays: a card also interrupts for one that was polled before, and then the worker sleeps on. */
		worker->now = rte_rdtsc();
	}
}

static __rte_always_inline void housekeeping(struct worker *worker, int instruments)
{
	uint64_t now;

	if (likely(worker->holding == 0))
		return;
	send_all_held(worker);
	if (instruments == INSTRUMENTS_OFF)
		return;
	now = rte_rdtsc();
	worker->counters.other_cycles += now - worker->now;
	worker->now = now;
}

static __rte_always_inline void loop(struct worker *worker, int forward, int instruments)
{
	uint32_t turn = 0;

	worker->now = worker->last_frame = rte_rdtsc();
	worker->counters.longest_cycles = 0;
	while (likely(!atomic_load_explicit(&plane.stopping, memory_order_relaxed) &&
		      atomic_load_explicit(&worker->instruments, memory_order_relaxed) == instruments)) {
		const struct layout *layout;
		bool busy = false;

		/* In this order: whoever waits for us must know that what we load next is at least as new as what it published. */
		rte_rcu_qsbr_quiescent(plane.rcu, worker->index);
		layout = atomic_load_explicit(&plane.layout, memory_order_acquire);
		if (unlikely(layout != worker->layout))
			adopt(worker, layout);
		if (turn++ % CLOCK_EVERY == 0)
			look_at_clock(worker);
		for (uint16_t i = 0; i < layout->polls[worker->index]; i++)
			busy |= poll_queue(worker, &layout->poll[worker->index][i], forward, instruments);
		housekeeping(worker, instruments);
		if (plane.options.rx != RX_POLL)
			maybe_sleep(worker, busy);
	}
}

static void loop_as_asked(struct worker *worker)
{
	int instruments = atomic_load(&worker->instruments);

	if (plane.options.forward == FORWARD_SWITCH) {
		if (instruments == INSTRUMENTS_OFF)
			loop(worker, FORWARD_SWITCH, INSTRUMENTS_OFF);
		else if (instruments == INSTRUMENTS_ON)
			loop(worker, FORWARD_SWITCH, INSTRUMENTS_ON);
		else
			loop(worker, FORWARD_SWITCH, INSTRUMENTS_PMU);
	} else {
		if (instruments == INSTRUMENTS_OFF)
			loop(worker, FORWARD_WIRE, INSTRUMENTS_OFF);
		else if (instruments == INSTRUMENTS_ON)
			loop(worker, FORWARD_WIRE, INSTRUMENTS_ON);
		else
			loop(worker, FORWARD_WIRE, INSTRUMENTS_PMU);
	}
}

static void take_policy(void)
{
	struct sched_param param = {.sched_priority = plane.options.priority};

	/* main() tried the same before it started us: only a limit that was changed meanwhile can refuse it now. */
	if (plane.options.policy >= 0 && sched_setscheduler(0, plane.options.policy, &param) != 0)
		RTE_LOG(WARNING, USER1, "lcore %u: the kernel refused the scheduling policy of --sched\n", rte_lcore_id());
}

int worker_main(void *argument)
{
	struct worker *worker = argument;
	struct why why;

	take_policy();
	if (plane.options.event_count > 0 && pmu_open(&worker->pmu, plane.options.events, plane.options.event_count, &why) != 0) {
		/* main() tried the same before it started us: only another user of the PMU can have come in between. */
		RTE_LOG(WARNING, USER1, "lcore %u: %s\n", rte_lcore_id(), why.text);
	}
	rte_rcu_qsbr_thread_register(plane.rcu, worker->index);
	rte_rcu_qsbr_thread_online(plane.rcu, worker->index);
	worker->pid = rte_gettid();
	while (!plane.stopping)
		loop_as_asked(worker);
	rte_rcu_qsbr_thread_offline(plane.rcu, worker->index);
	rte_rcu_qsbr_thread_unregister(plane.rcu, worker->index);
	pmu_close(&worker->pmu);
	return 0;
}
