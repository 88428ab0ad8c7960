/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "options.h"

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const forward_names[] = {"switch", "wire", "loop", NULL};
const char *const rx_names[] = {"poll", "interrupt", "adaptive", NULL};
const char *const instrument_names[] = {"off", "on", "pmu", NULL};
static const char *const ring_names[] = {"librte", "own", NULL};
static const char *const dequeue_names[] = {"copy", "zero-copy", NULL};

static const char help[] = "vhost-switch [EAL options] -- [options]\n"
			   "The first lcore of --lcores controls, each other one moves frames.\n\n"
			   "  --port NAME,path=SOCKET[,server=1][,queues=N]  a vhost-user port; it connects, unless it is the server\n"
			   "  --port NAME[,queues=N],dev=DEVICE  a DPDK port: net_tap0,iface=x, net_null0, a PCI address\n"
			   "  --forward switch|wire|loop   by learned addresses; ports in pairs, in order; or back again\n"
			   "  --rings own|librte           who handles virtqueues: vhost-switch itself, or librte_vhost (own)\n"
			   "  --dequeue copy|zero-copy     copy frames out of the sender's memory, or not (copy)\n"
			   "  --rx poll|interrupt|adaptive sleep never, at once, or after --idle-us\n"
			   "  --idle-us N                  (300)\n"
			   "  --stages off|on|pmu          what is counted of each stage (on)\n"
			   "  --pmu-events NAME[=TYPE:CONFIG],...   read by rdpmc (cycles,instructions)\n"
			   "  --pmu-every N                on one burst in N (64)\n"
			   "  --hold-us N                  how long a frame waits for room in a full ring (0)\n"
			   "  --age-s N                    an address is forgotten after N seconds (300)\n"
			   "  --frames N                   frames in a pool (16383)\n"
			   "  --control SOCKET             takes commands: add-port, remove-port, learn, flush-macs, set stages, ports\n"
			   "  --no-numa                    do not place frames and polling by the endpoint's NUMA node\n"
			   "  --sched other|batch|idle|fifo:PRIO|rr:PRIO    scheduling of the workers\n"
			   "  --cpu-latency-us N           no sleep state of a CPU that takes longer to leave\n";

enum option_id {
	PORT = 1,
	FORWARD,
	RINGS,
	DEQUEUE,
	RX,
	IDLE,
	STAGES_OF,
	PMU_EVENTS,
	PMU_EVERY,
	HOLD,
	AGE,
	FRAMES,
	CONTROL,
	NO_NUMA,
	SCHED,
	LATENCY,
	HELP,
};

static const struct option known[] = {
	{"port", required_argument, NULL, PORT},
	{"forward", required_argument, NULL, FORWARD},
	{"rings", required_argument, NULL, RINGS},
	{"dequeue", required_argument, NULL, DEQUEUE},
	{"rx", required_argument, NULL, RX},
	{"idle-us", required_argument, NULL, IDLE},
	{"stages", required_argument, NULL, STAGES_OF},
	{"pmu-events", required_argument, NULL, PMU_EVENTS},
	{"pmu-every", required_argument, NULL, PMU_EVERY},
	{"hold-us", required_argument, NULL, HOLD},
	{"age-s", required_argument, NULL, AGE},
	{"frames", required_argument, NULL, FRAMES},
	{"control", required_argument, NULL, CONTROL},
	{"no-numa", no_argument, NULL, NO_NUMA},
	{"sched", required_argument, NULL, SCHED},
	{"cpu-latency-us", required_argument, NULL, LATENCY},
	{"help", no_argument, NULL, HELP},
	{NULL, 0, NULL, 0},
};

int word_in(const char *word, const char *const *list)
{
	for (int i = 0; list[i] != NULL; i++)
		if (strcmp(list[i], word) == 0)
			return i;
	return -1;
}

/* The word's place in the list goes to *into. */
static int choose(const char *option, const char *word, const char *const *list, int *into, struct why *why)
{
	char all[64] = "";

	*into = word_in(word, list);
	if (*into >= 0)
		return 0;
	for (int i = 0; list[i] != NULL; i++) {
		strcat(all, i > 0 ? ", " : "");
		strcat(all, list[i]);
	}
	return refuse(why, "--%s %s: unknown; use one of %s", option, word, all);
}

static int number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *into, struct why *why)
{
	char *end;

	*into = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || *into < least || *into > most)
		return refuse(why, "--%s %s: give a number from %lu to %lu", option, text, least, most);
	return 0;
}

static int add_port(const char *text, struct options *options, struct why *why)
{
	struct port_spec *spec = &options->port[options->ports];

	if (options->ports == MAX_PORTS)
		return refuse(why, "--port %s: at most %d ports", text, MAX_PORTS);
	if (port_parse(text, spec, why) != 0)
		return -1;
	for (unsigned i = 0; i < options->ports; i++)
		if (strcmp(options->port[i].name, spec->name) == 0)
			return refuse(why, "--port %s: there are two of that name: choose another", spec->name);
	options->ports++;
	return 0;
}

static int take_policy(const char *text, struct options *options, struct why *why)
{
	static const char *const names[] = {"other", "batch", "idle", "fifo", "rr", NULL};
	static const int policies[] = {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO, SCHED_RR};
	char name[16] = "";
	const char *colon = strchr(text, ':');
	uint64_t priority = 0;
	int which;

	snprintf(name, sizeof(name), "%.*s", (int)(colon != NULL ? colon - text : (long)strlen(text)), text);
	if (choose("sched", name, names, &which, why) != 0)
		return -1;
	if ((policies[which] == SCHED_FIFO || policies[which] == SCHED_RR) != (colon != NULL))
		return refuse(why, "--sched %s: fifo and rr take a priority (fifo:10), the others none", text);
	if (colon != NULL && number("sched", colon + 1, 1, 99, &priority, why) != 0)
		return -1;
	options->sched = text;
	options->policy = policies[which];
	options->priority = priority;
	return 0;
}

static int take_control(const char *path, struct options *options, struct why *why)
{
	if (strlen(path) >= sizeof(options->control))
		return refuse(why, "--control: the path has %zu characters, the kernel takes %zu: choose a shorter one", strlen(path),
			sizeof(options->control) - 1);
	strcpy(options->control, path);
	return 0;
}

static int take_number(int id, const char *text, struct options *options, struct why *why)
{
	uint64_t value = 0;
	int result = 0;

	switch (id) {
	case IDLE:
		return number("idle-us", text, 0, 1000000, &options->idle_us, why);
	case HOLD:
		return number("hold-us", text, 0, 1000000, &options->hold_us, why);
	case PMU_EVERY:
		result = number("pmu-every", text, 1, 1000000, &value, why);
		options->pmu_every = value;
		break;
	case AGE:
		result = number("age-s", text, 1, 1000000, &value, why);
		options->age_s = value;
		break;
	case FRAMES:
		result = number("frames", text, 1023, 4194303, &value, why);
		options->frames = value;
		break;
	case LATENCY:
		result = number("cpu-latency-us", text, 0, 1000000, &value, why);
		options->latency_us = value;
		break;
	}
	return result;
}

static int take(int id, const char *text, struct options *options, struct why *why)
{
	int choice, result;

	switch (id) {
	case PORT:
		return add_port(text, options, why);
	case FORWARD:
		result = choose("forward", text, forward_names, &choice, why);
		options->forward = choice;
		return result;
	case RINGS:
		result = choose("rings", text, ring_names, &choice, why);
		options->own_rings = choice;
		return result;
	case DEQUEUE:
		result = choose("dequeue", text, dequeue_names, &choice, why);
		options->zero_copy = choice;
		return result;
	case RX:
		result = choose("rx", text, rx_names, &choice, why);
		options->rx = choice;
		return result;
	case STAGES_OF:
		result = choose("stages", text, instrument_names, &choice, why);
		options->instruments = choice;
		return result;
	case PMU_EVENTS:
		result = pmu_parse(text, options->events, why);
		options->event_count = result < 0 ? 0 : result;
		return result < 0 ? -1 : 0;
	case CONTROL:
		return take_control(text, options, why);
	case NO_NUMA:
		options->numa = false;
		return 0;
	case SCHED:
		return take_policy(text, options, why);
	default:
		return take_number(id, text, options, why);
	}
}

static void set_defaults(struct options *options)
{
	memset(options, 0, sizeof(*options));
	options->own_rings = true;
	options->idle_us = 300;
	options->instruments = INSTRUMENTS_ON;
	options->pmu_every = 64;
	options->age_s = 300;
	options->frames = 16383;
	options->numa = true;
	options->policy = -1;
	options->latency_us = -1;
}

int options_parse(int argc, char **argv, struct options *options, struct why *why)
{
	int id;

	set_defaults(options);
	opterr = 0;
	optind = 1;
	while ((id = getopt_long(argc, argv, ":", known, NULL)) != -1) {
		if (id == HELP) {
			fputs(help, stdout);
			return 1;
		}
		if (id == ':')
			return refuse(why, "%s: needs a value; see --help", argv[optind - 1]);
		if (id == '?')
			return refuse(why, "%s: unknown option; see --help", argv[optind - 1]);
		if (take(id, optarg, options, why) != 0)
			return -1;
	}
	if (optind < argc)
		return refuse(why, "%s: not understood; see --help", argv[optind]);
	if (options->zero_copy && !options->own_rings)
		return refuse(why, "--dequeue zero-copy does not go with --rings librte: use --rings own");
	if (options->instruments == INSTRUMENTS_PMU && options->event_count == 0)
		options->event_count = pmu_parse("cycles,instructions", options->events, why);
	return 0;
}
