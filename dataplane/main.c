/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vhost-switch: a switch between vhost-user and DPDK ports that tells where each cycle goes. See docs/dataplane.md. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "control.h"
#include "interrupt.h"
#include "plane.h"
#include "telemetry.h"
#include "vhost.h"

enum { BAD_INPUT = 2 };

static int fail(const char *text)
{
	fprintf(stderr, "vhost-switch: %s\n", text);
	return BAD_INPUT;
}

/* Where our own options begin: at --, which stays as their argv[0]. */
static int own_arguments(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return i;
	return argc;
}

/* The first line of a file that has `word` in it, in `line`; false where there is none. */
static bool find_line(const char *path, const char *word, char *line, int size)
{
	FILE *file = fopen(path, "r");
	bool found = false;

	while (file != NULL && !found && fgets(line, size, file) != NULL)
		found = strstr(line, word) != NULL;
	if (file != NULL)
		fclose(file);
	return found;
}

/* Why DPDK can't have had its memory; empty where that is not the reason. */
static const char *memory_lacks(const char *given)
{
	char line[256];
	unsigned long free_pages = 0;

	if (strstr(given, "--no-huge") != NULL)
		return "";
	if (find_line("/proc/meminfo", "HugePages_Free:", line, sizeof(line)))
		sscanf(line, "HugePages_Free: %lu", &free_pages);
	if (free_pages == 0)
		return "found 0 free hugepages: run `make host`, or give --no-huge -m 512 before --";
	if (strstr(given, "--in-memory") == NULL && !find_line("/proc/mounts", " hugetlbfs ", line, sizeof(line)))
		return "there are hugepages, but no hugetlbfs is mounted: give --in-memory, or --no-huge -m 512, before --";
	return "";
}

static int start_dpdk(int argc, char **argv, struct why *why)
{
	char given[160] = "";
	const char *lacks;

	/* EAL moves the words about. */
	for (int i = 1; i < argc; i++)
		snprintf(given + strlen(given), sizeof(given) - strlen(given), " %s", argv[i]);
	if (rte_eal_init(argc, argv) >= 0)
		return 0;
	lacks = memory_lacks(given);
	return refuse(why, "DPDK did not start with%s: %s: %s", given, rte_strerror(rte_errno), *lacks ? lacks : "see its words above");
}

/* Held open for as long as we run: the kernel forgets the wish when it is closed. */
static int limit_latency(struct why *why)
{
	int32_t wish = plane.options.latency_us;
	int fd;

	if (wish < 0)
		return 0;
	fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, &wish, sizeof(wish)) != sizeof(wish))
		return refuse(why, "--cpu-latency-us %d: /dev/cpu_dma_latency: %s: are you root?", wish, strerror(errno));
	return 0;
}

/* Before any worker runs, so that --stages pmu is refused with one reason, not by each. */
static int try_pmu(struct why *why)
{
	struct pmu pmu;

	if (plane.options.event_count == 0)
		return 0;
	if (pmu_open(&pmu, plane.options.events, plane.options.event_count, why) != 0)
		return -1;
	printf("vhost-switch: reading %u events takes %lu TSC cycles each\n", pmu.count, pmu.read_cycles);
	pmu_close(&pmu);
	return 0;
}

/* Before any worker runs: one that went on as it was would be measured as what it is not. */
static int try_policy(struct why *why)
{
	struct sched_param asked = {.sched_priority = plane.options.priority}, before;
	int policy = sched_getscheduler(0);

	if (plane.options.policy < 0)
		return 0;
	if (sched_getparam(0, &before) != 0 || sched_setscheduler(0, plane.options.policy, &asked) != 0)
		return refuse(
			why, "--sched %s: the kernel refused it: %s: be root, or raise ulimit -r", plane.options.sched, strerror(errno));
	if (sched_setscheduler(0, policy, &before) != 0)
		return refuse(why, "--sched %s: the main thread could not leave it: %s: be root", plane.options.sched, strerror(errno));
	return 0;
}

static int start(struct why *why)
{
	const struct options *options = &plane.options;
	int error = interrupt_watch();

	if (error != 0)
		return refuse(why, "no thread to watch the workers: %s: raise ulimit -u", strerror(error));

	if (limit_latency(why) != 0 || try_policy(why) != 0 || try_pmu(why) != 0 || plane_init(why) != 0 || telemetry_init(why) != 0 ||
		control_open(options->control, why) != 0)
		return -1;
	for (unsigned w = 0; w < plane.workers; w++)
		rte_eal_remote_launch(worker_main, plane.worker[w], plane.worker[w]->lcore);
	for (unsigned i = 0; i < options->ports; i++)
		if (plane_add(&options->port[i], why) != 0)
			return -1;
	return 0;
}

/* Ports first, while workers still run: each is left as an endpoint that goes is. */
static void stop(void)
{
	struct why why;

	for (unsigned slot = 0; slot < MAX_PORTS; slot++)
		if (plane.port[slot] != NULL)
			plane_remove(plane.port[slot]->name, &why);
	plane.stopping = true;
	for (unsigned w = 0; w < plane.workers; w++)
		sleep_wake(plane.worker[w]);
	rte_eal_mp_wait_lcore();
	control_close(plane.options.control);
	rte_eal_cleanup();
}

/* Zeros take its place: a guest that takes its memory away while it is used has harmed itself alone. */
static bool replace_page(void *at, uintptr_t size)
{
	void *page = (void *)((uintptr_t)at & ~(size - 1));

	return mmap(page, size, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == page;
}

/* A front-end may shorten a file that it shares with us: what we touch behind its new end is no memory. */
static void on_bus_error(int number, siginfo_t *info, void *context __rte_unused)
{
	/* Pages of a hugetlbfs can't be replaced but whole. */
	static const uintptr_t sizes[] = {4 << 10, 2 << 20, 1 << 30};

	for (size_t i = 0; i < RTE_DIM(sizes) && vhost_owns(info->si_addr); i++)
		if (replace_page(info->si_addr, sizes[i]))
			return;
	/* The same once more ends us. */
	signal(number, SIG_DFL);
}

int main(int argc, char **argv)
{
	int ours = own_arguments(argc, argv), parsed;
	struct why why = {""};
	sigset_t ending;

	setvbuf(stdout, NULL, _IOLBF, 0);
	/* Ours first: what is wrong with them is known before DPDK takes any memory. */
	parsed = options_parse(argc - ours, argv + ours, &plane.options, &why);
	if (parsed != 0)
		return parsed > 0 ? 0 : fail(why.text);
	/* Blocked in all threads, which inherit it: the main thread reads them from a descriptor. */
	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigprocmask(SIG_BLOCK, &ending, NULL);
	if (start_dpdk(ours, argv, &why) != 0)
		return fail(why.text);
	/* After DPDK, which has a handler of its own while it looks for memory. */
	sigaction(SIGBUS, &(struct sigaction){.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO}, NULL);
	if (start(&why) != 0) {
		stop();
		return fail(why.text);
	}
	puts("vhost-switch: ready");
	control_serve();
	stop();
	return 0;
}
