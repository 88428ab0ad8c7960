/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <rte_malloc.h>

static int copy_value(char *into, size_t size, const char *key, const char *value, struct why *why)
{
	if (strlen(value) >= size)
		return refuse(why, "port: %s is %zu characters long, at most %zu can be: %.40s…", key, strlen(value), size - 1, value);
	strcpy(into, value);
	return 0;
}

static int parse_path(const char *value, struct port_spec *spec, struct why *why)
{
	const size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;

	if (strlen(value) > most)
		return refuse(why, "port %s: the socket's path has %zu characters, the kernel takes %zu: choose a shorter one (%.40s…)",
			spec->name, strlen(value), most, value);
	return copy_value(spec->path, sizeof(spec->path), "path", value, why);
}

static int parse_number(const char *key, const char *value, long least, long most, long *number, struct why *why)
{
	char *end;

	*number = strtol(value, &end, 10);
	if (*value == '\0' || *end != '\0' || *number < least || *number > most)
		return refuse(why, "port: %s=%s: give a number from %ld to %ld", key, value, least, most);
	return 0;
}

static int parse_key(const char *key, const char *value, struct port_spec *spec, struct why *why)
{
	long number;

	if (strcmp(key, "path") == 0)
		return parse_path(value, spec, why);
	if (strcmp(key, "server") == 0) {
		if (parse_number(key, value, 0, 1, &number, why) != 0)
			return -1;
		spec->server = number;
		return 0;
	}
	if (strcmp(key, "queues") == 0) {
		if (parse_number(key, value, 1, MAX_QUEUES, &number, why) != 0)
			return -1;
		spec->queues = number;
		return 0;
	}
	return refuse(why, "port %s: unknown key %s: give path=, server=, queues= or dev=", spec->name, key);
}

static int parse_keys(char *text, struct port_spec *spec, struct why *why)
{
	char *rest = text, *word;

	while ((word = rest) != NULL && *word != '\0') {
		char *value;

		/* A device's own arguments contain commas: everything behind dev= is the device's. */
		if (strncmp(word, "dev=", 4) == 0)
			return copy_value(spec->device, sizeof(spec->device), "dev", word + 4, why);
		rest = strchr(word, ',');
		if (rest != NULL)
			*rest++ = '\0';
		value = strchr(word, '=');
		if (value == NULL)
			return refuse(why, "port %s: found %s: give key=value", spec->name, word);
		*value++ = '\0';
		if (parse_key(word, value, spec, why) != 0)
			return -1;
	}
	return 0;
}

int port_parse(const char *text, struct port_spec *spec, struct why *why)
{
	char copy[640];
	char *rest;

	memset(spec, 0, sizeof(*spec));
	spec->queues = 1;
	if (strlen(text) >= sizeof(copy))
		return refuse(why, "port: a description of %zu characters is too long", strlen(text));
	strcpy(copy, text);
	rest = strchr(copy, ',');
	if (rest != NULL)
		*rest++ = '\0';
	if (copy[0] == '\0' || rest == NULL || strpbrk(copy, "=/ ") != NULL)
		return refuse(why, "port: found %s: give NAME,path=SOCKET or NAME,dev=DEVICE", text);
	if (copy_value(spec->name, sizeof(spec->name), "the name", copy, why) != 0 || parse_keys(rest, spec, why) != 0)
		return -1;
	if ((spec->path[0] != '\0') == (spec->device[0] != '\0'))
		return refuse(why, "port %s: give either path= (vhost-user) or dev= (a DPDK port)", spec->name);
	return 0;
}

struct port *port_open(const struct port_spec *spec, uint16_t slot, struct why *why)
{
	struct port *port = rte_zmalloc(spec->name, sizeof(*port), RTE_CACHE_LINE_SIZE);

	if (port == NULL) {
		refuse(why, "port %s: no memory for it: give DPDK more (-m)", spec->name);
		return NULL;
	}
	strcpy(port->name, spec->name);
	port->spec = *spec;
	port->slot = slot;
	port->node = -1;
	if ((spec->path[0] != '\0' ? vhost_open : dpdk_open)(port, why) != 0) {
		rte_free(port);
		return NULL;
	}
	return port;
}

void port_close(struct port *port)
{
	port->driver->close(port);
	rte_free(port);
}

uint16_t port_drop_runts(struct queue_counters *counters, struct rte_mbuf **frames, uint16_t count)
{
	uint16_t kept = 0;

	for (uint16_t i = 0; i < count; i++)
		if (likely(frames[i]->data_len >= HEADER_LENGTH)) {
			counters->bytes += frames[i]->pkt_len;
			frames[kept++] = frames[i];
		} else {
			counters->refused++;
			rte_pktmbuf_free(frames[i]);
		}
	return kept;
}
