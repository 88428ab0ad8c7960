/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ports of the probe: frames are sent from port 0, and received on port 1; or, where there is only one, on port 0. */
#ifndef VSPROF_PROBE_PORTS_H
#define VSPROF_PROBE_PORTS_H

#include <rte_ether.h>
#include <rte_mempool.h>

enum { SENDER, PORTS_MOST = 2 };

struct ports {
	struct rte_mempool *pool;
	uint16_t count;
	uint16_t receiver; /* the last one */
	struct rte_ether_addr mac[PORTS_MOST];
};

/* Sets each port up with one queue each way. Ends the program with a message where that can't be. */
void ports_open(struct ports *ports);
void ports_close(const struct ports *ports);

#endif
