/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ports and the workers, and which worker polls what.
 *
 * Workers see the ports only through a layout, which never changes: whenever a port comes, goes, gets or loses its endpoint, a new
 * layout is published, and the old one is freed once no worker can hold it (read-copy-update by quiescent states). So workers
 * take no lock, and whoever publishes knows afterwards that no worker uses what the new layout lacks.
 *
 * A queue is polled by one worker at a time. Where a queue goes from one worker to another, a layout without it is published in
 * between: while workers take a layout, some still use the one before.
 */
#ifndef VS_PLANE_H
#define VS_PLANE_H

#include <stdatomic.h>

#include "mac_table.h"
#include "options.h"
#include "port.h"
#include "worker.h"

struct poll_entry {
	struct port *port;
	uint16_t queue;
};

struct layout {
	uint64_t serial;              /* 0, 1, 2 …: an address may be used again */
	struct port *port[MAX_PORTS]; /* by slot; NULL: none, or down */
	uint32_t ports;               /* bit s: port[s] is there */
	uint16_t polls[MAX_WORKERS];  /* entries of poll[w] */
	struct poll_entry poll[MAX_WORKERS][MAX_PORTS * MAX_QUEUES];
	uint8_t moving[MAX_PORTS];  /* bit q: nobody polls queue q, which another worker than before will poll in the next layout */
	uint16_t queues[MAX_PORTS]; /* to send on */
};

struct plane {
	struct options options;
	struct mac_table *macs;
	unsigned workers;
	struct worker *worker[MAX_WORKERS];
	struct port *port[MAX_PORTS];
	_Atomic(struct layout *) layout;
	_Atomic bool stopping;
	struct rte_rcu_qsbr *rcu;
	int ask_fd; /* readable: the main thread is to publish */
};

extern struct plane plane;

/* Memory for the workers, one for each lcore but the main one, and an empty layout. -1 and the reason where it can't be. */
int plane_init(struct why *why);

/* Adds a port. -1 and the reason where it can't be. For the main thread. */
int plane_add(const struct port_spec *spec, struct why *why);

/* Removes a port: its frames in flight are done with first. For the main thread. */
int plane_remove(const char *name, struct why *why);

struct port *plane_find(const char *name);

/*
 * Publishes what the ports are now. When it returns, no worker uses a port, or frames in the memory of a port's guest, that is
 * not up and not polled in the new layout. Waits for all workers: never to be called by one.
 */
void plane_publish(void);

/* Have the main thread publish, soon: for whoever may hold a lock that a worker waits for. */
void plane_ask(void);

/* Frames from memory of this NUMA node; shared by all ports there. NULL: no memory. */
struct rte_mempool *plane_pool(int node);

#endif
