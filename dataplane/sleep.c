/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sleeping until a frame comes: each queue of the layout is asked for notifications, and epoll waits for any of them. */
#include "worker.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_log.h>
#include <rte_rcu_qsbr.h>

#include "plane.h"
#include "probes.h"

/* A bound for a notification that a driver loses. */
enum { SLEEP_MOST_MS = 1000 };

int sleep_init(struct worker *worker)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	worker->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (worker->epoll_fd < 0 || worker->wake_fd < 0)
		return -1;
	return epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, worker->wake_fd, &event);
}

void sleep_wake(struct worker *worker)
{
	eventfd_write(worker->wake_fd, 1);
}

/* Edge-triggered: each notification is one event, and nothing need be read to be notified again. */
void sleep_adopt(struct worker *worker)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	const struct layout *layout = worker->layout;
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	/* A set of its own each time: descriptors of the last one may be closed, or be another's by now. */
	if (epoll_fd < 0) {
		RTE_LOG(WARNING, USER1, "lcore %u: no file descriptor for new ports: their frames wait for up to %d ms; raise ulimit -n\n",
			worker->lcore, SLEEP_MOST_MS);
		return;
	}
	close(worker->epoll_fd);
	worker->epoll_fd = epoll_fd;
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, worker->wake_fd, &event);
	for (uint16_t i = 0; i < layout->polls[worker->index]; i++) {
		const struct poll_entry *entry = &layout->poll[worker->index][i];
		int fd = entry->port->driver->wake_fd(entry->port, entry->queue);

		if (fd >= 0)
			epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
	}
}

/* Asks all queues for notifications, or for none. Returns whether any has frames already. */
static bool arm_all(const struct worker *worker, bool on)
{
	const struct layout *layout = worker->layout;
	bool waiting = false;

	for (uint16_t i = 0; i < layout->polls[worker->index]; i++) {
		const struct poll_entry *entry = &layout->poll[worker->index][i];

		waiting |= entry->port->driver->arm(entry->port, entry->queue, on);
	}
	return waiting;
}

void sleep_until_frame(struct worker *worker)
{
	struct epoll_event event;
	uint64_t began;

	/* Asked first, looked after: a frame that came in between is seen here, a later one notifies. */
	if (!arm_all(worker, true)) {
		began = rte_rdtsc();
		PROBE1(worker_sleeps, worker->lcore);
		worker->counters.sleeps++;
		rte_rcu_qsbr_thread_offline(plane.rcu, worker->index);
		if (epoll_wait(worker->epoll_fd, &event, 1, SLEEP_MOST_MS) > 0)
			worker->counters.wakeups++;
		rte_rcu_qsbr_thread_online(plane.rcu, worker->index);
		worker->counters.sleep_ns += (rte_rdtsc() - began) * 1e9 / rte_get_tsc_hz();
		PROBE1(worker_wakes, worker->lcore);
	}
	/* A layout may have come meanwhile, with ports of the old one gone; even at the old one's address. */
	if (atomic_load(&plane.layout)->serial == worker->serial)
		arm_all(worker, false);
	else
		worker->layout = NULL;
}
