/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "options.h"

#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_RUN_S 1e6

static const char HELP[] =
	"frame-probe [EAL options, two lcores and one or two ports] -- [options]\n"
	"Sends numbered frames out of port 0, receives them on port 1, or on port 0 where there is no other, and prints as JSON how long\n"
	"they took and which were lost.\n"
	"\n"
	"  --period-us N      one frame every N microseconds (350)\n"
	"  --rate N           or: N frames a second\n"
	"  --frame-bytes N    size of a frame with its FCS, 64 to 1518 (64)\n"
	"  --warmup N         frames that are sent first and not counted (100)\n"
	"  --count N          frames that are sent after these; sending ends with them (0: it does not end)\n"
	"  --burst N          frames that are sent at once where so many are due, 1 to 32 (1)\n"
	"  --flows N          frames take turns on so many flows, which differ in their destination address, 1 to 1000000 (1)\n"
	"  --target MAC       frames go there, and not to a port of this program; none comes back\n"
	"  --stall-us N       a longer time between two polls is a stall of the probe itself (30)\n"
	"  --seconds N        ends after so long (10; with --control 3600)\n"
	"  --control SOCKET   waits to be told: start [period-us=N] [frame-bytes=N] …, wait, report, stop\n";

static const struct option KNOWN[] = {
	{"period-us", required_argument, NULL, 's'},
	{"rate", required_argument, NULL, 's'},
	{"frame-bytes", required_argument, NULL, 's'},
	{"warmup", required_argument, NULL, 's'},
	{"count", required_argument, NULL, 's'},
	{"burst", required_argument, NULL, 's'},
	{"stall-us", required_argument, NULL, 's'},
	{"flows", required_argument, NULL, 's'},
	{"target", required_argument, NULL, 's'},
	{"seconds", required_argument, NULL, 't'},
	{"control", required_argument, NULL, 'c'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static double read_seconds(const char *text)
{
	char *end;
	double found = strtod(text, &end);

	if (end == text || *end || !(found > 0 && found <= LONGEST_RUN_S))
		errx(2, "--seconds: need a number above 0, up to 1000000, found %s", text);
	return found;
}

struct options options_read(int argc, char **argv)
{
	struct options options = {.stream = STREAM_DEFAULT};
	int option, at = 0;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", KNOWN, &at)) != -1) {
		const char *wrong = option == 's' ? stream_set(&options.stream, KNOWN[at].name, optarg) : NULL;
		if (wrong)
			errx(2, "%s, found %s", wrong, optarg);
		if (option == 't')
			options.seconds = read_seconds(optarg);
		if (option == 'c')
			options.control = optarg;
		if (option == 'h') {
			fputs(HELP, stdout);
			exit(0);
		}
		if (option == '?')
			errx(2, "unknown option, or one without its value: %s; see --help", argv[optind - 1]);
	}
	if (optind < argc)
		errx(2, "it takes options only, found %s: see --help", argv[optind]);
	if (!options.seconds)
		options.seconds = options.control ? 3600 : 10;
	return options;
}
