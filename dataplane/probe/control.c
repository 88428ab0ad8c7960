/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "report.h"

#define SILENCE_S 1 /* who says nothing for so long is not waited for */

/* "start period-us=350 warmup=100": what is not said is as by default. */
static const char *start(struct loop *loop, char *settings)
{
	struct stream stream = STREAM_DEFAULT;
	char *rest = NULL;

	for (char *name = strtok_r(settings, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
		char *value = strchr(name, '=');
		if (!value)
			return "a setting is NAME=VALUE";
		*value++ = '\0';
		const char *wrong = stream_set(&stream, name, value);
		if (wrong)
			return wrong;
	}
	return loop_send(loop, &stream) ? NULL : "the thread that sends did not answer within 5 s";
}

/* Until nothing is sent or comes any more. NULL, or why not. */
static const char *wait_for_end(const struct loop *loop)
{
	if (!loop->wanted.count && atomic_load(&loop->sending))
		return "the stream has no end to wait for: start it with count=N, or stop it before";
	return loop_wait(loop) ? NULL : "a signal came before the end";
}

static void answer(FILE *out, struct loop *loop, char *line)
{
	char *rest = NULL, *command = strtok_r(line, " \r\n", &rest) ?: (char[]){""};
	bool waits = !strcmp(command, "wait"), reports = waits || !strcmp(command, "report");
	const char *wrong = NULL;

	if (waits)
		wrong = wait_for_end(loop);
	else if (!strcmp(command, "start"))
		wrong = start(loop, strtok_r(NULL, "\r\n", &rest) ?: (char[]){""});
	else if (!strcmp(command, "stop"))
		loop_pause(loop);
	else if (!reports)
		wrong = "unknown command: use start, stop, wait or report";
	if (reports && !wrong)
		report_write(out, loop);
	else
		fprintf(out, wrong ? "error: %s\n" : "ok\n", wrong);
}

static void serve_one(int client, struct loop *loop)
{
	struct timeval silence = {.tv_sec = SILENCE_S};
	char line[256];

	setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence));
	setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof(silence));
	FILE *in = fdopen(client, "r"), *out = fdopen(dup(client), "w");
	while (in && out && fgets(line, sizeof(line), in)) {
		bool whole = strchr(line, '\n');
		if (whole)
			answer(out, loop, line);
		else
			fputs("error: a command is one line of at most 254 characters\n", out);
		if (fflush(out) || !whole)
			break;
	}
	if (in)
		fclose(in);
	if (out)
		fclose(out);
}

int control_listen(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener >= 0 && (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 4))) {
		close(listener);
		return -1;
	}
	return listener;
}

void control_serve(int listener, struct loop *loop, int milliseconds)
{
	struct pollfd asked = {.fd = listener, .events = POLLIN};

	if (poll(&asked, 1, milliseconds) <= 0)
		return;
	int client = accept(listener, NULL, NULL);
	if (client >= 0)
		serve_one(client, loop);
}
