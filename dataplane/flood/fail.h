/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One line on standard error and the end. Status 1: it could not be done; 2: it can't be done as asked. */
#ifndef VSPROF_FLOOD_FAIL_H
#define VSPROF_FLOOD_FAIL_H

#include <stdio.h>
#include <stdlib.h>

#define fail(status, ...)                       \
	do {                                    \
		fputs("frame-flood: ", stderr); \
		fprintf(stderr, __VA_ARGS__);   \
		fputc('\n', stderr);            \
		exit(status);                   \
	} while (0)

#endif
