/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plane.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>

enum {
	MAC_ORDER = 10,         /* 2^10 buckets of 8: 8,192 addresses, 96 KiB */
	GUEST_ADDRESSES = 1024, /* that a vhost-user port may have at once */
	POOL_CACHE = 256,
	NODES_MOST = 16,
};

struct plane plane;

/* Of publishing: the main thread and librte_vhost's both do. */
static pthread_mutex_t publishing = PTHREAD_MUTEX_INITIALIZER;
/* Of the last layout. */
static uint64_t serial;

static struct worker *worker_new(unsigned index, unsigned lcore, struct why *why)
{
	struct worker *worker = rte_zmalloc_socket("worker", sizeof(*worker), RTE_CACHE_LINE_SIZE, rte_lcore_to_socket_id(lcore));

	if (worker == NULL) {
		refuse(why, "no memory for the worker on lcore %u: give DPDK more (-m)", lcore);
		return NULL;
	}
	worker->index = index;
	worker->lcore = lcore;
	worker->instruments = plane.options.instruments;
	if (sleep_init(worker) != 0) {
		refuse(why, "no file descriptors left for the worker on lcore %u: raise ulimit -n", lcore);
		return NULL;
	}
	return worker;
}

static int make_workers(struct why *why)
{
	unsigned lcore;

	if (rte_lcore_count() < 2 || rte_lcore_count() > MAX_WORKERS + 1)
		return refuse(why, "found %u lcores: the first one controls, each other moves frames; give 2 to %d with --lcores",
			rte_lcore_count(), MAX_WORKERS + 1);
	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		plane.worker[plane.workers] = worker_new(plane.workers, lcore, why);
		if (plane.worker[plane.workers] == NULL)
			return -1;
		plane.workers++;
	}
	return 0;
}

int plane_init(struct why *why)
{
	size_t bytes;

	plane.ask_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (make_workers(why) != 0)
		return -1;
	plane.macs = mac_table_new(MAC_ORDER, plane.options.age_s);
	bytes = rte_rcu_qsbr_get_memsize(plane.workers);
	plane.rcu = rte_zmalloc("rcu", bytes, RTE_CACHE_LINE_SIZE);
	plane.layout = rte_zmalloc("layout", sizeof(struct layout), RTE_CACHE_LINE_SIZE);
	if (plane.macs == NULL || plane.rcu == NULL || plane.layout == NULL || rte_rcu_qsbr_init(plane.rcu, plane.workers) != 0)
		return refuse(why, "no memory for tables: give DPDK more (-m)");
	if (plane_pool(rte_socket_id()) == NULL)
		return refuse(why, "no memory for %u frames: give DPDK more (-m), or ask for fewer (--frames)", plane.options.frames);
	return 0;
}

static struct rte_mempool *pool_new(int node)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool;

	snprintf(name, sizeof(name), "frames%d", node);
	pool = rte_pktmbuf_pool_create(name, plane.options.frames, POOL_CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, node);
	/* A node without hugepages of its own: another node's memory is slower, and better than none. */
	if (pool == NULL)
		pool = rte_pktmbuf_pool_create(name, plane.options.frames, POOL_CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	return pool;
}

struct rte_mempool *plane_pool(int node)
{
	/* The main thread and librte_vhost's both add ports. */
	static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
	static struct rte_mempool *pools[NODES_MOST];
	struct rte_mempool *pool;

	if (!plane.options.numa || node < 0 || node >= NODES_MOST)
		node = rte_socket_id() < NODES_MOST ? rte_socket_id() : 0;
	pthread_mutex_lock(&making);
	if (pools[node] == NULL)
		pools[node] = pool_new(node);
	pool = pools[node];
	pthread_mutex_unlock(&making);
	return pool;
}

/*
 * The worker for one more queue: of those on the port's node, or else of all, the one with the fewest. Of equals the first in one round and
 * the last in the next: were it always the first, every other port would be one worker's, and of pairs of guests all that send.
 */
static unsigned choose_worker(const struct layout *layout, const struct port *port)
{
	int best = -1;

	for (int pass = 0; pass < 2 && best < 0; pass++)
		for (unsigned w = 0; w < plane.workers; w++) {
			bool near = (int)rte_lcore_to_socket_id(plane.worker[w]->lcore) == port->node;

			if (pass == 0 && plane.options.numa && port->node >= 0 && !near)
				continue;
			if (best < 0 || layout->polls[w] < layout->polls[best] ||
				(layout->polls[w] == layout->polls[best] && layout->polls[w] % 2 == 1))
				best = w;
		}
	return best;
}

static void lay_out_port(struct layout *layout, struct port *port)
{
	layout->port[port->slot] = port;
	layout->ports |= UINT32_C(1) << port->slot;
	/* The first ones, up to the first that is off: an endpoint turns them on in order. Port->up says that there is one. */
	layout->queues[port->slot] = RTE_MAX(__builtin_ctz(~port->taking), 1);
	for (uint16_t queue = 0; queue < port->queues; queue++)
		if (port->polled & (UINT32_C(1) << queue)) {
			unsigned w = choose_worker(layout, port);

			layout->poll[w][layout->polls[w]++] = (struct poll_entry){port, queue};
		}
}

static struct layout *lay_out(void)
{
	struct layout *layout = rte_zmalloc("layout", sizeof(*layout), RTE_CACHE_LINE_SIZE);

	if (layout == NULL)
		rte_panic("no memory for a layout of %zu bytes\n", sizeof(*layout));
	layout->serial = ++serial;
	for (unsigned slot = 0; slot < MAX_PORTS; slot++)
		/* An endpoint that has enabled no ring yet takes nothing: what was sent to it would be lost. */
		if (plane.port[slot] != NULL && plane.port[slot]->up && plane.port[slot]->polled != 0 && !plane.port[slot]->going)
			lay_out_port(layout, plane.port[slot]);
	return layout;
}

/* Who polls a queue; -1: nobody. */
static int owner(const struct layout *layout, struct source source)
{
	for (unsigned w = 0; w < plane.workers; w++)
		for (uint16_t i = 0; i < layout->polls[w]; i++)
			if (layout->poll[w][i].port->slot == source.slot && layout->poll[w][i].queue == source.queue)
				return w;
	return -1;
}

/* The layout between two: without the queues that go from one worker to another. NULL: there are none. */
static struct layout *lay_out_between(const struct layout *old, const struct layout *new)
{
	struct layout *between = rte_malloc("layout", sizeof(*between), RTE_CACHE_LINE_SIZE);
	bool any = false;

	if (between == NULL)
		rte_panic("no memory for a layout of %zu bytes\n", sizeof(*between));
	*between = *new;
	between->serial = ++serial;
	for (unsigned w = 0; w < plane.workers; w++) {
		between->polls[w] = 0;
		for (uint16_t i = 0; i < new->polls[w]; i++) {
			const struct poll_entry *entry = &new->poll[w][i];
			int before = owner(old, (struct source){entry->port->slot, entry->queue});

			if (before < 0 || before == (int)w) {
				between->poll[w][between->polls[w]++] = *entry;
				continue;
			}
			between->moving[entry->port->slot] |= 1 << entry->queue;
			any = true;
		}
	}
	if (any)
		return between;
	rte_free(between);
	return NULL;
}

static void hand(struct handed *arriving, struct rte_mbuf *frame, struct source source)
{
	if (arriving->count == HELD_MOST) {
		arriving->dropped++;
		rte_pktmbuf_free(frame);
		return;
	}
	arriving->frame[arriving->count] = frame;
	arriving->source[arriving->count++] = source;
}

/* Gives frames that workers held to those that will poll their queues. Nobody polls these now, and all workers know. */
static void hand_over(const struct layout *next)
{
	for (unsigned w = 0; w < plane.workers; w++)
		for (unsigned slot = 0; slot < MAX_PORTS; slot++) {
			struct handed *leaving = &plane.worker[w]->leaving[slot];

			for (uint16_t i = 0; i < leaving->count; i++)
				hand(&plane.worker[owner(next, leaving->source[i])]->arriving[slot], leaving->frame[i], leaving->source[i]);
			leaving->count = 0;
		}
}

/* Takes the place of the layout that is, which is freed: when this returns, no worker uses what the new one lacks. */
static void replace_layout(struct layout *new)
{
	struct layout *old = atomic_exchange(&plane.layout, new);

	for (unsigned w = 0; w < plane.workers; w++)
		sleep_wake(plane.worker[w]);
	/*
	 * After the first wait each worker will take the new layout next; after the second it has taken it, and dropped the
	 * frames that waited for, or lie in the memory of, a port that is gone.
	 */
	rte_rcu_qsbr_synchronize(plane.rcu, RTE_QSBR_THRID_INVALID);
	rte_rcu_qsbr_synchronize(plane.rcu, RTE_QSBR_THRID_INVALID);
	rte_free(old);
}

static void tell_who_is_served(void)
{
	const struct layout *layout = plane.layout;

	for (unsigned slot = 0; slot < MAX_PORTS; slot++)
		if (plane.port[slot] != NULL)
			plane.port[slot]->serving = layout->port[slot] != NULL;
}

void plane_publish(void)
{
	struct layout *new, *between;

	pthread_mutex_lock(&publishing);
	new = lay_out();
	between = lay_out_between(plane.layout, new);
	if (between != NULL) {
		replace_layout(between);
		hand_over(new);
	}
	replace_layout(new);
	tell_who_is_served();
	pthread_mutex_unlock(&publishing);
}

void plane_ask(void)
{
	eventfd_write(plane.ask_fd, 1);
}

struct port *plane_find(const char *name)
{
	for (unsigned slot = 0; slot < MAX_PORTS; slot++)
		if (plane.port[slot] != NULL && strcmp(plane.port[slot]->name, name) == 0)
			return plane.port[slot];
	return NULL;
}

static int free_slot(void)
{
	for (unsigned slot = 0; slot < MAX_PORTS; slot++)
		if (plane.port[slot] == NULL)
			return slot;
	return -1;
}

int plane_add(const struct port_spec *spec, struct why *why)
{
	int slot = free_slot();
	struct port *port;

	if (plane_find(spec->name) != NULL)
		return refuse(why, "port %s: there is one of that name: choose another, or remove it first", spec->name);
	if (slot < 0)
		return refuse(why, "port %s: there are %d ports already, the most that can be", spec->name, MAX_PORTS);
	/* What was sent to the last port in this slot is not this one's. No worker has it in its layout. */
	for (unsigned w = 0; w < plane.workers; w++)
		memset(&plane.worker[w]->sent[slot], 0, sizeof(plane.worker[w]->sent[slot]));
	port = port_open(spec, slot, why);
	if (port == NULL)
		return -1;
	/* What a guest is free to say. Behind a device there may be a whole network. */
	mac_limit(plane.macs, slot, spec->path[0] != '\0' ? GUEST_ADDRESSES : 0);
	plane.port[slot] = port;
	plane_publish();
	return 0;
}

int plane_remove(const char *name, struct why *why)
{
	struct port *port = plane_find(name);
	uint16_t slot;

	if (port == NULL)
		return refuse(why, "port %s: there is none of that name: `ports` lists them", name);
	port->going = true;
	plane_publish();
	mac_forget(plane.macs, port->slot);
	/* Its slot stays taken until librte_vhost has let go of it: until then it may still call us about it. */
	slot = port->slot;
	port_close(port);
	plane.port[slot] = NULL;
	return 0;
}
