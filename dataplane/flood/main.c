/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame-flood: ends of a path that cost so little that the switch between them is the limit. See README.md; then ring.h, port.c.
 *
 * The first lcore speaks to the switches; the others poll the ports in turn.
 */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>

#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "front_end.h"
#include "options.h"
#include "telemetry.h"

#define LOOK_MS 50

static struct options options;
static volatile sig_atomic_t ended;
static atomic_bool quit;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

/* Polls every so many-th port, from the `first` one on. */
static int poll_ports(void *first)
{
	unsigned step = rte_lcore_count() - 1;

	while (!atomic_load_explicit(&quit, memory_order_relaxed))
		for (unsigned i = (unsigned)(uintptr_t)first; i < options.count; i += step)
			port_poll(&options.ports[i]);
	return 0;
}

static void open_ports(void)
{
	for (unsigned i = 0; i < options.count; i++) {
		struct port *port = &options.ports[i];
		/* Not one for all: the kernel's lock in it would be shared. */
		const char *wrong = (port->receive.kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0 ||
						    (port->send.kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0
					    ? strerror(errno)
					    : NULL;

		if (wrong || (wrong = port_open(port, options.ring)))
			errx(1, "memory of port %u: %s; it needs 3 hugepages of 2 MiB for each port", i, wrong);
		if ((wrong = front_end_open(port)))
			errx(2, "can't listen at %s: %s", port->path, wrong);
	}
}

int main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv);
	unsigned lcore, first = 0;

	if (used < 0)
		errx(2, "DPDK's environment did not start: look at the lines before");
	options_read(argc - used, argv + used, &options);
	if (rte_lcore_count() < 2)
		errx(2, "found 1 lcore, need 2: one that speaks and one that polls, say --lcores 0@1,1@1");
	/* Without SA_RESTART: nothing that is waited for shall keep it from its end. */
	sigaction(SIGINT, &(struct sigaction){.sa_handler = end}, NULL);
	sigaction(SIGTERM, &(struct sigaction){.sa_handler = end}, NULL);
	open_ports();
	if (!telemetry_start(&options))
		errx(1, "DPDK's telemetry did not take the commands");
	RTE_LCORE_FOREACH_WORKER(lcore)
	rte_eal_remote_launch(poll_ports, (void *)(uintptr_t)first++, lcore);
	puts("frame-flood: ready");
	fflush(stdout);
	while (!ended)
		front_end_serve(options.ports, options.count, LOOK_MS);
	for (unsigned i = 0; i < options.count; i++)
		front_end_close(&options.ports[i]);
	atomic_store(&quit, true);
	rte_eal_mp_wait_lcore();
	rte_eal_cleanup();
	return 0;
}
