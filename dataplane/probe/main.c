/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame-probe: how long a switch takes for a frame, and how long it is away. Both ends of the path are this program's ports, or one port
 * is, so one clock (the TSC) stamps a frame when it leaves and when it arrives.
 *
 * Read frame.h, tally.h and loop.c in this order. The first lcore listens and reports; the second sends, receives and counts.
 */
#include <err.h>
#include <errno.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "options.h"
#include "report.h"

#define LAST_FRAMES_MS 100 /* what is still under way when sending ends */
#define LOOK_MS 50

static struct ports ports;
static struct loop loop = {.ports = &ports};
static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static void wait_for_end(int listener, double seconds)
{
	uint64_t until = rte_rdtsc() + (uint64_t)(seconds * (double)rte_get_tsc_hz());

	while (!ended && rte_rdtsc() < until) {
		if (listener >= 0)
			control_serve(listener, &loop, LOOK_MS);
		else
			usleep(LOOK_MS * 1000);
	}
}

static int listen_at(const char *path)
{
	int listener = control_listen(path);

	if (listener < 0)
		errx(2, "can't listen at %s: %s", path, strerror(errno));
	return listener;
}

int main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv);

	if (used < 0)
		errx(2, "DPDK's environment did not start: look at the lines before");
	struct options options = options_read(argc - used, argv + used);
	unsigned worker = rte_get_next_lcore(-1, 1, 0);
	if (worker == RTE_MAX_LCORE)
		errx(2, "found 1 lcore, need 2: one that listens and one that polls, say --lcores 0@1,1@1");
	signal(SIGINT, end);
	signal(SIGTERM, end);
	signal(SIGPIPE, SIG_IGN);
	ports_open(&ports);
	int listener = options.control ? listen_at(options.control) : -1;
	rte_eal_remote_launch(loop_run, &loop, worker);
	if (!options.control && !loop_send(&loop, &options.stream))
		errx(1, "the thread that sends did not answer within 5 s: is its CPU taken by a real-time thread?");
	if (options.control)
		puts("frame-probe: ready");
	fflush(stdout);
	wait_for_end(listener, options.seconds);
	loop_pause(&loop);
	usleep(LAST_FRAMES_MS * 1000);
	report_write(stdout, &loop);
	atomic_store(&loop.quit, true);
	rte_eal_wait_lcore(worker);
	ports_close(&ports);
	if (options.control)
		unlink(options.control);
	rte_eal_cleanup();
	return 0;
}
