/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "counters.h"

const char *const counter_names[COUNTER_COUNT] = {
#define X(name) #name,
	COUNTERS(X)
#undef X
};

const char *const mode_names[MODE_COUNT] = {"host_kernel", "host_user", "guest_kernel", "guest_user"};

_Static_assert(sizeof(struct counters) == COUNTER_COUNT * sizeof(uint64_t), "counters are summed as an array");

void counters_add_difference(struct counters *to, const struct counters *more, const struct counters *less)
{
	uint64_t *sum = (uint64_t *)to;
	const uint64_t *a = (const uint64_t *)more, *b = (const uint64_t *)less;

	for (int i = 0; i < COUNTER_COUNT; i++)
		sum[i] += a[i] - b[i];
}
