/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A Unix socket that takes one command a line and answers each with text and a line of its own, "." (as SMTP ends a message).
 * One client at a time; a client that goes away changes nothing.
 */
#ifndef VSPROF_CONTROL_H
#define VSPROF_CONTROL_H

#include <stdio.h>

/* Carry out `line` and write the answer, one line or more, to `out`. */
typedef void (*control_handler)(char *line, FILE *out);

/* Listen on `path` in a thread of its own. Returns 0, or -1 with a message on stderr. */
int control_start(const char *path, control_handler handler);

#endif
