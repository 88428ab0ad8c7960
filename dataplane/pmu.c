/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pmu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/perf_event.h>
#include <rte_cycles.h>

enum {
	COST_SAMPLES = 256,
	/* An rdpmc that the processor executes takes 20 to 40 cycles, one that a hypervisor traps 1,000 and more. */
	COST_MOST = 500,
};

static const struct {
	const char *name;
	uint64_t config;
} generic[] = {
	{"cycles", PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_COUNT_HW_CACHE_MISSES},
	{"branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_COUNT_HW_BRANCH_MISSES},
};

static int parse_event(char *word, struct pmu_event *event, struct why *why)
{
	char *equals = strchr(word, '='), *end;

	if (equals != NULL)
		*equals = '\0';
	if (*word == '\0' || strlen(word) >= sizeof(event->name))
		return refuse(why, "--pmu-events: %s: a name has 1 to %zu characters", word, sizeof(event->name) - 1);
	strcpy(event->name, word);
	if (equals != NULL) {
		event->type = strtoul(equals + 1, &end, 0);
		if (end == equals + 1 || *end != ':')
			return refuse(why, "--pmu-events: %s=%s: give NAME=TYPE:CONFIG, as perf_event_open has them", word, equals + 1);
		event->config = strtoull(end + 1, &equals, 0);
		return *equals == '\0' && equals != end + 1 ? 0 : refuse(why, "--pmu-events: %s: %s is no number", word, end + 1);
	}
	for (size_t i = 0; i < sizeof(generic) / sizeof(*generic); i++)
		if (strcmp(generic[i].name, word) == 0) {
			event->type = PERF_TYPE_HARDWARE;
			event->config = generic[i].config;
			return 0;
		}
	return refuse(why,
		"--pmu-events: unknown event %s: use cycles, instructions, cache-references, cache-misses, branches, branch-misses, or "
		"NAME=TYPE:CONFIG",
		word);
}

int pmu_parse(const char *text, struct pmu_event *events, struct why *why)
{
	char copy[512], *rest = copy, *word;
	int count = 0;

	if (strlen(text) >= sizeof(copy))
		return refuse(why, "--pmu-events: %zu characters are too many", strlen(text));
	strcpy(copy, text);
	while ((word = strsep(&rest, ",")) != NULL) {
		if (count == PMU_MOST)
			return refuse(why, "--pmu-events: at most %d at once", PMU_MOST);
		if (parse_event(word, &events[count++], why) != 0)
			return -1;
	}
	return count;
}

static uint64_t rdpmc(uint32_t counter)
{
#if defined(__x86_64__)
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(counter));
	return (uint64_t)high << 32 | low;
#else
	(void)counter;
	return 0;
#endif
}

/* As the kernel describes in struct perf_event_mmap_page: again, if the kernel moved the counter meanwhile. */
static uint64_t read_one(const volatile struct perf_event_mmap_page *page)
{
	uint32_t before, index;
	uint64_t value;

	do {
		before = page->lock;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		index = page->index;
		value = page->offset;
		if (index != 0) {
			/* The counter has fewer than 64 bits; its highest is a sign. */
			unsigned shift = 64 - page->pmc_width;

			value += (int64_t)(rdpmc(index - 1) << shift) >> shift;
		}
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} while (page->lock != before);
	return value;
}

void pmu_read(const struct pmu *pmu, uint64_t *values)
{
	for (unsigned i = 0; i < pmu->count; i++)
		values[i] = read_one(pmu->page[i]);
}

static int open_event(struct pmu *pmu, const struct pmu_event *event, struct why *why)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = event->type, .config = event->config, .exclude_hv = 1, .pinned = 1};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	void *page;

	if (fd < 0 && (errno == EACCES || errno == EPERM)) {
		/* Without the right to see the kernel's: a worker is in user mode all the time anyway. */
		attr.exclude_kernel = 1;
		fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	if (fd < 0)
		return refuse(why, "--stages pmu: the kernel can't count %s: %s%s", event->name, strerror(errno),
			errno == ENOENT || errno == EOPNOTSUPP ? "; this machine shows no PMU, or not this event: use --stages on"
			: errno == EACCES                      ? "; lower /proc/sys/kernel/perf_event_paranoid"
							       : "");
	pmu->fd[pmu->count] = fd;
	page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED || !((struct perf_event_mmap_page *)page)->cap_user_rdpmc) {
		if (page != MAP_FAILED)
			munmap(page, sysconf(_SC_PAGESIZE));
		close(fd);
		return refuse(why,
			"--stages pmu: %s can't be read by rdpmc: see /sys/bus/event_source/devices/cpu/rdpmc, or use --stages on",
			event->name);
	}
	pmu->page[pmu->count++] = page;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t cost_of_reading(const struct pmu *pmu)
{
	uint64_t costs[COST_SAMPLES];

	for (unsigned i = 0; i < COST_SAMPLES; i++) {
		uint64_t began = rte_rdtsc();

		read_one(pmu->page[0]);
		costs[i] = rte_rdtsc() - began;
	}
	qsort(costs, COST_SAMPLES, sizeof(*costs), by_value);
	return costs[COST_SAMPLES / 2];
}

int pmu_open(struct pmu *pmu, const struct pmu_event *events, unsigned count, struct why *why)
{
	pmu->count = 0;
	for (unsigned i = 0; i < count; i++)
		if (open_event(pmu, &events[i], why) != 0) {
			pmu_close(pmu);
			return -1;
		}
	pmu->read_cycles = cost_of_reading(pmu);
	if (pmu->read_cycles > COST_MOST) {
		pmu_close(pmu);
		return refuse(
			why, "--stages pmu: reading a counter takes %lu cycles: a hypervisor traps it; use --stages on", pmu->read_cycles);
	}
	return 0;
}

void pmu_close(struct pmu *pmu)
{
	while (pmu->count > 0) {
		pmu->count--;
		munmap(pmu->page[pmu->count], sysconf(_SC_PAGESIZE));
		close(pmu->fd[pmu->count]);
	}
}
