/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-user ports: sockets, endpoints that come and go. All callbacks run on librte_vhost's own thread.
 *
 * librte_vhost unmaps a guest's memory when it disconnects, and when it sends another memory table. With --rings own our workers hold
 * pointers into it, so both are preceded by a pause: the port leaves the layout, and plane_publish() returns when nobody uses it.
 */
#include "vhost.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/vhost_types.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "before.h"
#include "plane.h"

/* Requests of the vhost-user protocol after which rings or memory are not where they were. */
enum request {
	SET_FEATURES = 2,
	RESET_OWNER = 4,
	SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	SET_INFLIGHT_FD = 32,
};

enum {
	NEED_REPLY = 8, /* a message's flag: who sent it waits to hear whether it was taken */
	/*
	 * librte_vhost 24.11 keeps a file of each memory table that it can't map, and of each SET_INFLIGHT_FD that it refuses, for ever. An
	 * endpoint that goes on with these would use up all descriptors, those of other ports among them.
	 */
	REFUSED_MOST = 16,
	REST_MOST_US = 100000, /* for the rest of a message: front-ends send it at once */
	ROOM_MOST_US = 1000,   /* for room for an answer: front-ends have room, for they wait for it */
};

/*
 * Not offered: what would need checksums or segmentation done on behalf of a receiver that can't. Guests then send whole frames
 * with sums. By default OVS-DPDK (3.5) offers no segmentation either, but checksums.
 */
#define OFFLOADS                                                                                                                         \
	(1ULL << VIRTIO_NET_F_CSUM | 1ULL << VIRTIO_NET_F_GUEST_CSUM | 1ULL << VIRTIO_NET_F_HOST_TSO4 | 1ULL << VIRTIO_NET_F_HOST_TSO6 | \
		1ULL << VIRTIO_NET_F_HOST_UFO | 1ULL << VIRTIO_NET_F_HOST_ECN | 1ULL << VIRTIO_NET_F_GUEST_TSO4 |                        \
		1ULL << VIRTIO_NET_F_GUEST_TSO6 | 1ULL << VIRTIO_NET_F_GUEST_UFO | 1ULL << VIRTIO_NET_F_GUEST_ECN)

/* Not with --rings own: writes that are logged for a migration. */
#define OWN_RINGS_LACK (1ULL << VHOST_F_LOG_ALL)
/* Frames that are only lent come back whenever their last user is done. */
#define ZERO_COPY_LACKS (1ULL << VIRTIO_F_IN_ORDER)

static struct port *port_of(int vid)
{
	char path[sizeof(((struct port_spec *)0)->path)];

	if (rte_vhost_get_ifname(vid, path, sizeof(path)) != 0)
		return NULL;
	for (unsigned slot = 0; slot < MAX_PORTS; slot++)
		if (plane.port[slot] != NULL && strcmp(plane.port[slot]->spec.path, path) == 0)
			return plane.port[slot];
	return NULL;
}

/* The port leaves the layout. Afterwards no worker uses it, nor frames in its guest's memory. */
static void pause_port(struct port *port)
{
	if (!port->up)
		return;
	port->up = false;
	plane_publish();
	if (plane.options.own_rings)
		own_detach(port);
}

static void resume_port(struct port *port)
{
	struct vhost *vhost = port->own;

	/* Without memory not even librte_vhost may be asked for it. */
	if (port->up || !vhost->ready || (plane.options.own_rings && !vhost->mapped))
		return;
	if (plane.options.own_rings && own_attach(port) != 0) {
		RTE_LOG(WARNING, USER1, "port %s: its endpoint's memory or rings can't be used; it stays down\n", port->name);
		return;
	}
	port->up = true;
	plane_publish();
}

int vhost_take_memory(int vid, struct guest_memory *memory)
{
	struct rte_vhost_memory *found;

	if (rte_vhost_get_mem_table(vid, &found) != 0)
		return -1;
	memory->count = RTE_MIN(found->nregions, (uint32_t)MAX_REGIONS);
	for (uint32_t i = 0; i < memory->count; i++)
		memory->region[i] = (struct guest_region){
			found->regions[i].guest_phys_addr, found->regions[i].size, (uint8_t *)(uintptr_t)found->regions[i].host_user_addr};
	free(found);
	return 0;
}

bool vhost_owns(const void *at)
{
	for (unsigned slot = 0; slot < MAX_PORTS; slot++) {
		const struct port *port = plane.port[slot];

		if (port != NULL && port->spec.path[0] != '\0' && guest_has(&((const struct vhost *)port->own)->memory, at, 1))
			return true;
	}
	return false;
}

static int new_device(int vid)
{
	struct port *port = port_of(vid);
	struct vhost *vhost;

	if (port == NULL)
		return -1;
	vhost = port->own;
	vhost->vid = vid;
	vhost->ready = true;
	port->node = rte_vhost_get_numa_node(vid);
	port->pool = plane_pool(port->node);
	rte_vhost_get_negotiated_features(vid, &port->features);
	port->connects++;
	resume_port(port);
	return 0;
}

static void destroy_device(int vid)
{
	struct port *port = port_of(vid);
	struct vhost *vhost;

	if (port == NULL)
		return;
	vhost = port->own;
	vhost->ready = false;
	pause_port(port);
	vhost->memory.count = 0;
	vhost->vid = -1;
	mac_forget(plane.macs, port->slot);
}

/* Endpoints set up pair after pair: each ring counts from when it is enabled. */
static int vring_state_changed(int vid, uint16_t ring, int enable)
{
	struct port *port = port_of(vid);
	_Atomic uint32_t *rings;
	uint32_t bit;

	if (port == NULL || ring / 2 >= port->queues)
		return 0;
	rings = ring == from_guest(ring / 2) ? &port->polled : &port->taking;
	bit = UINT32_C(1) << ring / 2;
	if (!!(*rings & bit) == !!enable)
		return 0;
	*rings ^= bit;
	/* librte_vhost holds the rings' locks here, and a worker may wait for one: waiting for that worker would never end. */
	plane_ask();
	return 0;
}

/*
 * A descriptor of the endpoint's that a worker writes to must never make it wait. Anything but an eventfd may (a file of a file system
 * that the endpoint keeps), so one of our own takes its place, which nobody reads.
 */
static void tame(int fd)
{
	char link[32], is[32] = "";
	int harmless;

	if (fd < 0)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, is, sizeof(is) - 1) > 0 && strcmp(is, "anon_inode:[eventfd]") != 0) {
		harmless = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (harmless >= 0) {
			dup2(harmless, fd);
			close(harmless);
		}
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void tame_call(int vid, uint16_t number)
{
	struct rte_vhost_vring ring;

	if (rte_vhost_get_vhost_vring(vid, number, &ring) == 0)
		tame(ring.callfd);
}

static bool runs(int vid, uint16_t number)
{
	struct rte_vhost_vring ring;

	return rte_vhost_get_vhost_vring(vid, number, &ring) == 0 && ring.desc != NULL;
}

static bool moves_rings(uint32_t request)
{
	static const uint32_t moving[] = {
		SET_FEATURES, RESET_OWNER, SET_MEM_TABLE, SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE, SET_VRING_KICK, SET_VRING_CALL};

	for (size_t i = 0; i < RTE_DIM(moving); i++)
		if (request == moving[i])
			return true;
	return false;
}

/* The message SET_MEM_TABLE (vhost-user specification, "Multiple memory regions description"). */
struct memory_message {
	uint32_t request, flags, size;
	uint32_t regions, padding;
	struct {
		uint64_t guest, size, user, offset;
	} region[8];
} __attribute__((packed));

/* The messages SET_VRING_NUM (a number of entries) and SET_VRING_CALL (a ring, and whether a descriptor comes along). */
struct ring_message {
	uint32_t request, flags, size;
	uint32_t ring, number;
} __attribute__((packed));

/*
 * librte_vhost 24.11 unmaps the old memory before it looks at the new table. Where that is refused, a worker on its rings would
 * meanwhile follow pointers into nothing. So a table that can't hold is refused before.
 */
static bool holds(const struct memory_message *message)
{
	if (message->regions == 0 || message->regions > RTE_DIM(message->region))
		return false;
	for (uint32_t i = 0; i < message->regions; i++) {
		uint64_t size = message->region[i].size;

		if (size == 0 || message->region[i].guest + size < size || message->region[i].user + size < size ||
			message->region[i].offset + size < size)
			return false;
	}
	return true;
}

/*
 * What can't be is made absurd, so that librte_vhost refuses it: it closes a message's files when it does, which it does not when we
 * refuse. A ring that runs has the size that its addresses were checked for. Returns whether it was.
 */
static bool spoil(int vid, uint32_t request, void *message)
{
	struct memory_message *table = message;
	struct ring_message *ring = message;

	if (request == SET_MEM_TABLE && !holds(message))
		table->regions = UINT32_MAX;
	else if (request == SET_VRING_NUM && runs(vid, ring->ring))
		ring->number = UINT32_MAX;
	else
		return false;
	return true;
}

static bool may_cost_a_file(uint32_t request)
{
	return request == SET_MEM_TABLE || request == SET_INFLIGHT_FD;
}

/* Whether a port's endpoint is shut out; then it says so. We are not told of a message that was refused: each counts as that until it was
 * taken. */
static bool shut_out(const struct port *port)
{
	const struct vhost *vhost = port->own;

	if (!vhost->waited && vhost->refused <= REFUSED_MOST)
		return false;
	RTE_LOG(WARNING, USER1, "port %s: %s: it stays down until it is removed and added\n", port->name,
		vhost->waited ? "its endpoint made a worker wait for it to take an interrupt"
			      : "too many of its endpoint's memory tables could not be used");
	return true;
}

/* The answer "refused" would keep the connection; an error without one ends it. */
static enum rte_vhost_msg_result hang_up(void *message)
{
	((struct ring_message *)message)->flags &= ~(uint32_t)NEED_REPLY;
	return RTE_VHOST_MSG_RESULT_ERR;
}

static enum rte_vhost_msg_result before_message(int vid, void *message)
{
	uint32_t request = *(const uint32_t *)message;
	struct port *port = port_of(vid);

	if (!spoil(vid, request, message) && port != NULL && may_cost_a_file(request))
		((struct vhost *)port->own)->refused++;
	if (port != NULL && plane.options.own_rings && moves_rings(request))
		pause_port(port);
	/* After that: only a ring that nobody uses any more tells whether it made a worker wait. */
	if (port != NULL && shut_out(port))
		return hang_up(message);
	if (port != NULL && request == SET_MEM_TABLE) {
		((struct vhost *)port->own)->mapped = false;
		((struct vhost *)port->own)->memory.count = 0;
	}
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static enum rte_vhost_msg_result after_message(int vid, void *message)
{
	uint32_t request = *(const uint32_t *)message;
	struct port *port = port_of(vid);

	if (port != NULL && may_cost_a_file(request))
		((struct vhost *)port->own)->refused--;
	/* We are not told of a message that was refused. */
	if (port != NULL && request == SET_MEM_TABLE) {
		((struct vhost *)port->own)->mapped = true;
		vhost_take_memory(vid, &((struct vhost *)port->own)->memory);
	}
	if (request == SET_VRING_CALL)
		tame_call(vid, ((const struct ring_message *)message)->ring & 0xff);
	if (port != NULL && plane.options.own_rings && moves_rings(request))
		resume_port(port);
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static bool is_unix_stream(int fd)
{
	int domain = 0, type = 0;
	socklen_t length = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

/*
 * librte_vhost has one thread for all ports, and waits there for the rest of a message, and for room for an answer. An endpoint that
 * sends half a message, or never reads, would keep all others from coming and going. After this time the call fails: librte_vhost
 * hangs up, or goes on without the answer. It tells nobody which file a connection is, and the name at its other end is the endpoint's
 * own for the path, so all of the kind are limited; the others are the control socket's, which waits for nobody either.
 */
static void limit_waits(const struct port *port)
{
	const struct timeval rest = {.tv_usec = REST_MOST_US}, room = {.tv_usec = ROOM_MOST_US};
	DIR *files = opendir("/proc/self/fd");

	if (files == NULL) {
		RTE_LOG(WARNING, USER1, "port %s: its endpoint may make other ports wait: /proc/self/fd can't be read: %s\n", port->name,
			strerror(errno));
		return;
	}
	for (struct dirent *file = readdir(files); file != NULL; file = readdir(files)) {
		int fd = atoi(file->d_name);

		if (is_unix_stream(fd) && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &rest, sizeof(rest)) != 0 ||
						  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &room, sizeof(room)) != 0))
			RTE_LOG(WARNING, USER1, "port %s: file %d has no limit for waiting: %s\n", port->name, fd, strerror(errno));
	}
	closedir(files);
}

static int new_connection(int vid)
{
	static const struct rte_vhost_user_extern_ops ops = {.pre_msg_handle = before_message, .post_msg_handle = after_message};
	const struct port *port = port_of(vid);

	if (port == NULL || shut_out(port))
		return -1;
	limit_waits(port);
	return rte_vhost_extern_callback_register(vid, &ops, NULL);
}

static const struct rte_vhost_device_ops callbacks = {
	.new_device = new_device,
	.destroy_device = destroy_device,
	.vring_state_changed = vring_state_changed,
	.new_connection = new_connection,
};

/* A socket that a dead program left behind is removed; one that somebody listens on is not ours to take. */
static int free_path(const struct port *port, struct why *why)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat found;
	int fd, error;

	if (!port->spec.server || stat(port->spec.path, &found) != 0)
		return 0;
	if (!S_ISSOCK(found.st_mode))
		return refuse(why, "port %s: %s is there, and is no socket: choose another path", port->name, port->spec.path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strcpy(address.sun_path, port->spec.path);
	error = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? 0 : errno;
	close(fd);
	if (error == ECONNREFUSED && unlink(port->spec.path) == 0)
		return 0;
	return refuse(why, "port %s: %s is in use: choose another path, or stop who listens there", port->name, port->spec.path);
}

static int start_socket(struct port *port, struct why *why)
{
	const char *path = port->spec.path;
	uint64_t lacks = OFFLOADS | (plane.options.own_rings ? OWN_RINGS_LACK : 0) | (plane.options.zero_copy ? ZERO_COPY_LACKS : 0);

	if (rte_vhost_driver_register(path, port->spec.server ? 0 : RTE_VHOST_USER_CLIENT) != 0)
		return refuse(why, "port %s: librte_vhost did not take %s (see its words above): is the folder there, may we write in it?",
			port->name, path);
	rte_vhost_driver_set_max_queue_num(path, port->spec.queues);
	if (rte_vhost_driver_disable_features(path, lacks) == 0 && rte_vhost_driver_callback_register(path, &callbacks) == 0 &&
		rte_vhost_driver_start(path) == 0)
		return 0;
	rte_vhost_driver_unregister(path);
	return refuse(why, "port %s: %s can't be served (see librte_vhost's words above): is the path free, may we write there?",
		port->name, path);
}

int vhost_open(struct port *port, struct why *why)
{
	struct vhost *vhost = rte_zmalloc("vhost", sizeof(*vhost), RTE_CACHE_LINE_SIZE);

	if (vhost == NULL)
		return refuse(why, "port %s: no memory for it: give DPDK more (-m)", port->name);
	vhost->vid = -1;
	port->own = vhost;
	port->driver = plane.options.own_rings ? &vhost_own_driver : &vhost_librte_driver;
	port->queues = port->spec.queues;
	port->pool = plane_pool(-1);
	/* Callbacks find the port by its path: it must be in the plane before its socket is started. */
	plane.port[port->slot] = port;
	if (free_path(port, why) == 0 && (!plane.options.own_rings || own_open(port, why) == 0) && start_socket(port, why) == 0)
		return 0;
	plane.port[port->slot] = NULL;
	if (plane.options.own_rings)
		own_close(port);
	rte_free(vhost);
	return -1;
}

static void vhost_close(struct port *port)
{
	rte_vhost_driver_unregister(port->spec.path);
	if (plane.options.own_rings)
		own_close(port);
	rte_free(port->own);
}

uint64_t vhost_in_flight(const struct port *port)
{
	return port->driver == &vhost_own_driver ? own_in_flight(port) : 0;
}

uint64_t vhost_broken(const struct port *port)
{
	return port->driver == &vhost_own_driver ? own_broken(port) : 0;
}

/* ---- frames, by librte_vhost ---- */

static uint16_t librte_receive(struct port *port, uint16_t queue, struct rte_mbuf **frames, uint16_t most)
{
	struct vhost *vhost = port->own;

	most = rte_vhost_dequeue_burst(vhost->vid, from_guest(queue), port->pool, frames, most);
	return port_drop_runts(&port->received[queue], frames, most);
}

/* The guest has room, and yet the next frame was not taken. */
static bool has_too_long(const struct port *port, uint16_t queue)
{
	const struct vhost *vhost = port->own;

	return !(port->features & (1ULL << VIRTIO_NET_F_MRG_RXBUF)) && rte_vhost_avail_entries(vhost->vid, to_guest(queue)) > 0;
}

/* Hands over frames from `from` on, and returns the first that was not taken. */
static uint16_t enqueue(
	const struct vhost *vhost, uint16_t queue, struct rte_mbuf **frames, uint16_t from, uint16_t count, struct send_counters *sent)
{
	uint16_t end = from + rte_vhost_enqueue_burst(vhost->vid, to_guest(queue), frames + from, count - from);

	for (uint16_t i = from; i < end; i++)
		sent->bytes += frames[i]->pkt_len;
	sent->packets += end - from;
	return end;
}

static uint16_t librte_send(struct port *port, uint16_t queue, struct rte_mbuf **frames, uint16_t count, struct send_counters *sent)
{
	struct vhost *vhost = port->own;
	uint16_t taken = enqueue(vhost, queue, frames, 0, count, sent);

	/* Where a frame has to fit into one buffer, one that does not would block those behind it for ever. */
	while (unlikely(taken < count) && has_too_long(port, queue)) {
		sent->too_long++;
		taken = enqueue(vhost, queue, frames, taken + 1, count, sent);
	}
	rte_pktmbuf_free_bulk(frames, taken);
	return taken;
}

static bool librte_arm(struct port *port, uint16_t queue, bool on)
{
	struct vhost *vhost = port->own;

	rte_vhost_enable_guest_notification(vhost->vid, from_guest(queue), on);
	return on && rte_vhost_rx_queue_count(vhost->vid, from_guest(queue)) > 0;
}

static int librte_wake_fd(struct port *port, uint16_t queue)
{
	struct vhost *vhost = port->own;
	struct rte_vhost_vring ring;

	return rte_vhost_get_vhost_vring(vhost->vid, from_guest(queue), &ring) == 0 ? ring.kickfd : -1;
}

const struct port_driver vhost_librte_driver = {
	.kind = "vhost",
	.receive = librte_receive,
	.send = librte_send,
	.arm = librte_arm,
	.wake_fd = librte_wake_fd,
	.close = vhost_close,
};

/* ---- frames, by ourselves: own_rings.c ---- */

const struct port_driver vhost_own_driver = {
	.kind = "vhost",
	.receive = own_receive,
	.send = own_send,
	.arm = own_arm,
	.wake_fd = own_wake_fd,
	.close = vhost_close,
};
