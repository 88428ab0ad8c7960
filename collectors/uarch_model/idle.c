/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "idle.h"

int64_t idle_exit(const struct profile *profile, uint32_t deepest, int64_t idle)
{
	const struct {
		uint32_t residency, latency;
	} states[IDLE_STATES] = {
		{profile->idle_c1_residency, profile->idle_c1_latency},
		{profile->idle_c1e_residency, profile->idle_c1e_latency},
		{profile->idle_c2_residency, profile->idle_c2_latency},
		{profile->idle_c3_residency, profile->idle_c3_latency},
		{profile->idle_c6_residency, profile->idle_c6_latency},
	};
	uint32_t exit = 0;

	for (uint32_t i = 0; profile->model_idle_states && i < deepest && i < IDLE_STATES; i++)
		if (states[i].latency && idle >= states[i].residency)
			exit = states[i].latency;
	return exit;
}
