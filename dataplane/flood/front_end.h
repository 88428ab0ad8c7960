/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The vhost-user protocol, as a front-end speaks it (QEMU's docs/interop/vhost-user.rst): gives a port's rings to a switch. */
#ifndef VSPROF_FLOOD_FRONT_END_H
#define VSPROF_FLOOD_FRONT_END_H

#include "port.h"

/* Listens at the port's path, if it is a server. NULL, or why not. */
const char *front_end_open(struct port *port);

/* Waits at most so long for what happens to any of the ports: a switch that comes, which is given the rings, or one that goes. */
void front_end_serve(struct port *ports, unsigned count, int milliseconds);

/* Lets the switch go, and removes the socket. */
void front_end_close(struct port *port);

#endif
