/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of vhost-user ports: librte_vhost speaks the protocol and maps the guest's memory; two sets of functions move frames. */
#ifndef VS_VHOST_H
#define VS_VHOST_H

#include <rte_vhost.h>

#include "port.h"
#include "vring.h"

/* A vhost-user port's own part. */
struct vhost {
	_Atomic int vid;    /* librte_vhost's number of the connection; -1: none */
	_Atomic bool ready; /* the endpoint has set up its memory and rings */
	bool mapped;        /* librte_vhost has its memory: it took the last table that it was told */
	unsigned refused;   /* of the messages that cost a file when they are refused */
	bool waited;        /* the endpoint made a worker wait for it */
	struct guest_memory memory;
	struct own_queue *queue[MAX_QUEUES]; /* with --rings own */
};

extern const struct port_driver vhost_librte_driver, vhost_own_driver;

/* The memory that librte_vhost has of a connection's guest. -1: it has none. */
int vhost_take_memory(int vid, struct guest_memory *memory);

/* Whether an address of ours lies in the memory of some port's guest. For a handler of signals, too. */
bool vhost_owns(const void *at);

/* --rings own: take the rings and the memory as they are now; no worker uses the port. -1: no memory, or no sane ring. */
int own_attach(struct port *port);
/* Tell librte_vhost how far we got. No worker uses the port, and no frame lies in the guest's memory. */
void own_detach(struct port *port);
/* Memory for a port's queues, and back. */
int own_open(struct port *port, struct why *why);
void own_close(struct port *port);
uint64_t own_in_flight(const struct port *port);
uint64_t own_broken(const struct port *port);

uint16_t own_receive(struct port *port, uint16_t queue, struct rte_mbuf **frames, uint16_t most);
uint16_t own_send(struct port *port, uint16_t queue, struct rte_mbuf **frames, uint16_t count, struct send_counters *sent);
bool own_arm(struct port *port, uint16_t queue, bool on);
int own_wake_fd(struct port *port, uint16_t queue);

/* The numbers of a pair's two rings. The guest's transmit ring is the one that we receive from. */
static inline uint16_t from_guest(uint16_t queue)
{
	return 2 * queue + 1;
}

static inline uint16_t to_guest(uint16_t queue)
{
	return 2 * queue;
}

#endif
