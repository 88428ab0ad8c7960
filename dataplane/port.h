/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A port: what endpoints attach to. How frames get in and out is its driver's; all others see this. */
#ifndef VS_PORT_H
#define VS_PORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_spinlock.h>

#include "counters.h"
#include "limits.h"
#include "why.h"

struct port;

struct port_spec {
	char name[NAME_LENGTH];
	char path[256];   /* of a vhost-user socket; empty: a DPDK port */
	char device[256]; /* of a DPDK port: its name or devargs */
	bool server;
	uint16_t queues;
};

/* A burst's worth of room to note what became of it. Called by one worker at a time for each queue. */
struct port_driver {
	const char *kind;
	/* Up to `most` frames from a queue, which are the caller's from now on. It counts their bytes, and drops those without a whole header. */
	uint16_t (*receive)(struct port *port, uint16_t queue, struct rte_mbuf **frames, uint16_t most);
	/* Takes the first frames for which there is room, and returns how many. It frees and counts these; the rest stays the caller's. */
	uint16_t (*send)(struct port *port, uint16_t queue, struct rte_mbuf **frames, uint16_t count, struct send_counters *sent);
	/* Ask to be notified of new frames, or not. Returns whether some wait already. */
	bool (*arm)(struct port *port, uint16_t queue, bool on);
	/* What becomes readable then; -1: it can't notify. */
	int (*wake_fd)(struct port *port, uint16_t queue);
	/* Takes the port away. No worker uses it any more. */
	void (*close)(struct port *port);
};

struct port {
	char name[NAME_LENGTH];
	uint16_t slot; /* its number */
	const struct port_driver *driver;
	struct port_spec spec;
	_Atomic bool up;          /* it has an endpoint that has set up its rings */
	_Atomic bool serving;     /* workers move its frames */
	_Atomic bool going;       /* being removed */
	uint16_t queues;          /* pairs at most */
	_Atomic uint32_t polled;  /* bit q: the endpoint sends on queue q */
	_Atomic uint32_t taking;  /* bit q: it receives on queue q */
	int node;                 /* NUMA node of the endpoint's memory; -1: unknown */
	struct rte_mempool *pool; /* for frames from it */
	_Atomic uint64_t connects;
	uint64_t features; /* negotiated, of a vhost-user port */
	struct queue_counters received[MAX_QUEUES];
	rte_spinlock_t sending[MAX_QUEUES]; /* taken where workers share a queue */
	void *own;                          /* the driver's */
};

/* Make a port and its driver's part; it comes up when its endpoint does. NULL, and the reason, where it can't be. */
struct port *port_open(const struct port_spec *spec, uint16_t slot, struct why *why);
void port_close(struct port *port);

/* A port's description, as --port and add-port have it: NAME,key=value,… . -1 and the reason if it is none. */
int port_parse(const char *text, struct port_spec *spec, struct why *why);

/* For a driver whose source lets frames through that are shorter than a header, or have it spread over mbufs: drops these, counts the rest. */
uint16_t port_drop_runts(struct queue_counters *counters, struct rte_mbuf **frames, uint16_t count);

/* The drivers. Their open() sets port->driver and port->own. */
int vhost_open(struct port *port, struct why *why);
int dpdk_open(struct port *port, struct why *why);

/* Frames in flight that lie in a guest's own memory (zero copy). */
uint64_t vhost_in_flight(const struct port *port);
/* Rings of the endpoint that are not touched any more, for what it wrote there (--rings own). */
uint64_t vhost_broken(const struct port *port);

#endif
