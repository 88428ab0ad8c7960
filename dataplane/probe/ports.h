/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two ports of the probe: frames are sent from port 0 and received on port 1. */
#ifndef VSPROF_PROBE_PORTS_H
#define VSPROF_PROBE_PORTS_H

#include <rte_ether.h>
#include <rte_mempool.h>

enum { SENDER, RECEIVER, PORTS };

struct ports {
	struct rte_mempool *pool;
	struct rte_ether_addr mac[PORTS];
};

/* Sets both ports up with one queue each way. Ends the program with a message where that can't be. */
void ports_open(struct ports *ports);
void ports_close(void);

#endif
