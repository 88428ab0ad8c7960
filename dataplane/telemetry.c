/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "telemetry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_mempool.h>
#include <rte_telemetry.h>

#include "before.h"
#include "plane.h"

#define ADD(name, value) rte_tel_data_add_dict_uint(data, name, value)

/* ---- ports ---- */

static int tell_ports(const char *command __rte_unused, const char *words __rte_unused, struct rte_tel_data *data)
{
	rte_tel_data_start_array(data, RTE_TEL_STRING_VAL);
	for (unsigned slot = 0; slot < MAX_PORTS; slot++)
		if (plane.port[slot] != NULL)
			rte_tel_data_add_array_string(data, plane.port[slot]->name);
	return 0;
}

static struct send_counters sent_to(const struct port *port, int queue)
{
	struct send_counters total = {0};

	for (unsigned w = 0; w < plane.workers; w++) {
		const struct send_counters *one = &plane.worker[w]->sent[port->slot];

		if (queue >= 0 && w % RTE_MAX(__builtin_ctz(~port->taking), 1) != (unsigned)queue)
			continue;
		total.packets += one->packets;
		total.bytes += one->bytes;
		total.dropped_full += one->dropped_full;
		total.dropped_down += one->dropped_down;
		total.too_long += one->too_long;
	}
	return total;
}

static void add_traffic(struct rte_tel_data *data, const struct port *port, int queue)
{
	struct queue_counters received = {0};
	struct send_counters sent = sent_to(port, queue);

	for (int q = 0; q < MAX_QUEUES; q++) {
		if (queue >= 0 && q != queue)
			continue;
		received.packets += port->received[q].packets;
		received.bytes += port->received[q].bytes;
		received.refused += port->received[q].refused;
	}
	ADD("rx_packets", received.packets);
	ADD("rx_bytes", received.bytes);
	ADD("rx_refused", received.refused);
	ADD("tx_packets", sent.packets);
	ADD("tx_bytes", sent.bytes);
	ADD("tx_dropped_full", sent.dropped_full);
	ADD("tx_dropped_down", sent.dropped_down);
	ADD("tx_too_long", sent.too_long);
}

static int tell_port(const char *command __rte_unused, const char *words, struct rte_tel_data *data)
{
	const struct port *port = words == NULL ? NULL : plane_find(words);

	if (port == NULL)
		return -1;
	rte_tel_data_start_dict(data);
	rte_tel_data_add_dict_string(data, "name", port->name);
	rte_tel_data_add_dict_string(data, "kind", port->driver->kind);
	ADD("up", port->serving);
	ADD("queues", (unsigned)__builtin_popcount(port->polled));
	rte_tel_data_add_dict_int(data, "numa_node", port->node);
	add_traffic(data, port, -1);
	ADD("connects", port->connects);
	ADD("in_flight", vhost_in_flight(port));
	ADD("broken_rings", vhost_broken(port));
	rte_tel_data_add_dict_uint_hex(data, "features", port->features, 64);
	return 0;
}

static int tell_queue(const char *command __rte_unused, const char *words, struct rte_tel_data *data)
{
	char name[NAME_LENGTH];
	unsigned queue;
	const struct port *port;

	if (words == NULL || sscanf(words, "%31[^,],%u", name, &queue) != 2)
		return -1;
	port = plane_find(name);
	if (port == NULL || queue >= port->queues)
		return -1;
	rte_tel_data_start_dict(data);
	add_traffic(data, port, queue);
	return 0;
}

/* ---- workers ---- */

static const struct worker *worker_of(const char *words)
{
	for (unsigned w = 0; words != NULL && w < plane.workers; w++)
		if (plane.worker[w]->lcore == (unsigned)atoi(words))
			return plane.worker[w];
	return NULL;
}

static int tell_lcores(const char *command __rte_unused, const char *words __rte_unused, struct rte_tel_data *data)
{
	rte_tel_data_start_array(data, RTE_TEL_UINT_VAL);
	for (unsigned w = 0; w < plane.workers; w++)
		rte_tel_data_add_array_uint(data, plane.worker[w]->lcore);
	return 0;
}

static void add_stages(struct rte_tel_data *data, const struct worker *worker)
{
	const struct worker_counters *counters = &worker->counters;
	/* Once: whoever takes the one from the other must find the same in both. */
	uint64_t other = counters->other_cycles;
	char name[96];

	ADD("split_bursts", counters->split_bursts);
	ADD("split_packets", counters->split_packets);
	for (int stage = 0; stage < STAGE_OTHER; stage++) {
		snprintf(name, sizeof(name), "stage_%s_cycles", stage_names[stage]);
		ADD(name, counters->stage_cycles[stage]);
	}
	ADD("stage_other_cycles", other);
	ADD("busy_cycles", counters->busy_cycles + other);
	ADD("idle_cycles", counters->idle_cycles);
}

static void add_pmu(struct rte_tel_data *data, const struct worker *worker)
{
	char name[96];

	ADD("pmu_bursts", worker->counters.pmu_bursts);
	ADD("pmu_packets", worker->counters.pmu_packets);
	ADD("pmu_read_cycles", worker->pmu.read_cycles);
	for (int stage = 0; stage < STAGES; stage++)
		for (unsigned event = 0; event < worker->pmu.count; event++) {
			snprintf(name, sizeof(name), "pmu_%s_%s", stage_names[stage], plane.options.events[event].name);
			ADD(name, worker->counters.pmu[stage][event]);
		}
}

static int tell_lcore(const char *command __rte_unused, const char *words, struct rte_tel_data *data)
{
	const struct worker *worker = worker_of(words);

	if (worker == NULL)
		return -1;
	rte_tel_data_start_dict(data);
	ADD("lcore", worker->lcore);
	ADD("cpu", rte_lcore_to_cpu_id(worker->lcore) < 0 ? 0 : (uint64_t)rte_lcore_to_cpu_id(worker->lcore));
	ADD("pid", worker->pid);
	ADD("tsc_hz", rte_get_tsc_hz());
	ADD("rx_bursts", worker->counters.bursts);
	ADD("rx_packets", worker->counters.packets);
	ADD("flooded", worker->counters.flooded);
	ADD("flood_dropped", worker->counters.flood_dropped);
	ADD("filtered", worker->counters.filtered);
	ADD("timed_bursts", worker->counters.timed_bursts);
	ADD("timed_packets", worker->counters.timed_packets);
	ADD("empty_polls", worker->counters.empty_polls);
	ADD("longest_poll_ns", worker->counters.longest_cycles * 1e9 / rte_get_tsc_hz());
	add_stages(data, worker);
	ADD("sleeps", worker->counters.sleeps);
	ADD("wakeups", worker->counters.wakeups);
	ADD("sleep_ns", worker->counters.sleep_ns);
	if (worker->pmu.count > 0)
		add_pmu(data, worker);
	return 0;
}

static int tell_bursts(const char *command __rte_unused, const char *words, struct rte_tel_data *data)
{
	const struct worker *worker = worker_of(words);

	if (worker == NULL)
		return -1;
	rte_tel_data_start_array(data, RTE_TEL_UINT_VAL);
	for (int size = 0; size <= BURST; size++)
		rte_tel_data_add_array_uint(data, worker->counters.burst_sizes[size]);
	return 0;
}

static int tell_costs(const char *command __rte_unused, const char *words, struct rte_tel_data *data)
{
	const struct worker *worker = worker_of(words);
	struct rte_tel_data *bounds = rte_tel_data_alloc(), *counts = rte_tel_data_alloc();

	if (worker == NULL || bounds == NULL || counts == NULL) {
		rte_tel_data_free(bounds);
		rte_tel_data_free(counts);
		return -1;
	}
	rte_tel_data_start_dict(data);
	rte_tel_data_start_array(bounds, RTE_TEL_UINT_VAL);
	rte_tel_data_start_array(counts, RTE_TEL_UINT_VAL);
	for (unsigned bucket = 0; bucket < COST_BUCKETS; bucket++) {
		rte_tel_data_add_array_uint(bounds, cost_bound(bucket));
		rte_tel_data_add_array_uint(counts, worker->counters.costs[bucket]);
	}
	rte_tel_data_add_dict_container(data, "upper_bounds", bounds, 0);
	rte_tel_data_add_dict_container(data, "counts", counts, 0);
	return 0;
}

/* ---- the rest ---- */

enum { MACS_MOST = 256 }; /* a telemetry array holds 512 entries */

static int tell_macs(const char *command __rte_unused, const char *words __rte_unused, struct rte_tel_data *data)
{
	struct mac_entry entries[MACS_MOST];
	unsigned count = mac_list(plane.macs, rte_rdtsc() / rte_get_tsc_hz(), entries, MACS_MOST);
	char text[64];

	rte_tel_data_start_array(data, RTE_TEL_STRING_VAL);
	for (unsigned i = 0; i < count; i++) {
		const struct port *port = entries[i].port < MAX_PORTS ? plane.port[entries[i].port] : NULL;
		uint64_t mac = entries[i].mac;

		snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x %s %u", (unsigned)(mac & 255), (unsigned)(mac >> 8 & 255),
			(unsigned)(mac >> 16 & 255), (unsigned)(mac >> 24 & 255), (unsigned)(mac >> 32 & 255), (unsigned)(mac >> 40),
			port == NULL ? "-" : port->name, entries[i].age_s);
		rte_tel_data_add_array_string(data, text);
	}
	return 0;
}

static int tell_pool(const char *command __rte_unused, const char *words __rte_unused, struct rte_tel_data *data)
{
	const struct rte_mempool *pool = plane_pool(-1);

	rte_tel_data_start_dict(data);
	ADD("size", pool->size);
	ADD("available", rte_mempool_avail_count(pool));
	return 0;
}

static int tell_settings(const char *command __rte_unused, const char *words __rte_unused, struct rte_tel_data *data)
{
	const struct options *options = &plane.options;

	rte_tel_data_start_dict(data);
	rte_tel_data_add_dict_string(data, "forward", forward_names[options->forward]);
	rte_tel_data_add_dict_string(data, "rings", options->own_rings ? "own" : "librte");
	rte_tel_data_add_dict_string(data, "dequeue", options->zero_copy ? "zero-copy" : "copy");
	rte_tel_data_add_dict_string(data, "rx", rx_names[options->rx]);
	rte_tel_data_add_dict_string(data, "stages", instrument_names[plane.worker[0]->instruments]);
	ADD("idle_us", options->idle_us);
	ADD("hold_us", options->hold_us);
	ADD("age_s", options->age_s);
	ADD("frames", options->frames);
	ADD("numa", options->numa);
	ADD("burst", BURST);
	return 0;
}

static int tell_units(const char *command __rte_unused, const char *words __rte_unused, struct rte_tel_data *data)
{
	static const char *const units[][2] = {
		{"rx_packets", "packets"},
		{"rx_bytes", "bytes"},
		{"rx_refused", "packets"},
		{"tx_packets", "packets"},
		{"tx_bytes", "bytes"},
		{"tx_dropped_full", "packets"},
		{"tx_dropped_down", "packets"},
		{"tx_too_long", "packets"},
		{"broken_rings", "rings"},
		{"connects", "events"},
		{"in_flight", "packets"},
		{"rx_bursts", "events"},
		{"flooded", "packets"},
		{"flood_dropped", "packets"},
		{"longest_poll_ns", "nanoseconds"},
		{"filtered", "packets"},
		{"timed_bursts", "events"},
		{"timed_packets", "packets"},
		{"empty_polls", "events"},
		{"busy_cycles", "cycles"},
		{"idle_cycles", "cycles"},
		{"split_bursts", "events"},
		{"split_packets", "packets"},
		{"stage_dequeue_cycles", "cycles"},
		{"stage_parse_cycles", "cycles"},
		{"stage_lookup_cycles", "cycles"},
		{"stage_enqueue_cycles", "cycles"},
		{"stage_other_cycles", "cycles"},
		{"sleeps", "events"},
		{"wakeups", "events"},
		{"sleep_ns", "nanoseconds"},
		{"tsc_hz", "hertz"},
		{"pmu_bursts", "events"},
		{"pmu_packets", "packets"},
		{"pmu_read_cycles", "cycles"},
	};

	rte_tel_data_start_dict(data);
	for (size_t i = 0; i < RTE_DIM(units); i++)
		rte_tel_data_add_dict_string(data, units[i][0], units[i][1]);
	return 0;
}

int telemetry_init(struct why *why)
{
	static const struct {
		const char *command;
		telemetry_cb tell;
		const char *help;
	} commands[] = {
		{"/vhost_switch/ports", tell_ports, "Names of the ports."},
		{"/vhost_switch/port", tell_port, "State and counters of a port. Parameter: its name"},
		{"/vhost_switch/queue", tell_queue, "Counters of a queue pair. Parameters: port's name, queue"},
		{"/vhost_switch/lcores", tell_lcores, "Lcores of the workers."},
		{"/vhost_switch/lcore", tell_lcore, "Counters of a worker; cycles are the TSC's. Parameter: lcore"},
		{"/vhost_switch/burst_histogram", tell_bursts, "Timed bursts by their number of frames, 0 to 32. Parameter: lcore"},
		{"/vhost_switch/cycles_histogram", tell_costs, "Split bursts by their TSC cycles per frame. Parameter: lcore"},
		{"/vhost_switch/macs", tell_macs, "Learned addresses: address, port, age in seconds; 256 at most."},
		{"/vhost_switch/pool", tell_pool, "Frames in the pool, and how many of them are free."},
		{"/vhost_switch/settings", tell_settings, "What was asked of the switch."},
		{"/vhost_switch/units", tell_units, "Unit of each counter."},
	};

	for (size_t i = 0; i < RTE_DIM(commands); i++)
		if (rte_telemetry_register_cmd(commands[i].command, commands[i].tell, commands[i].help) != 0)
			return refuse(why, "DPDK's telemetry did not take %s", commands[i].command);
	return 0;
}
