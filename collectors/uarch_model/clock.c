/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "clock.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#define IDLE_STEP_NS 1000000 /* the longest sleep of the thread that passes idle time, for timers may be set that it does not know of */
#define IDLE_AGAIN_NS 50000  /* until it looks again whether due timers have run */

static int64_t wall_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Wait for `condition` or `ns`. */
static void wait_for(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t ns)
{
    int64_t end = wall_now() + ns;
    struct timespec until = {.tv_sec = end / 1000000000, .tv_nsec = end % 1000000000};

    pthread_cond_timedwait(condition, lock, &until);
}

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    /* Not the wall clock: somebody may set that. */
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

void clock_init(struct clock *clock, uint32_t cpu_count)
{
    memset(clock, 0, sizeof(*clock));
    clock->cpu_count = cpu_count;
    pthread_mutex_init(&clock->lock, NULL);
    init_condition(&clock->all_idle);
    for (uint32_t i = 0; i < cpu_count; i++)
        init_condition(&clock->cpu[i].go);
}

static void set_now(struct clock *clock, int64_t now)
{
    __atomic_store_n(&clock->now, now, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < clock->cpu_count; i++)
        if (clock->cpu[i].waits && clock->cpu[i].at <= now + clock->quantum)
            pthread_cond_signal(&clock->cpu[i].go);
}

/* Let time pass up to `to`, or to the next timer, which then must run first. */
static void advance_to(struct clock *clock, int64_t to)
{
    int64_t due = clock->machine->deadline();
    bool held = due >= 0 && to >= clock->now + due;

    clock->record.timers += held && due > 0;
    if (held)
        to = clock->now + due;
    if (to > clock->now)
        set_now(clock, to);
    if (held)
        clock->machine->run_timers();
}

static bool find_slowest(const struct clock *clock, int64_t *at)
{
    bool found = false;

    for (uint32_t i = 0; i < clock->cpu_count; i++)
        if (!clock->cpu[i].idle && (!found || clock->cpu[i].at < *at)) {
            *at = clock->cpu[i].at;
            found = true;
        }
    return found;
}

/* Time that passed while all were idle. */
static void pass_idle_time(struct clock *clock)
{
    int64_t wall = wall_now(), before = clock->now;

    advance_to(clock, clock->now + (int64_t)((double)(wall - clock->idle_mark) * clock->pace));
    clock->idle_mark = wall;
    clock->record.idle += clock->now - before;
}

static void advance(struct clock *clock)
{
    int64_t slowest = 0;

    if (find_slowest(clock, &slowest)) {
        clock->idle_mark = 0;
        advance_to(clock, slowest);
    } else if (!clock->idle_mark) {
        clock->idle_mark = wall_now();
        pthread_cond_signal(&clock->all_idle);
    }
}

static void *pass_time(void *of)
{
    struct clock *clock = of;

    pthread_mutex_lock(&clock->lock);
    while (clock->started) {
        if (!clock->idle_mark) {
            pthread_cond_wait(&clock->all_idle, &clock->lock);
            continue;
        }
        pass_idle_time(clock);
        int64_t due = clock->machine->deadline();
        int64_t sleep = due == 0 ? IDLE_AGAIN_NS : due < 0 ? IDLE_STEP_NS : (int64_t)((double)due / clock->pace) + 1;
        wait_for(&clock->all_idle, &clock->lock, sleep < IDLE_STEP_NS ? sleep : IDLE_STEP_NS);
    }
    pthread_mutex_unlock(&clock->lock);
    return NULL;
}

bool clock_start(struct clock *clock, const struct clock_machine *machine, int64_t begin, int64_t quantum, double pace)
{
    sigset_t all, before;

    pthread_mutex_lock(&clock->lock);
    clock->machine = machine;
    clock->now = clock->begin = begin;
    clock->quantum = quantum;
    clock->pace = pace;
    clock->wall_begin = wall_now();
    for (uint32_t i = 0; i < clock->cpu_count; i++)
        clock->cpu[i].at = clock->cpu[i].woke = begin;
    clock->started = true;
    clock->idle_mark = 0;
    advance(clock);
    pthread_mutex_unlock(&clock->lock);
    /* QEMU handles its signals in threads of its own choice. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool made = !pthread_create(&clock->passes_time, NULL, pass_time, clock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!made)
        clock->started = false;
    return made;
}

static struct clock_record present_record(const struct clock *clock)
{
    struct clock_record record = clock->record;

    if (clock->started) {
        record.modelled += clock->now - clock->begin;
        record.wall += wall_now() - clock->wall_begin;
    }
    return record;
}

int64_t clock_stop(struct clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    int64_t farthest = clock->now;
    clock->record = present_record(clock);
    clock->started = false;
    pthread_cond_signal(&clock->all_idle);
    for (uint32_t i = 0; i < clock->cpu_count; i++) {
        pthread_cond_signal(&clock->cpu[i].go);
        if (clock->cpu[i].at > farthest)
            farthest = clock->cpu[i].at;
    }
    pthread_mutex_unlock(&clock->lock);
    pthread_join(clock->passes_time, NULL);
    return farthest;
}

static void note(struct clock *clock, const struct clock_cpu *cpu)
{
    /* While it woke it was ahead of the others, but did nothing. */
    int64_t ahead = cpu->at - (cpu->woke > clock->now ? cpu->woke : clock->now);

    clock->record.reports++;
    clock->record.far_ahead += ahead > 2 * clock->quantum;
    if (ahead > clock->record.most_ahead)
        clock->record.most_ahead = ahead;
}

/* How long it may wait now. */
static int64_t next_wait(struct clock_cpu *cpu, int64_t now)
{
    bool stands = cpu->wait && cpu->waited_at == now;

    cpu->wait = !stands ? CLOCK_WAIT_NS : cpu->wait < CLOCK_LONGEST_WAIT_NS ? 2 * cpu->wait : CLOCK_LONGEST_WAIT_NS;
    cpu->waited_at = now;
    return cpu->wait;
}

bool clock_report(struct clock *clock, uint32_t index, int64_t at)
{
    struct clock_cpu *cpu = &clock->cpu[index];

    pthread_mutex_lock(&clock->lock);
    cpu->idle = false;
    if (!clock->started) {
        pthread_mutex_unlock(&clock->lock);
        return true;
    }
    cpu->at = at;
    advance(clock);
    note(clock, cpu);
    bool may_go = at <= clock->now + clock->quantum;
    if (!may_go) {
        clock->record.waits++;
        cpu->waits = true;
        wait_for(&cpu->go, &clock->lock, next_wait(cpu, clock->now));
        cpu->waits = false;
        if (clock->started)
            advance(clock);
        may_go = !clock->started || at <= clock->now + clock->quantum;
        clock->record.slices += !may_go;
    }
    pthread_mutex_unlock(&clock->lock);
    return may_go;
}

void clock_idle(struct clock *clock, uint32_t index, int64_t at)
{
    pthread_mutex_lock(&clock->lock);
    clock->cpu[index].idle = true;
    if (clock->started) {
        clock->cpu[index].at = at;
        advance(clock);
    }
    pthread_mutex_unlock(&clock->lock);
}

/* `cpu` goes on where the clock is, but not before `earliest`; and if it was idle, when it has woken. */
static void resume(struct clock *clock, struct clock_cpu *cpu, int64_t earliest)
{
    if (clock->idle_mark)
        pass_idle_time(clock);
    clock->idle_mark = 0;
    int64_t from = clock->now > earliest ? clock->now : earliest, idle = from - cpu->at;
    if (idle > 0)
        cpu->at = from;
    if (cpu->idle && clock->machine->wake)
        cpu->at += clock->machine->wake(idle);
    cpu->woke = cpu->at;
    cpu->idle = false;
}

int64_t clock_resume(struct clock *clock, uint32_t index)
{
    struct clock_cpu *cpu = &clock->cpu[index];

    pthread_mutex_lock(&clock->lock);
    if (clock->started)
        resume(clock, cpu, INT64_MIN);
    cpu->idle = false;
    int64_t at = cpu->at;
    pthread_mutex_unlock(&clock->lock);
    return at;
}

bool clock_call(struct clock *clock, uint32_t index, int64_t at)
{
    struct clock_cpu *cpu = &clock->cpu[index];

    pthread_mutex_lock(&clock->lock);
    if (clock->started && cpu->idle)
        resume(clock, cpu, at);
    bool there = !clock->started || cpu->at >= at;
    pthread_mutex_unlock(&clock->lock);
    return there;
}

struct clock_record clock_read(struct clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    struct clock_record record = present_record(clock);
    pthread_mutex_unlock(&clock->lock);
    return record;
}
