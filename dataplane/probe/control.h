/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a running probe is told what to do: a Unix stream socket, one command a line, one answer a line. */
#ifndef VSPROF_PROBE_CONTROL_H
#define VSPROF_PROBE_CONTROL_H

#include "loop.h"

/* Listens at `path`, which may not exist. Returns the socket, or -1 with errno set. */
int control_listen(const char *path);

/* Serves whoever asks at `listener`, one after the other, for at most `milliseconds`, or until a signal comes. */
void control_serve(int listener, struct loop *loop, int milliseconds);

#endif
