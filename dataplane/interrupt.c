/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost.c sets O_NONBLOCK on the descriptor, but it is the endpoint's file too, and the endpoint may take that away again and fill the
 * counter. No call of Linux writes to an eventfd without looking at that flag. So a thread looks every 50 ms whether a write has not
 * returned since its last look, and interrupts it with a signal. A write that does not wait costs two stores for that.
 */
#include "interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

enum { LOOK_EVERY_US = 50000 };

/* A thread that has interrupted a guest; it stays in the list. */
struct writer {
	_Atomic uint32_t turn; /* odd: it is writing */
	uint32_t seen;         /* the turn at our last look */
	pid_t thread;
	struct writer *next;
};

static struct writer *_Atomic writers;
static _Thread_local struct writer self;

static void join(void)
{
	self.thread = gettid();
	self.next = atomic_load(&writers);
	while (!atomic_compare_exchange_weak(&writers, &self.next, &self))
		;
}

enum interrupt interrupt_guest(int fd)
{
	uint32_t turn = atomic_load_explicit(&self.turn, memory_order_relaxed);
	uint64_t one = 1;
	ssize_t wrote;
	int error;

	if (self.thread == 0)
		join();
	atomic_store_explicit(&self.turn, turn + 1, memory_order_release);
	wrote = write(fd, &one, sizeof(one));
	error = errno;
	atomic_store_explicit(&self.turn, turn + 2, memory_order_release);
	if (wrote == sizeof(one))
		return INTERRUPT_SENT;
	return error == EINTR ? INTERRUPT_WAITED : INTERRUPT_NOT_SENT;
}

static void look_at(struct writer *writer)
{
	uint32_t turn = atomic_load(&writer->turn);

	/* Again at the next look, should it only be about to wait: a signal that comes before the wait ends none. */
	if (turn % 2 == 1 && turn == writer->seen)
		tgkill(getpid(), writer->thread, SIGURG);
	writer->seen = turn;
}

static void *watch(void *nothing)
{
	for (;;) {
		usleep(LOOK_EVERY_US);
		for (struct writer *writer = atomic_load(&writers); writer != NULL; writer = writer->next)
			look_at(writer);
	}
	return nothing;
}

static void ignore(int number)
{
	(void)number;
}

int interrupt_watch(void)
{
	pthread_t thread;
	int error;

	/* Without SA_RESTART the write returns. A signal that is ignored would interrupt nothing. */
	sigaction(SIGURG, &(struct sigaction){.sa_handler = ignore}, NULL);
	error = pthread_create(&thread, NULL, watch, NULL);
	if (error == 0)
		pthread_setname_np(thread, "vs-watch");
	return error;
}
