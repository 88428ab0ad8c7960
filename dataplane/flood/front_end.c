/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "front_end.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/virtio_config.h>

#define ANSWER_S 5 /* how long a switch may take for an answer */
#define FEATURE(bit) (UINT64_C(1) << (bit))

enum {
	GET_FEATURES = 1,
	SET_FEATURES = 2,
	SET_OWNER = 3,
	SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	GET_VRING_BASE = 11,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16,
	SET_VRING_ENABLE = 18,
};

enum {
	PROTOCOL_FEATURES = 30, /* of virtio's feature bits */
	REPLY_ACK = 3,          /* of the protocol's own */
	VERSION = 1,
	IS_REPLY = 4,
	NEEDS_REPLY = 8,
	NO_FILE = 0x100, /* in the word of SET_VRING_CALL: no eventfd comes with it */
};

struct state {
	uint32_t index, number;
};

struct addresses {
	uint32_t index, flags;
	uint64_t descriptors, used, available, log;
};

struct table {
	uint32_t count, padding;
	uint64_t guest, size, user, offset; /* one region: all of our memory, by our own addresses */
};

struct message {
	uint32_t request, flags, size;
	union {
		uint64_t word;
		struct state state;
		struct addresses addresses;
		struct table table;
	};
} __attribute__((packed));

#define HEAD offsetof(struct message, word)

/* ---- messages: true if it went well ---- */

static bool post(int connection, struct message *message, int file)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {message, HEAD + message->size};
	struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1};

	if (file >= 0) {
		head.msg_control = control;
		head.msg_controllen = sizeof(control);
		struct cmsghdr *with = CMSG_FIRSTHDR(&head);
		with->cmsg_level = SOL_SOCKET;
		with->cmsg_type = SCM_RIGHTS;
		with->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(with), &file, sizeof(file));
	}
	return sendmsg(connection, &head, MSG_NOSIGNAL) == (ssize_t)part.iov_len;
}

static bool answer(int connection, uint32_t request, uint64_t *word)
{
	struct message message;

	if (recv(connection, &message, HEAD + sizeof(*word), MSG_WAITALL) != (ssize_t)(HEAD + sizeof(*word)))
		return false;
	*word = message.word;
	return message.request == request && message.flags & IS_REPLY && message.size == sizeof(*word);
}

static bool get(int connection, uint32_t request, uint64_t *word)
{
	struct message message = {request, VERSION, 0, {0}};

	return post(connection, &message, -1) && answer(connection, request, word);
}

/* The switch says by an answer that it took it, where it can. */
static bool set(int connection, bool answers, struct message message, int file)
{
	uint64_t failed = 0;

	message.flags = VERSION | (answers ? NEEDS_REPLY : 0);
	return post(connection, &message, file) && (!answers || (answer(connection, message.request, &failed) && !failed));
}

#define SET(request, member, value, file) set(connection, answers, (struct message){request, 0, sizeof(value), {.member = value}}, file)

/* ---- a switch gets the rings ---- */

static bool give_ring(int connection, bool answers, uint32_t index, const struct ring *ring)
{
	struct addresses addresses = {index, 0, (uintptr_t)ring->desc, (uintptr_t)ring->used, (uintptr_t)ring->avail, 0};
	struct state size = {index, ring->size}, base = {index, ring_base(ring)}, on = {index, 1};
	uint64_t word = index, call = index | NO_FILE;

	return SET(SET_VRING_NUM, state, size, -1) && SET(SET_VRING_BASE, state, base, -1) &&
	       SET(SET_VRING_ADDR, addresses, addresses, -1) && SET(SET_VRING_KICK, word, word, ring->kick) &&
	       /* We poll. */
	       SET(SET_VRING_CALL, word, call, -1) && SET(SET_VRING_ENABLE, state, on, -1);
}

/* NULL, or at what it failed. */
static const char *give(struct port *port)
{
	uint64_t wanted = port->features | FEATURE(VIRTIO_F_VERSION_1) | FEATURE(PROTOCOL_FEATURES), offered, protocol;
	struct table table = {1, 0, (uintptr_t)port->mapped, port->memory_bytes, (uintptr_t)port->mapped, 0};
	int connection = port->connection;
	bool answers = false;

	if (!set(connection, false, (struct message){SET_OWNER, 0, 0, {0}}, -1) || !get(connection, GET_FEATURES, &offered))
		return "it says nothing of its features";
	if (wanted & ~offered)
		return "it does not offer the features that were asked for";
	if (!get(connection, GET_PROTOCOL_FEATURES, &protocol))
		return "it says nothing of the protocol's features";
	protocol &= FEATURE(REPLY_ACK);
	if (!SET(SET_PROTOCOL_FEATURES, word, protocol, -1))
		return "it does not take the protocol's features";
	answers = protocol;
	if (!SET(SET_FEATURES, word, wanted, -1))
		return "it does not take the features";
	if (!SET(SET_MEM_TABLE, table, table, port->memory))
		return "it does not take the memory";
	if (!give_ring(connection, answers, 0, &port->receive) || !give_ring(connection, answers, 1, &port->send))
		return "it does not take the rings";
	return NULL;
}

static void set_patience(int connection)
{
	struct timeval patience = {.tv_sec = ANSWER_S};

	setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

/* From the answer on a switch that lives does not touch a ring any more; one that is gone has no answer. */
static bool take_ring(int connection, uint32_t index)
{
	struct message message = {GET_VRING_BASE, VERSION, sizeof(struct state), {.state = {index, 0}}};
	uint64_t base;

	return post(connection, &message, -1) && answer(connection, GET_VRING_BASE, &base);
}

static void hang_up(struct port *port)
{
	if (atomic_exchange(&port->up, false))
		port_settle(port);
	if (take_ring(port->connection, 0))
		take_ring(port->connection, 1);
	close(port->connection);
	port->connection = -1;
}

static void begin(struct port *port)
{
	const char *wrong;

	set_patience(port->connection);
	/* What an earlier one had is ours again: this one begins with empty rings. */
	port_reset(port);
	wrong = give(port);
	if (wrong) {
		/* Once: it is tried again and again. */
		if (wrong != port->wrong)
			fprintf(stderr, "frame-flood: the switch at %s: %s\n", port->path, wrong);
		port->wrong = wrong;
		hang_up(port);
		return;
	}
	atomic_store_explicit(&port->up, true, memory_order_release);
}

/* ---- sockets ---- */

static const char *address_of(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address->sun_path))
		return strerror(ENAMETOOLONG);
	strcpy(address->sun_path, path);
	return NULL;
}

/* A socket at which nobody listens was left by one that was killed. */
static void unlink_left(const char *path, const struct sockaddr_un *address)
{
	int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	set_patience(connection);
	if (connect(connection, (const struct sockaddr *)address, sizeof(*address)) && errno == ECONNREFUSED)
		unlink(path);
	close(connection);
}

const char *front_end_open(struct port *port)
{
	struct sockaddr_un address;
	const char *wrong = address_of(port->path, &address);

	port->listener = port->connection = -1;
	if (wrong || !port->server)
		return wrong;
	port->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unlink_left(port->path, &address);
	if (port->listener < 0 || bind(port->listener, (struct sockaddr *)&address, sizeof(address)) || listen(port->listener, 1))
		return strerror(errno);
	return NULL;
}

static void connect_to_switch(struct port *port)
{
	struct sockaddr_un address;

	address_of(port->path, &address);
	port->connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* One that is stopped takes nobody up. */
	set_patience(port->connection);
	if (port->connection >= 0 && !connect(port->connection, (struct sockaddr *)&address, sizeof(address))) {
		begin(port);
		return;
	}
	/* Not there yet. */
	close(port->connection);
	port->connection = -1;
}

static void look(struct port *port, short events)
{
	if (port->connection >= 0 && events)
		/* Asked for nothing, it has nothing to say: it goes. */
		hang_up(port);
	else if (port->connection < 0 && port->server && events & POLLIN) {
		port->connection = accept4(port->listener, NULL, NULL, SOCK_CLOEXEC);
		if (port->connection >= 0)
			begin(port);
	} else if (port->connection < 0 && !port->server)
		connect_to_switch(port);
}

void front_end_serve(struct port *ports, unsigned count, int milliseconds)
{
	struct pollfd asked[PORTS_MOST];

	for (unsigned i = 0; i < count; i++)
		asked[i] = (struct pollfd){ports[i].connection >= 0 ? ports[i].connection : ports[i].listener, POLLIN | POLLRDHUP, 0};
	poll(asked, count, milliseconds);
	for (unsigned i = 0; i < count; i++)
		look(&ports[i], asked[i].revents);
}

void front_end_close(struct port *port)
{
	if (port->connection >= 0)
		hang_up(port);
	if (port->listener >= 0) {
		close(port->listener);
		unlink(port->path);
	}
}
