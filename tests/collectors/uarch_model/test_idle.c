/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which idle state is taken, and what waking from it takes: those of a Haswell. */
#include "idle.h"

#include "check.h"

static const struct profile haswell = {
	.idle_c1_residency = 2000,
	.idle_c1_latency = 2000,
	.idle_c1e_residency = 20000,
	.idle_c1e_latency = 10000,
	.idle_c3_residency = 100000,
	.idle_c3_latency = 33000,
	.idle_c6_residency = 400000,
	.idle_c6_latency = 133000,
	.model_idle_states = 1,
};

int main(void)
{
	struct profile without = haswell;

	EQUAL(idle_exit(&haswell, IDLE_STATES, 0), 0);
	EQUAL(idle_exit(&haswell, IDLE_STATES, 1999), 0);
	EQUAL(idle_exit(&haswell, IDLE_STATES, 2000), 2000);
	EQUAL(idle_exit(&haswell, IDLE_STATES, 99999), 10000);
	EQUAL(idle_exit(&haswell, IDLE_STATES, 100000), 33000);
	EQUAL(idle_exit(&haswell, IDLE_STATES, 1ll << 50), 133000);
	/* No deeper than allowed: not at all, C1, C1E, C2 (which it has not), C3. */
	EQUAL(idle_exit(&haswell, 0, 1000000), 0);
	EQUAL(idle_exit(&haswell, 1, 1000000), 2000);
	EQUAL(idle_exit(&haswell, 2, 1000000), 10000);
	EQUAL(idle_exit(&haswell, 3, 1000000), 10000);
	EQUAL(idle_exit(&haswell, 4, 1000000), 33000);
	EQUAL(idle_exit(&haswell, 99, 1000000), 133000);
	without.model_idle_states = 0;
	EQUAL(idle_exit(&without, IDLE_STATES, 1000000), 0);
	return 0;
}
