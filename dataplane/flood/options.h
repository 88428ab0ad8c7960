/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VSPROF_FLOOD_OPTIONS_H
#define VSPROF_FLOOD_OPTIONS_H

#include "port.h"

struct options {
	unsigned count;
	uint16_t ring;
	struct port ports[PORTS_MOST];
};

/* Ends the process with one line, and status 2, on wrong input. */
void options_read(int argc, char **argv, struct options *options);

/* "52:54:00:76:67:01"; false if it is none. */
bool read_mac(const char *text, uint8_t mac[6]);

#endif
