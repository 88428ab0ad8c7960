/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control socket: a command a line, an answer that ends with a dot, clients that come and go. Makes a socket where it runs. */
#include "control.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"

#define SOCKET "control.sock"

static int handled; /* written by the socket's thread */

static void handle(char *line, FILE *out)
{
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
	if (!strcmp(line, "lines"))
		fputs("one\ntwo\n.three\n", out);
	else if (!strcmp(line, "nothing"))
		return;
	else if (!strcmp(line, "much"))
		for (int i = 0; i < 100000; i++)
			fprintf(out, "line %d\n", i);
	else
		fprintf(out, "<%s> %zu\n", strlen(line) > 100 ? "long" : line, strlen(line));
}

static int connected(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET};
	struct timeval patience = {.tv_sec = 10};
	int client = socket(AF_UNIX, SOCK_STREAM, 0);

	CHECK(client >= 0 && !connect(client, (struct sockaddr *)&address, sizeof(address)));
	CHECK(!setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	return client;
}

static void say(int client, const char *text)
{
	CHECK(write(client, text, strlen(text)) == (ssize_t)strlen(text));
}

/* Everything up to the next line that is a dot alone, without it. */
static const char *answer(int client)
{
	static char text[4096];
	size_t length = 0;

	for (;;) {
		CHECK(length + 1 < sizeof(text) && read(client, text + length, 1) == 1);
		text[++length] = '\0';
		if (!strcmp(text, ".\n") || (length > 2 && !strcmp(text + length - 3, "\n.\n"))) {
			text[length - 2] = '\0';
			return text;
		}
	}
}

static void answers_are(int client, const char *expected)
{
	const char *found = answer(client);

	if (strcmp(found, expected)) {
		fprintf(stderr, "\"%s\", not \"%s\"\n", found, expected);
		exit(1);
	}
}

static void commands(void)
{
	int client = connected();
	char *longest = malloc(100002);

	say(client, "status\n");
	answers_are(client, "<status> 6\n");
	say(client, "with an argument\r\n");
	answers_are(client, "<with an argument> 16\n");
	say(client, "\n");
	answers_are(client, "<> 0\n");
	say(client, "lines\n");
	answers_are(client, "one\ntwo\n.three\n");
	say(client, "nothing\n");
	answers_are(client, "");
	/* Two at once, and one in two pieces. */
	say(client, "a\nb\nc");
	answers_are(client, "<a> 1\n");
	answers_are(client, "<b> 1\n");
	say(client, "d\n");
	answers_are(client, "<cd> 2\n");
	CHECK(longest);
	memset(longest, 'x', 100000);
	strcpy(longest + 100000, "\n");
	say(client, longest);
	answers_are(client, "<long> 100000\n");
	free(longest);
	close(client);
}

/* Wait for the thread to have handled so many lines. */
static void wait_for(int count)
{
	for (int tries = 0; __atomic_load_n(&handled, __ATOMIC_RELAXED) < count; tries++) {
		CHECK(tries < 10000);
		usleep(1000);
	}
}

static void clients_that_go_away(void)
{
	int before = __atomic_load_n(&handled, __ATOMIC_RELAXED), client = connected();

	/* In the middle of a line: it is not carried out. */
	say(client, "whole\npart");
	answers_are(client, "<whole> 5\n");
	close(client);
	client = connected();
	say(client, "next\n");
	answers_are(client, "<next> 4\n");
	EQUAL(handled, before + 2);
	/* Without a word. */
	close(client);
	close(connected());
	/* Without reading a long answer: the write fails, and no signal ends the process. */
	client = connected();
	say(client, "much\n");
	close(client);
	wait_for(before + 3);
	client = connected();
	say(client, "still there\n");
	answers_are(client, "<still there> 11\n");
	close(client);
}

/* One at a time; the second one is heard when the first is done. */
static void two_clients(void)
{
	int first = connected(), second = connected(), before;

	say(first, "first\n");
	answers_are(first, "<first> 5\n");
	before = __atomic_load_n(&handled, __ATOMIC_RELAXED);
	say(second, "second\n");
	usleep(20000);
	EQUAL(__atomic_load_n(&handled, __ATOMIC_RELAXED), before);
	close(first);
	answers_are(second, "<second> 6\n");
	close(second);
}

int main(void)
{
	char too_long[200];

	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	EQUAL(control_start(too_long, handle), (uint64_t)-1);
	EQUAL(control_start("no/such/folder/control.sock", handle), (uint64_t)-1);
	EQUAL(control_start(SOCKET, handle), 0);
	commands();
	clients_that_go_away();
	two_clients();
	return 0;
}
