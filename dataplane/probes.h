/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * USDT probes at the stages' borders, for bpftrace and perf: a NOP each until somebody attaches.
 *   burst_dequeued(slot, queue, frames)  burst_parsed(slot, frames)  burst_looked_up(slot, frames)  burst_enqueued(slot, frames)
 *   worker_sleeps(lcore)  worker_wakes(lcore)
 */
#ifndef VS_PROBES_H
#define VS_PROBES_H

#include <sys/sdt.h>

#define PROBE1(name, a) DTRACE_PROBE1(vhost_switch, name, a)
#define PROBE2(name, a, b) DTRACE_PROBE2(vhost_switch, name, a, b)
#define PROBE3(name, a, b, c) DTRACE_PROBE3(vhost_switch, name, a, b, c)

#endif
