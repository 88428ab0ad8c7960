/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interrupting a guest: writing to the eventfd that it gave us, without ever waiting for it. */
#ifndef VS_INTERRUPT_H
#define VS_INTERRUPT_H

enum interrupt {
	INTERRUPT_SENT,
	INTERRUPT_NOT_SENT, /* its counter is full, so one is pending, or the descriptor takes none */
	INTERRUPT_WAITED,   /* the endpoint made the descriptor wait: never to be written to again */
};

/* For any thread. It waits for the endpoint 100 ms at most, once interrupt_watch() runs. */
enum interrupt interrupt_guest(int fd);

/* Starts the thread that ends such a wait, on the CPUs of the caller. 0, or an error number. */
int interrupt_watch(void);

#endif
