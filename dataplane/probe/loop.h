/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread that sends, receives and counts, and how others tell it what to do. It never sleeps, and makes no system call of its own. */
#ifndef VSPROF_PROBE_LOOP_H
#define VSPROF_PROBE_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "ports.h"
#include "stream.h"
#include "tally.h"

struct loop {
	const struct ports *ports;
	struct stream wanted; /* written while asked == taken */
	atomic_uint asked, taken;
	atomic_bool sending; /* set and, where a stream ends by itself, taken back by the loop; taken back by who pauses it */
	atomic_bool quit;
	struct tally tally; /* written by the loop alone */
};

/* For rte_eal_remote_launch: runs until `quit`. */
int loop_run(void *loop);

/* Lets `stream` be sent, in the place of any other, and counted from zero. False if the loop does not take it within 5 s. */
bool loop_send(struct loop *loop, const struct stream *stream);

/* Sends no more of it. What is still under way is received and counted. */
void loop_pause(struct loop *loop);

/* Waits until nothing is sent, and nothing comes any more. False if a signal came before that. */
bool loop_wait(const struct loop *loop);

#endif
