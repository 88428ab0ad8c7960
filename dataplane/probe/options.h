/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line behind the EAL's own. */
#ifndef VSPROF_PROBE_OPTIONS_H
#define VSPROF_PROBE_OPTIONS_H

#include "stream.h"

struct options {
	struct stream stream;
	const char *control; /* path of the control socket; NULL: send at once, and print one report at the end */
	double seconds;      /* how long to run at most */
};

/* Ends the program with exit status 2 and one line on anything that it does not know; on --help with the list. */
struct options options_read(int argc, char **argv);

#endif
