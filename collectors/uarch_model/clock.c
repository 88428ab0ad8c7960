/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "clock.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define IDLE_STEP_NS 1000000 /* the longest sleep of the thread that passes idle time, for timers may be set that it does not know of */
#define NOBODY INT64_MAX
#define IDLE_AGAIN_NS 50000 /* until it looks again whether due timers have run */

static int64_t wall_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
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
	/* It is held for a fraction of a microsecond, and to sleep costs ten. */
	pthread_mutexattr_t adaptive;
	pthread_mutexattr_init(&adaptive);
	pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&clock->lock, &adaptive);
	pthread_mutexattr_destroy(&adaptive);
	init_condition(&clock->all_idle);
	for (uint32_t i = 0; i < cpu_count; i++)
		init_condition(&clock->cpu[i].go);
}

/*
 * How far a CPU may run ahead the next time: half a quantum to a whole one. Knuth's linear congruential generator (MMIX): its upper bits
 * are random enough to keep CPUs out of step.
 */
static int64_t draw_lead(struct clock *clock)
{
	int64_t half = clock->quantum / 2;

	clock->random = clock->random * 6364136223846793005ull + 1442695040888963407ull;
	return clock->quantum - half + (int64_t)((clock->random >> 33) % (uint64_t)(half + 1));
}

/* A CPU that waited goes on when the clock has come this near, or it would soon wait again. */
static bool may_go_on(const struct clock_cpu *cpu, int64_t now)
{
	return cpu->at <= now + cpu->lead / 2;
}

/* Never back: it is moved without the lock, too. */
static void move_now(struct clock *clock, int64_t to)
{
	int64_t now = clock_now(clock);

	while (now < to && !__atomic_compare_exchange_n(&clock->now, &now, to, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void set_now(struct clock *clock, int64_t now)
{
	move_now(clock, now);
	for (uint32_t i = 0; i < clock->cpu_count; i++)
		if (clock->cpu[i].waits && may_go_on(&clock->cpu[i], now))
			clock->let_go |= 1u << i;
}

static void signal_all(struct clock *clock, uint32_t of)
{
	for (uint32_t i = 0; of; i++, of >>= 1)
		if (of & 1)
			pthread_cond_signal(&clock->cpu[i].go);
}

static uint32_t take_let_go(struct clock *clock)
{
	uint32_t let_go = clock->let_go;

	clock->let_go = 0;
	return let_go;
}

/* Those who may go on are told without the lock, or the first that they would do is wait for it. */
static void unlock(struct clock *clock)
{
	uint32_t let_go = take_let_go(clock);

	pthread_mutex_unlock(&clock->lock);
	signal_all(clock, let_go);
}

/* Wait for `condition` or `ns` of real time, without the lock. */
static void wait_for(struct clock *clock, pthread_cond_t *condition, int64_t ns)
{
	int64_t end = wall_now() + ns;
	struct timespec until = {.tv_sec = end / 1000000000, .tv_nsec = end % 1000000000};

	signal_all(clock, take_let_go(clock));
	pthread_cond_timedwait(condition, &clock->lock, &until);
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

/* Where the slowest CPU is that runs; NOBODY if none does. Also without the lock, for the answer to be old. */
static int64_t slowest(const struct clock *clock)
{
	int64_t least = NOBODY;

	for (uint32_t i = 0; i < clock->cpu_count; i++) {
		int64_t at = __atomic_load_n(&clock->cpu[i].at, __ATOMIC_RELAXED);
		if (!__atomic_load_n(&clock->cpu[i].idle, __ATOMIC_RELAXED) && at < least)
			least = at;
	}
	return least;
}

/*
 * Until the slowest CPU comes there nobody has to look at the clock: no timer is due, and nobody who waits may go on. Timers that CPUs set
 * meanwhile are not known, so there is a next look in any case.
 */
static void find_next_event(struct clock *clock)
{
	int64_t now = clock_now(clock), due = clock->machine->deadline(), next = now + clock->quantum / 2;

	if (due >= 0 && now + due < next)
		next = now + due;
	for (uint32_t i = 0; i < clock->cpu_count; i++) {
		const struct clock_cpu *cpu = &clock->cpu[i];
		if (cpu->waits && cpu->at - cpu->lead / 2 < next)
			next = cpu->at - cpu->lead / 2;
	}
	__atomic_store_n(&clock->next_event, next, __ATOMIC_RELAXED);
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
	int64_t to = slowest(clock);

	if (to != NOBODY) {
		clock->idle_mark = 0;
		advance_to(clock, to);
	} else if (!clock->idle_mark) {
		clock->idle_mark = wall_now();
		pthread_cond_signal(&clock->all_idle);
	}
	find_next_event(clock);
}

/* Nothing came of a call: what it was called for was withdrawn before its thread looked. */
static void forget_vain_calls(struct clock *clock)
{
	int64_t latest = wall_now() - CLOCK_VAIN_NS;
	bool forgot = false;

	for (uint32_t i = 0; i < clock->cpu_count; i++) {
		struct clock_cpu *cpu = &clock->cpu[i];
		if (!cpu->called || cpu->called_at > latest)
			continue;
		cpu->called = false;
		cpu->idle = forgot = true;
		clock->record.vain++;
	}
	if (forgot)
		advance(clock);
}

static void *pass_time(void *of)
{
	struct clock *clock = of;

	pthread_mutex_lock(&clock->lock);
	while (clock->started) {
		if (!clock->idle_mark) {
			wait_for(clock, &clock->all_idle, CLOCK_VAIN_NS);
			forget_vain_calls(clock);
			continue;
		}
		pass_idle_time(clock);
		int64_t due = clock->machine->deadline();
		int64_t sleep = due == 0 ? IDLE_AGAIN_NS : due < 0 ? IDLE_STEP_NS : (int64_t)((double)due / clock->pace) + 1;
		wait_for(clock, &clock->all_idle, sleep < IDLE_STEP_NS ? sleep : IDLE_STEP_NS);
	}
	unlock(clock);
	return NULL;
}

bool clock_start(struct clock *clock, const struct clock_machine *machine, int64_t begin, int64_t quantum, uint64_t seed, double pace)
{
	sigset_t all, before;

	pthread_mutex_lock(&clock->lock);
	clock->machine = machine;
	clock->now = clock->begin = begin;
	clock->quantum = quantum;
	clock->random = seed;
	clock->pace = pace;
	clock->wall_begin = wall_now();
	for (uint32_t i = 0; i < clock->cpu_count; i++) {
		clock->cpu[i].at = clock->cpu[i].woke = begin;
		clock->cpu[i].called = clock->cpu[i].held = false;
		clock->cpu[i].lead = draw_lead(clock);
	}
	clock->started = true;
	clock->idle_mark = 0;
	advance(clock);
	unlock(clock);
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

	record.reports = 0;
	for (uint32_t i = 0; i < clock->cpu_count; i++)
		record.reports += clock->cpu[i].reports;
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
	unlock(clock);
	pthread_join(clock->passes_time, NULL);
	return farthest;
}

static void note(struct clock *clock, const struct clock_cpu *cpu)
{
	/* While it woke it was ahead of the others, but did nothing. */
	int64_t ahead = cpu->at - (cpu->woke > clock->now ? cpu->woke : clock->now);

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

/* Most reports change nothing for anybody but the clock: the CPU is within its lead, and nothing happens yet. Then the lock is left alone. */
static bool nothing_new(struct clock *clock, struct clock_cpu *cpu, int64_t at)
{
	if (cpu->idle || cpu->called || cpu->held)
		return false;
	__atomic_store_n(&cpu->at, at, __ATOMIC_RELAXED);
	int64_t to = slowest(clock);
	if (to >= __atomic_load_n(&clock->next_event, __ATOMIC_RELAXED))
		return false;
	move_now(clock, to);
	return at <= to + cpu->lead;
}

/*
 * A CPU too far ahead looks for a while whether the clock has come near, and leaves its real CPU to others meanwhile: to sleep and to be woken
 * takes as long as the others need for half a quantum.
 */
static void look_for_clock(const struct clock *clock, const struct clock_cpu *cpu)
{
	int64_t end = wall_now() + CLOCK_LOOK_NS;

	while (__atomic_load_n(&clock->started, __ATOMIC_RELAXED) && !may_go_on(cpu, clock_now(clock)) && wall_now() < end)
		sched_yield();
}

bool clock_report(struct clock *clock, uint32_t index, int64_t at)
{
	struct clock_cpu *cpu = &clock->cpu[index];

	cpu->reports++;
	if (__atomic_load_n(&clock->started, __ATOMIC_ACQUIRE) && nothing_new(clock, cpu, at))
		return true;
	pthread_mutex_lock(&clock->lock);
	cpu->idle = cpu->called = false;
	if (!clock->started) {
		unlock(clock);
		return true;
	}
	cpu->at = at;
	advance(clock);
	note(clock, cpu);
	bool may_go = cpu->held ? may_go_on(cpu, clock->now) : at <= clock->now + cpu->lead;
	if (!may_go) {
		clock->record.waits++;
		cpu->held = true;
		unlock(clock);
		look_for_clock(clock, cpu);
		pthread_mutex_lock(&clock->lock);
		may_go = !clock->started || may_go_on(cpu, clock->now);
	}
	if (!may_go) {
		cpu->waits = true;
		find_next_event(clock);
		wait_for(clock, &cpu->go, next_wait(cpu, clock->now));
		cpu->waits = false;
		if (clock->started)
			advance(clock);
		may_go = !clock->started || may_go_on(cpu, clock->now);
		clock->record.slices += !may_go;
	}
	if (cpu->held && may_go) {
		cpu->held = false;
		cpu->lead = draw_lead(clock);
	}
	unlock(clock);
	return may_go;
}

void clock_idle(struct clock *clock, uint32_t index, int64_t at)
{
	pthread_mutex_lock(&clock->lock);
	clock->cpu[index].idle = true;
	clock->cpu[index].called = false;
	if (clock->started) {
		clock->cpu[index].at = at;
		advance(clock);
	}
	unlock(clock);
}

/* It was idle, and has something to do since `at`. */
static void wake(struct clock *clock, struct clock_cpu *cpu, int64_t at)
{
	if (clock->idle_mark)
		pass_idle_time(clock);
	clock->idle_mark = 0;
	int64_t from = at > clock->now ? at : clock->now, idle = from - cpu->at;
	if (idle > 0)
		cpu->at = from;
	if (clock->machine->wake)
		cpu->at += clock->machine->wake(idle);
	cpu->woke = cpu->at;
	cpu->idle = false;
}

bool clock_call(struct clock *clock, uint32_t index, int64_t at)
{
	struct clock_cpu *cpu = &clock->cpu[index];

	pthread_mutex_lock(&clock->lock);
	if (clock->started && cpu->idle) {
		wake(clock, cpu, at);
		cpu->called = true;
		cpu->called_at = wall_now();
		clock->record.calls++;
	}
	bool there = !clock->started || cpu->at >= at;
	unlock(clock);
	return there;
}

void clock_send_back(struct clock *clock, uint32_t index)
{
	pthread_mutex_lock(&clock->lock);
	if (clock->cpu[index].waits)
		clock->let_go |= 1u << index;
	unlock(clock);
}

int64_t clock_resume(struct clock *clock, uint32_t index)
{
	struct clock_cpu *cpu = &clock->cpu[index];

	pthread_mutex_lock(&clock->lock);
	if (clock->started && cpu->idle)
		wake(clock, cpu, clock->now);
	cpu->idle = cpu->called = false;
	int64_t at = cpu->at;
	unlock(clock);
	return at;
}

struct clock_record clock_read(struct clock *clock)
{
	pthread_mutex_lock(&clock->lock);
	struct clock_record record = present_record(clock);
	unlock(clock);
	return record;
}
