/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "options.h"

#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>

static const char HELP[] =
	"frame-flood [EAL options, two lcores or more] -- --port mac=MAC,path=SOCKET[,server=1] … [options]\n"
	"Sends floods of frames out of its vhost-user ports as it is told by DPDK's telemetry, and swallows what comes.\n"
	"\n"
	"  --port mac=MAC,path=SOCKET[,server=1]   a port; with server=1 the switch connects to it\n"
	"  --ring N        descriptors of a ring, a power of two from 64 to 1024 (1024)\n"
	"  --packed        packed rings\n"
	"  --mergeable     asks for mergeable buffers, though each holds a whole frame, and reads each frame's header\n";

static const struct option KNOWN[] = {
	{"port", required_argument, NULL, 'p'},
	{"ring", required_argument, NULL, 'r'},
	{"packed", no_argument, NULL, 'k'},
	{"mergeable", no_argument, NULL, 'm'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

enum { MAC, PATH, SERVER };
static char *const WORDS[] = {"mac", "path", "server", NULL};

bool read_mac(const char *text, uint8_t mac[6])
{
	int end = 0;

	return sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5], &end) == 6 &&
	       !text[end];
}

static void read_port(char *text, struct options *options)
{
	struct port *port = &options->ports[options->count];
	bool has_mac = false;
	char *value;

	if (options->count++ == PORTS_MOST)
		errx(2, "more than %d ports", PORTS_MOST);
	while (*text) {
		int word = getsubopt(&text, WORDS, &value);

		if (word < 0 || !value)
			errx(2, "--port: need mac=MAC,path=SOCKET[,server=1], found %s", value ? value : WORDS[word]);
		if (word == MAC && !(has_mac = read_mac(value, port->mac)))
			errx(2, "--port: need an address such as 52:54:00:76:67:01, found %s", value);
		if (word == PATH)
			port->path = value;
		if (word == SERVER && !(port->server = !strcmp(value, "1")) && strcmp(value, "0"))
			errx(2, "--port: server is 1 or 0, found %s", value);
	}
	if (!has_mac || !port->path)
		errx(2, "--port: need mac=MAC and path=SOCKET");
}

static uint16_t read_ring(const char *text)
{
	char *end;
	unsigned long found = strtoul(text, &end, 10);

	if (*end || found < 64 || found > RING_MOST || found & (found - 1))
		errx(2, "--ring: need a power of two from 64 to %d, found %s", RING_MOST, text);
	return (uint16_t)found;
}

void options_read(int argc, char **argv, struct options *options)
{
	bool packed = false, mergeable = false;
	int option;

	opterr = 0;
	options->ring = RING_MOST;
	while ((option = getopt_long(argc, argv, "", KNOWN, NULL)) != -1) {
		packed |= option == 'k';
		mergeable |= option == 'm';
		if (option == 'p')
			read_port(optarg, options);
		if (option == 'r')
			options->ring = read_ring(optarg);
		if (option == 'h') {
			fputs(HELP, stdout);
			exit(0);
		}
		if (option == '?')
			errx(2, "unknown option, or one without its value: %s; see --help", argv[optind - 1]);
	}
	if (optind < argc)
		errx(2, "it takes options only, found %s: see --help", argv[optind]);
	if (!options->count)
		errx(2, "found no --port, need one or more: see --help");
	for (unsigned i = 0; i < options->count; i++) {
		struct port *port = &options->ports[i];

		port->receive.is_packed = port->send.is_packed = packed;
		port->receive.reads_header = mergeable;
		port->features =
			(packed ? UINT64_C(1) << VIRTIO_F_RING_PACKED : 0) | (mergeable ? UINT64_C(1) << VIRTIO_NET_F_MRG_RXBUF : 0);
	}
}
