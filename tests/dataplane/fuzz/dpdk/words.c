/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What strangers say to vhost-switch: lines on its control socket, in pieces as they may arrive, and questions to its telemetry. Whatever
 * they are, each line has one answer of one line, no name or path is longer than it may be, and nothing is read or written beside them.
 * The parsers are the real ones; the ports that they ask for have no endpoints, and the plane that has them is played here.
 *
 * The input: a byte that says to whom, then what is said.
 */
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_malloc.h>

#include "../input.h"
/* Their parsers are static. */
#include "control.c"
#include "telemetry.c"

enum { PIECE = 61, ANSWERS = 1 << 16 };

struct plane plane;
const char *const stage_names[STAGES] = {"dequeue", "parse", "lookup", "enqueue", "other"};

static struct worker worker;
static struct rte_mempool *pool;

/* ---- the plane, and ports without endpoints ---- */

static void close_nothing(struct port *port)
{
	(void)port;
}

static const struct port_driver driver = {.kind = "none", .close = close_nothing};

static int open_nothing(struct port *port)
{
	port->driver = &driver;
	port->queues = port->spec.queues;
	return 0;
}

int vhost_open(struct port *port, struct why *why)
{
	(void)why;
	must(strnlen(port->spec.path, 108) < 108);
	return open_nothing(port);
}

int dpdk_open(struct port *port, struct why *why)
{
	(void)why;
	return open_nothing(port);
}

uint64_t vhost_in_flight(const struct port *port)
{
	(void)port;
	return 0;
}

uint64_t vhost_broken(const struct port *port)
{
	(void)port;
	return 0;
}

struct port *plane_find(const char *name)
{
	for (unsigned slot = 0; slot < MAX_PORTS; slot++)
		if (plane.port[slot] != NULL && strcmp(plane.port[slot]->name, name) == 0)
			return plane.port[slot];
	return NULL;
}

int plane_add(const struct port_spec *spec, struct why *why)
{
	must(strnlen(spec->name, NAME_LENGTH) < NAME_LENGTH && spec->name[0] != '\0');
	must(spec->queues >= 1 && spec->queues <= MAX_QUEUES);
	if (plane_find(spec->name) != NULL)
		return refuse(why, "there is a port %s", spec->name);
	for (unsigned slot = 0; slot < MAX_PORTS; slot++)
		if (plane.port[slot] == NULL) {
			plane.port[slot] = port_open(spec, slot, why);
			return plane.port[slot] == NULL ? -1 : 0;
		}
	return refuse(why, "no room for %s", spec->name);
}

int plane_remove(const char *name, struct why *why)
{
	struct port *port = plane_find(name);

	if (port == NULL)
		return refuse(why, "there is no port %s", name);
	plane.port[port->slot] = NULL;
	port_close(port);
	return 0;
}

void plane_publish(void)
{
}

struct rte_mempool *plane_pool(int node)
{
	(void)node;
	return pool;
}

/* ---- what is said ---- */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char *words[] = {"fuzz", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "-m", "64", "-l", "0", "--log-level=4"};

	(void)argc;
	(void)argv;
	must(rte_eal_init(RTE_DIM(words), words) >= 0);
	pool = rte_pktmbuf_pool_create("frames", 63, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	plane.macs = mac_table_new(10, 300);
	must(pool != NULL && plane.macs != NULL);
	plane.workers = 1;
	plane.worker[0] = &worker;
	worker.lcore = 1;
	return 0;
}

static size_t lines(const char *text, size_t length)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++)
		count += text[i] == '\n';
	return count;
}

/* All that has been answered. What comes is whole lines that begin as they must. */
static size_t answers(int fd)
{
	static char text[ANSWERS];
	ssize_t got = recv(fd, text, sizeof(text), MSG_DONTWAIT);

	if (got <= 0)
		return 0;
	must(text[got - 1] == '\n' && (text[0] == 'o' || text[0] == 'e'));
	return lines(text, got);
}

static void tell(const uint8_t *data, size_t size)
{
	const int i = FIRST_CLIENT;
	int ends[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	fds[i] = (struct pollfd){ends[0], POLLIN, 0};
	clients[0].length = 0;
	while (size > 0 && fds[i].fd >= 0) {
		size_t piece = size < PIECE ? size : PIECE, asked = lines((const char *)data, piece), got;

		must(send(ends[1], data, piece, 0) == (ssize_t)piece);
		/* A piece that does not fit behind what is kept of the line is read in two, as the switch's loop does. */
		while (fds[i].fd >= 0 && poll(&fds[i], 1, 0) == 1)
			hear(i);
		got = answers(ends[1]);
		/* Whose line is too long is told so, and hung up on: what is behind it is not read any more. */
		must(fds[i].fd < 0 ? got >= 1 && got <= asked + 1 : got == asked);
		data += piece;
		size -= piece;
	}
	if (fds[i].fd >= 0)
		drop(i);
	close(ends[1]);
}

static void ask(uint8_t which, const uint8_t *data, size_t size)
{
	/* Not those whose answers have parts of their own, which DPDK frees when it has printed them: they look at their words as these do. */
	static const telemetry_cb questions[] = {tell_port, tell_queue, tell_lcore, tell_bursts, tell_settings, tell_ports};
	struct rte_tel_data *answer = rte_tel_data_alloc();
	/* As DPDK hands it over: up to 1024 bytes, and NULL where there are none. */
	char words[1024];

	must(answer != NULL);
	size = size < sizeof(words) ? size : sizeof(words) - 1;
	memcpy(words, data, size);
	words[size] = '\0';
	questions[which % RTE_DIM(questions)]("", size > 0 ? words : NULL, answer);
	rte_tel_data_free(answer);
}

static void options(const uint8_t *data, size_t size)
{
	struct pmu_event events[PMU_MOST];
	char text[512];
	struct why why;
	int count;

	size = size < sizeof(text) ? size : sizeof(text) - 1;
	memcpy(text, data, size);
	text[size] = '\0';
	count = pmu_parse(text, events, &why);
	must(count <= PMU_MOST);
	for (int i = 0; i < count; i++)
		must(strnlen(events[i].name, sizeof(events[i].name)) < sizeof(events[i].name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct why why;

	if (size < 2)
		return 0;
	/* Ports to be asked about. */
	if (plane_find("one") == NULL) {
		struct port_spec spec;

		must(port_parse("one,path=/run/one,queues=2", &spec, &why) == 0 && plane_add(&spec, &why) == 0);
	}
	if (data[0] < 128)
		tell(data + 1, size - 1);
	else if (data[0] < 250)
		ask(data[0], data + 1, size - 1);
	else
		options(data + 1, size - 1);
	for (unsigned slot = 0; slot < MAX_PORTS; slot++)
		if (plane.port[slot] != NULL && strcmp(plane.port[slot]->name, "one") != 0)
			plane_remove(plane.port[slot]->name, &why);
	return 0;
}
