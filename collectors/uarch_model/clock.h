/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modelled time: one clock for an emulated machine whose CPUs each run at the pace of the modelled processor. A CPU reports how far it
 * has come; the clock is where the slowest CPU that runs is, and a CPU that is further ahead than a quantum waits. A timer of the
 * machine that falls due holds the clock until the machine has seen to it, so timers are late by a quantum at most.
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
#define CLOCK_WAIT_NS 200000          /* of real time */
#define CLOCK_LONGEST_WAIT_NS 3200000 /* where the clock stands still */

/* What the clock must know of the machine around it, and do to it. Both are called with the clock's lock held. */
struct clock_machine {
    int64_t (*deadline)(void); /* from the clock's present time to the next timer: 0 if one is due, -1 if there is none */
    void (*run_timers)(void);  /* have the due timers run soon, by somebody else */
    int64_t (*wake)(int64_t idle); /* how long a CPU takes to wake when it has been idle so long; NULL: no time */
};

struct clock_cpu {
    bool idle, waits;
    int64_t at; /* where it was when it last reported */
    int64_t woke; /* where it went on when it last woke */
    int64_t waited_at, wait; /* where the clock was when it last waited, and how long it may */
    pthread_cond_t go;
};

/* How well CPUs were kept together, since the first start. */
struct clock_record {
    uint64_t reports, waits, slices; /* slices: of real time, after which a waiting CPU was sent back */
    uint64_t far_ahead;              /* reports of a CPU that was more than two quanta ahead */
    int64_t most_ahead;              /* the most that any CPU was ahead */
    uint64_t timers;                 /* timers that held the clock */
    int64_t idle;                    /* time that passed while all CPUs were idle */
    int64_t modelled, wall;          /* time that was modelled, and the real time that it took */
};

struct clock {
    pthread_mutex_t lock;
    bool started;
    uint32_t cpu_count;
    int64_t now, begin, quantum;
    int64_t wall_begin; /* CLOCK_MONOTONIC */
    double pace;
    int64_t idle_mark; /* CLOCK_MONOTONIC until which idle time has been passed; 0: a CPU runs */
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
bool clock_start(struct clock *clock, const struct clock_machine *machine, int64_t begin, int64_t quantum, double pace);
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
/* CPU `index` has something to do. Returns where it goes on, which is ahead of the others by what it takes to wake. */
int64_t clock_resume(struct clock *clock, uint32_t index);
/*
 * CPU `index` is called to work at `at`. If it was idle, it wakes then: the others wait for it from now on, so it must be woken, and
 * then call clock_resume. Returns whether it has come that far, or time is not modelled; if not, it still runs before `at`.
 */
bool clock_call(struct clock *clock, uint32_t index, int64_t at);

struct clock_record clock_read(struct clock *clock);

#endif
