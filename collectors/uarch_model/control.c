/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int listener = -1;
static control_handler handle;

static void serve(int client)
{
	FILE *in = fdopen(client, "r"), *out = fdopen(dup(client), "w");
	char *line = NULL;
	size_t size = 0;
	ssize_t length;

	/* What has no end of line was cut short: "clock 2000 …" must not be taken for a smaller quantum. */
	while (in && out && (length = getline(&line, &size, in)) > 0 && line[length - 1] == '\n') {
		line[strcspn(line, "\r\n")] = '\0';
		handle(line, out);
		fputs(".\n", out);
		if (fflush(out))
			break;
	}
	free(line);
	if (in)
		fclose(in);
	if (out)
		fclose(out);
}

static void *listen_for_clients(void *unused)
{
	(void)unused;
	for (;;) {
		int client = accept(listener, NULL, NULL);
		if (client >= 0)
			serve(client);
		else
			usleep(10000);
	}
	return NULL;
}

int control_start(const char *path, control_handler handler)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	sigset_t all, before;
	pthread_t thread;

	if (strlen(path) >= sizeof(address.sun_path)) {
		fprintf(stderr, "uarch_model: the path of the control socket is longer than %zu bytes: %s\n", sizeof(address.sun_path) - 1,
			path);
		return -1;
	}
	strcpy(address.sun_path, path);
	handle = handler;
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 4)) {
		perror("uarch_model: control socket");
		return -1;
	}
	/* QEMU handles its signals in threads of its own choice. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&thread, NULL, listen_for_clients, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		return fprintf(stderr, "uarch_model: no thread for the control socket\n"), -1;
	pthread_detach(thread);
	return 0;
}
