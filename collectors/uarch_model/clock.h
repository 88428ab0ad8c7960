/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modelled time: one clock for an emulated machine whose CPUs each run at the pace of the modelled processor. A CPU reports how far it
 * has come; the clock is where the slowest CPU that runs is, and a CPU that is further ahead than its lead waits. A timer of the
 * machine that falls due holds the clock until the machine has seen to it, so timers are late by a quantum at most.
 *
 * A lead is drawn at random, at most a quantum, each time that a CPU has waited. With the same lead every time, CPUs that wait for each
 * other fall into step with what their programs do by turns, and rates come out that no machine has: with a quantum of 0.5 us OVS-DPDK
 * delivered 12 % more packets than with 0.25 us, and 20 % more than with 1 us.
 *
 * Where all CPUs are idle, time passes by itself: not faster than `pace` times real time, for those outside who talk to the machine
 * (a log-in, a disk) live in real time.
 *
 * It knows nothing of QEMU. Times are nanoseconds. Nobody waits in it for long: a CPU that must wait is sent back after WAIT_NS, and has
 * to ask again, because meanwhile the emulator may want it elsewhere. Each time it is sent back it runs a little further ahead, so it
 * waits twice as long the next time if the clock has not moved.
 */
#ifndef VSPROF_CLOCK_H
#define VSPROF_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define CLOCK_MOST_CPUS 16
#define CLOCK_LOOK_NS 1000000         /* of real time, in which a CPU that waits does not sleep */
#define CLOCK_WAIT_NS 200000          /* of real time */
#define CLOCK_LONGEST_WAIT_NS 3200000 /* where the clock stands still */
#define CLOCK_VAIN_NS 1000000000      /* after which a CPU that was called is taken as idle still */

/* What the clock must know of the machine around it, and do to it. Both are called with the clock's lock held. */
struct clock_machine {
	int64_t (*deadline)(void);     /* from the clock's present time to the next timer: 0 if one is due, -1 if there is none */
	void (*run_timers)(void);      /* have the due timers run soon, by somebody else */
	int64_t (*wake)(int64_t idle); /* how long a CPU takes to wake when it has been idle so long; NULL: no time */
};

struct clock_cpu {
	bool idle, waits;
	bool held;    /* it was too far ahead, and has not been let go since */
	bool called;  /* it was woken, but its thread has not come back yet: the others wait for it as for one that runs */
	int64_t at;   /* where it was when it last reported */
	int64_t woke; /* where it went on when it last woke */
	uint64_t reports;
	int64_t lead;            /* how far ahead of the clock it may run */
	int64_t waited_at, wait; /* where the clock was when it last waited, and how long it may */
	int64_t called_at;       /* of real time */
	pthread_cond_t go;
};

/* How well CPUs were kept together, since the first start. */
struct clock_record {
	uint64_t reports, waits, slices; /* slices: of real time, after which a waiting CPU was sent back */
	uint64_t far_ahead;              /* reports of a CPU that was more than two quanta ahead */
	int64_t most_ahead;              /* the most that any CPU was ahead */
	uint64_t timers;                 /* timers that held the clock */
	uint64_t calls, vain;            /* idle CPUs that were woken; those of them that had nothing to do in the end */
	int64_t idle;                    /* time that passed while all CPUs were idle */
	int64_t modelled, wall;          /* time that was modelled, and the real time that it took */
};

struct clock {
	pthread_mutex_t lock;
	bool started;
	uint32_t cpu_count;
	int64_t now, begin, quantum;
	int64_t next_event; /* where the slowest CPU must come before anything happens; may be old */
	uint64_t random;    /* of which leads are made */
	int64_t wall_begin; /* CLOCK_MONOTONIC */
	double pace;
	int64_t idle_mark; /* CLOCK_MONOTONIC until which idle time has been passed; 0: a CPU runs */
	uint32_t let_go;   /* CPUs, a bit each, that wait and may go on, but have not been told */
	pthread_cond_t all_idle;
	const struct clock_machine *machine;
	pthread_t passes_time;
	struct clock_cpu cpu[CLOCK_MOST_CPUS];
	struct clock_record record;
};

void clock_init(struct clock *clock, uint32_t cpu_count);
/*
 * Time begins to be modelled, at `begin`. Whether a CPU is idle is known from clock_idle and clock_resume, which are called from the
 * start of the machine on. Returns false without the thread that passes idle time.
 */
bool clock_start(struct clock *clock, const struct clock_machine *machine, int64_t begin, int64_t quantum, uint64_t seed, double pace);
/* Time is not modelled any longer; nobody waits. Returns where the CPU is that was ahead of all others. */
int64_t clock_stop(struct clock *clock);
static inline int64_t clock_now(const struct clock *clock)
{
	return __atomic_load_n(&clock->now, __ATOMIC_RELAXED);
}

/* CPU `index` runs, and is at `at`. Returns whether it may go on; if not, it has waited, and must ask again before it runs far. */
bool clock_report(struct clock *clock, uint32_t index, int64_t at);
/* CPU `index` has nothing to do from `at` on. */
void clock_idle(struct clock *clock, uint32_t index, int64_t at);
/*
 * Somebody who is at `at` gives CPU `index` something to do, an interrupt for instance. If it is idle, it wakes from then on. How long its
 * thread takes in real time until it calls clock_resume must not matter: nobody runs far ahead of it meanwhile. Returns whether it has come as
 * far as `at`, or time is not modelled; if not, it still runs before `at`.
 */
bool clock_call(struct clock *clock, uint32_t index, int64_t at);
/* CPU `index` is sent back at once if it waits: the emulator has something for it to do. */
void clock_send_back(struct clock *clock, uint32_t index);
/*
 * CPU `index` goes on. Returns where, which is ahead of the others by what it takes to wake. Where nobody has called it, it was woken at the
 * clock's present time.
 */
int64_t clock_resume(struct clock *clock, uint32_t index);

struct clock_record clock_read(struct clock *clock);

#endif
