/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was counted so far, as one line of JSON. README.md has its fields. */
#ifndef VSPROF_PROBE_REPORT_H
#define VSPROF_PROBE_REPORT_H

#include <stdio.h>

#include "loop.h"

void report_write(FILE *out, const struct loop *loop);

#endif
