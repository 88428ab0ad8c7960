/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processor's own counters, read by the thread that they count, by rdpmc: no system call at a stage's border. */
#ifndef VS_PMU_H
#define VS_PMU_H

#include <stdint.h>

#include "counters.h"
#include "why.h"

struct pmu_event {
	char name[48];
	uint32_t type; /* of perf_event_open(2) */
	uint64_t config;
};

struct pmu {
	unsigned count;
	int fd[PMU_MOST];
	struct perf_event_mmap_page *page[PMU_MOST];
	uint64_t read_cycles; /* TSC cycles that reading one counter takes, the median of many */
};

/* NAME or NAME=TYPE:CONFIG, separated by commas. Returns how many; -1 and the reason. */
int pmu_parse(const char *text, struct pmu_event *events, struct why *why);

/* Counts `events` of the calling thread. -1 and the reason: no PMU, no permission, or reading it is trapped. */
int pmu_open(struct pmu *pmu, const struct pmu_event *events, unsigned count, struct why *why);
void pmu_close(struct pmu *pmu);

/* Writes the counters as they are now. */
void pmu_read(const struct pmu *pmu, uint64_t *values);

#endif
