/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters out, commands in: by DPDK's telemetry, below /frame_flood/. */
#ifndef VSPROF_FLOOD_TELEMETRY_H
#define VSPROF_FLOOD_TELEMETRY_H

#include "options.h"

/* False if DPDK did not take the commands. */
bool telemetry_start(struct options *options);

#endif
