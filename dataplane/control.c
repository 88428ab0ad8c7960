/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "plane.h"

enum { CLIENTS = 16, LINE = 768, LISTENER = 0, SIGNALS = 1, ASKED = 2, FIRST_CLIENT = 3, FDS = FIRST_CLIENT + CLIENTS };

struct client {
	char line[LINE];
	size_t length;
};

static struct pollfd fds[FDS] = {{.fd = -1}, {.fd = -1}, {.fd = -1}};
static struct client clients[CLIENTS];

/* ---- commands ---- */

static int set_stages(const char *word, struct why *why)
{
	int instruments = word_in(word, instrument_names);

	if (instruments < 0)
		return refuse(why, "set stages %s: use off, on or pmu", word);
	if (instruments == INSTRUMENTS_PMU && plane.options.event_count == 0)
		return refuse(why, "set stages pmu: no events were opened: start with --stages pmu or --pmu-events");
	for (unsigned w = 0; w < plane.workers; w++)
		plane.worker[w]->instruments = instruments;
	return 0;
}

static int learn(const char *words, struct why *why)
{
	char name[NAME_LENGTH];
	unsigned byte[6];
	uint64_t mac = 0;
	struct port *port;

	if (sscanf(words, "%31s %2x:%2x:%2x:%2x:%2x:%2x", name, &byte[0], &byte[1], &byte[2], &byte[3], &byte[4], &byte[5]) != 7)
		return refuse(why, "learn %s: give PORT and an address such as 52:54:00:00:00:01", words);
	port = plane_find(name);
	if (port == NULL)
		return refuse(why, "learn: there is no port %s: `ports` lists them", name);
	for (int i = 5; i >= 0; i--)
		mac = mac << 8 | byte[i];
	mac_learn(plane.macs, mac, port->slot, rte_rdtsc() / rte_get_tsc_hz());
	return 0;
}

static int add_port(const char *text, struct why *why)
{
	struct port_spec spec;

	return port_parse(text, &spec, why) == 0 ? plane_add(&spec, why) : -1;
}

static int flush_macs(void)
{
	mac_forget(plane.macs, MAC_UNKNOWN);
	return 0;
}

static const char *after(const char *line, const char *command)
{
	size_t length = strlen(command);

	return strncmp(line, command, length) == 0 ? line + length : NULL;
}

static int obey(const char *line, struct why *why)
{
	const char *rest;

	if ((rest = after(line, "add-port ")) != NULL)
		return add_port(rest, why);
	if ((rest = after(line, "remove-port ")) != NULL)
		return plane_remove(rest, why);
	if ((rest = after(line, "learn ")) != NULL)
		return learn(rest, why);
	if ((rest = after(line, "set stages ")) != NULL)
		return set_stages(rest, why);
	if (strcmp(line, "flush-macs") == 0)
		return flush_macs();
	return refuse(why, "%.80s: unknown; use add-port, remove-port, learn, flush-macs, set stages, ports", line);
}

/* One that does not read its answers loses them. */
static void say(int fd, const char *text)
{
	send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void answer(int fd, const char *line)
{
	char text[64 + MAX_PORTS * (NAME_LENGTH + 1) + sizeof(struct why)] = "ok";
	struct why why;

	if (strcmp(line, "ports") == 0)
		for (unsigned slot = 0; slot < MAX_PORTS; slot++) {
			if (plane.port[slot] == NULL)
				continue;
			strcat(text, " ");
			strcat(text, plane.port[slot]->name);
		}
	else if (obey(line, &why) != 0)
		snprintf(text, sizeof(text), "error: %s", why.text);
	strcat(text, "\n");
	say(fd, text);
}

/* ---- the socket ---- */

static int bind_path(int fd, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(address.sun_path, path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return 0;
	/* A socket that nobody listens on was left behind by a program that was killed. */
	if (errno != EADDRINUSE || connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno != ECONNREFUSED)
		return -1;
	unlink(path);
	return bind(fd, (struct sockaddr *)&address, sizeof(address));
}

int control_open(const char *path, struct why *why)
{
	sigset_t ending;

	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	fds[SIGNALS] = (struct pollfd){signalfd(-1, &ending, SFD_CLOEXEC), POLLIN, 0};
	fds[ASKED] = (struct pollfd){plane.ask_fd, POLLIN, 0};
	for (int i = FIRST_CLIENT; i < FDS; i++)
		fds[i].fd = -1;
	if (*path == '\0')
		return 0;
	fds[LISTENER] = (struct pollfd){socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), POLLIN, 0};
	if (bind_path(fds[LISTENER].fd, path) == 0 && listen(fds[LISTENER].fd, CLIENTS) == 0)
		return 0;
	return refuse(why, "--control %s: %s: choose another path, or stop who listens there", path, strerror(errno));
}

static void drop(int i)
{
	close(fds[i].fd);
	fds[i].fd = -1;
}

static void welcome(void)
{
	int fd = accept4(fds[LISTENER].fd, NULL, NULL, SOCK_CLOEXEC);

	for (int i = FIRST_CLIENT; i < FDS && fd >= 0; i++)
		if (fds[i].fd < 0) {
			fds[i] = (struct pollfd){fd, POLLIN, 0};
			clients[i - FIRST_CLIENT].length = 0;
			return;
		}
	if (fd >= 0) {
		say(fd, "error: others are connected, the most that can be: try again\n");
		close(fd);
	}
}

static void hear(int i)
{
	struct client *client = &clients[i - FIRST_CLIENT];
	ssize_t got = recv(fds[i].fd, client->line + client->length, LINE - 1 - client->length, MSG_DONTWAIT);
	char *end;

	if (got <= 0) {
		drop(i);
		return;
	}
	client->length += got;
	client->line[client->length] = '\0';
	while ((end = memchr(client->line, '\n', client->length)) != NULL) {
		*end = '\0';
		answer(fds[i].fd, client->line);
		client->length -= end + 1 - client->line;
		memmove(client->line, end + 1, client->length);
	}
	if (client->length == LINE - 1) {
		say(fds[i].fd, "error: a line of more than 766 characters is no command\n");
		drop(i);
	}
}

void control_serve(void)
{
	eventfd_t asked;

	for (;;) {
		if (poll(fds, FDS, -1) < 0)
			continue;
		if (fds[SIGNALS].revents != 0)
			return;
		if (fds[ASKED].revents != 0 && eventfd_read(plane.ask_fd, &asked) == 0)
			plane_publish();
		if (fds[LISTENER].revents != 0)
			welcome();
		for (int i = FIRST_CLIENT; i < FDS; i++)
			if (fds[i].fd >= 0 && fds[i].revents != 0)
				hear(i);
	}
}

void control_close(const char *path)
{
	for (int i = 0; i < FDS; i++)
		if (fds[i].fd >= 0)
			close(fds[i].fd);
	if (*path != '\0')
		unlink(path);
}
