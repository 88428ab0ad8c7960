/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Idle states: a processor with nothing to do sleeps the more deeply the longer it has nothing to do, and takes the longer to wake.
 * The governor is one that knows the future: it takes the deepest state that pays for the time that the processor then really sleeps.
 */
#ifndef VSPROF_IDLE_H
#define VSPROF_IDLE_H

#include "profile.h"

#define IDLE_STATES 5 /* C1, C1E, C2, C3, C6: those that the profile has; C0 is to have none of them */

/* How long, in ns, it takes to wake after `idle` ns, where no state is deeper than the first `deepest`. */
int64_t idle_exit(const struct profile *profile, uint32_t deepest, int64_t idle);

#endif
