/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters as JSON, through DPDK's telemetry socket. Below /vhost_switch/, see docs/dataplane.md. */
#ifndef VS_TELEMETRY_H
#define VS_TELEMETRY_H

#include "why.h"

int telemetry_init(struct why *why);

#endif
