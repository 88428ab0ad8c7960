/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "telemetry.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_telemetry.h>

#include "../before.h"
#include "../probe/frame.h"
#include "../probe/word.h"

#define ADD(name, value) rte_tel_data_add_dict_uint(data, name, value)

static struct options *served;

static struct port *port_of(const char *words, char **rest)
{
	unsigned long number = words ? strtoul(words, rest, 10) : PORTS_MOST;

	return !words || *rest == words || number >= served->count ? NULL : &served->ports[number];
}

/* DPDK's names where it has them. */
static int tell_port(const char *command __rte_unused, const char *words, struct rte_tel_data *data)
{
	char *rest;
	struct port *port = port_of(words, &rest);

	if (!port || *rest)
		return -1;
	const struct tally *tally = &port->tally;
	rte_tel_data_start_dict(data);
	ADD("ipackets", word_get(&tally->received));
	ADD("ibytes", word_get(&tally->received_bytes));
	ADD("opackets", word_get(&tally->sent));
	ADD("obytes", word_get(&tally->sent_bytes));
	ADD("foreign", word_get(&tally->foreign));
	ADD("send_rounds", word_get(&tally->send_rounds));
	ADD("sent_dry", word_get(&tally->sent_dry));
	ADD("receive_rounds", word_get(&tally->receive_rounds));
	ADD("received_full", word_get(&tally->received_full));
	ADD("up", atomic_load(&port->up));
	return 0;
}

/* DPDK takes no text of 128 characters or more: it would be left out without a word. */
static int tell(struct rte_tel_data *data, const char *said)
{
	rte_tel_data_start_dict(data);
	rte_tel_data_add_dict_string(data, "said", said);
	return 0;
}

static int take(struct rte_tel_data *data, struct port *port, const struct flood *flood)
{
	return tell(
		data, port_tell(port, flood) ? "ok" : "the thread that sends did not answer within 5 s, or the switch keeps its frames");
}

static bool read_address(const char *text, uint32_t *address)
{
	struct in_addr found;

	if (inet_pton(AF_INET, text, &found) != 1)
		return false;
	*address = ntohl(found.s_addr);
	return true;
}

/* PORT,BYTES,FLOWS,MAC,SOURCE,TARGET: bytes without FCS. */
static int start(const char *command __rte_unused, const char *words, struct rte_tel_data *data)
{
	struct flood flood = {.on = true};
	char *rest, mac[32], source[32], target[32];
	unsigned bytes, flows;
	struct port *port = port_of(words, &rest);

	if (!port || sscanf(rest, ",%u,%u,%31[^,],%31[^,],%31s", &bytes, &flows, mac, source, target) != 5 ||
		!read_mac(mac, flood.target_mac) || !read_address(source, &flood.source) || !read_address(target, &flood.target))
		return tell(
			data, "need PORT,BYTES,FLOWS,MAC,SOURCE,TARGET: numbers, and addresses such as 52:54:00:76:67:02 and 10.77.0.2");
	if (bytes < FRAME_SMALLEST || bytes > FRAME_LARGEST || !flows || flows > served->ring)
		return tell(data, "need 60 to 1514 bytes, and as many flows as the ring has descriptors, at most");
	flood.bytes = (uint16_t)bytes;
	flood.flows = (uint16_t)flows;
	return take(data, port, &flood);
}

static int stop(const char *command __rte_unused, const char *words, struct rte_tel_data *data)
{
	const struct flood none = {0};
	char *rest;
	struct port *port = port_of(words, &rest);

	return !port || *rest ? tell(data, "need the port's number") : take(data, port, &none);
}

bool telemetry_start(struct options *options)
{
	served = options;
	return !rte_telemetry_register_cmd("/frame_flood/port", tell_port, "A port's counters. Parameters: its number") &&
	       !rte_telemetry_register_cmd(
		       "/frame_flood/start", start, "Begins a flood. Parameters: PORT,BYTES,FLOWS,MAC,SOURCE,TARGET; bytes without FCS") &&
	       !rte_telemetry_register_cmd("/frame_flood/stop", stop, "Ends it. Parameters: the port's number");
}
