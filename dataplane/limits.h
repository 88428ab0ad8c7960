/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes that all files agree on. */
#ifndef VS_LIMITS_H
#define VS_LIMITS_H

enum {
	MAX_PORTS = 32, /* a set of ports is one 32-bit word */
	MAX_WORKERS = 16,
	MAX_QUEUES = 8, /* queue pairs of a port; a set of them is one byte */
	BURST = 32,     /* frames asked of a queue at once, as everywhere in DPDK */
	NAME_LENGTH = 32,
	HEADER_LENGTH = 14, /* of Ethernet: two addresses and a type */
};

#endif
