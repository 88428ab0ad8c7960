/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control socket: a line is a command, and has a line as its answer. Served by the main thread, which does nothing else. */
#ifndef VS_CONTROL_H
#define VS_CONTROL_H

#include "why.h"

/* Listens at `path`; empty: nowhere. -1 and the reason where it can't. */
int control_open(const char *path, struct why *why);

/* Serves until SIGINT or SIGTERM, which must be blocked in all threads. */
void control_serve(void);

void control_close(const char *path);

#endif
