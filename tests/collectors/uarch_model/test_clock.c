/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clock by itself: who may go on, who waits, what holds it, and that nobody is forgotten when many threads use it at once. */
#define _GNU_SOURCE /* pthread_cond_clockwait */
#include "clock.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define QUANTUM 5000

static struct clock clock_;
static int64_t timer_at; /* -1: none */
static int timers_asked;

static int64_t deadline(void)
{
	int64_t at = __atomic_load_n(&timer_at, __ATOMIC_SEQ_CST), now = clock_now(&clock_);

	return at < 0 ? -1 : at > now ? at - now : 0;
}

static void run_timers(void)
{
	__atomic_fetch_add(&timers_asked, 1, __ATOMIC_SEQ_CST);
}

static const struct clock_machine machine = {deadline, run_timers, NULL};

static int64_t wake(int64_t idle)
{
	return idle / 10;
}

static const struct clock_machine sleepy = {deadline, run_timers, wake};

static void begin_with_timer(uint32_t cpus, int64_t at, int64_t timer)
{
	timer_at = timer;
	timers_asked = 0;
	clock_init(&clock_, cpus);
	CHECK(clock_start(&clock_, &machine, at, QUANTUM, 1, 1.0));
}

static void begin(uint32_t cpus, int64_t at)
{
	begin_with_timer(cpus, at, -1);
}

static int64_t lead(int cpu)
{
	return clock_.cpu[cpu].lead;
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void test_the_slowest_cpu_that_runs_is_the_clock(void)
{
	begin(3, 1000);
	EQUAL(clock_now(&clock_), 1000);
	CHECK(clock_report(&clock_, 0, 3000));
	EQUAL(clock_now(&clock_), 1000);
	CHECK(clock_report(&clock_, 1, 2000));
	CHECK(clock_report(&clock_, 2, 1500));
	EQUAL(clock_now(&clock_), 1500);
	/* Within its lead it may go on; beyond, it waits, and is sent back until the slowest has come near enough. */
	CHECK(lead(0) >= QUANTUM / 2 && lead(0) <= QUANTUM);
	CHECK(clock_report(&clock_, 0, 1500 + lead(0)));
	int64_t far = 1501 + lead(0);
	CHECK(!clock_report(&clock_, 0, far));
	CHECK(clock_report(&clock_, 2, far - lead(0) / 2 - 1));
	CHECK(clock_report(&clock_, 1, far));
	CHECK(!clock_report(&clock_, 0, far));
	CHECK(clock_report(&clock_, 2, far - lead(0) / 2));
	EQUAL(clock_now(&clock_), far - lead(0) / 2);
	CHECK(clock_report(&clock_, 0, far));
	/* One that is idle is waited for by nobody. */
	clock_idle(&clock_, 1, far);
	clock_idle(&clock_, 2, far);
	EQUAL(clock_now(&clock_), far);
	/* It goes on where the clock is, not where it stopped. */
	EQUAL(clock_resume(&clock_, 2), far);
	struct clock_record record = clock_read(&clock_);
	EQUAL(record.waits, 2);
	EQUAL(record.slices, 2);
	EQUAL(record.far_ahead, 0);
	EQUAL(record.most_ahead, far - 1500);
	EQUAL(record.modelled, far - 1000);
	/* The one farthest ahead says where time goes on. */
	CHECK(clock_report(&clock_, 0, far + 100));
	EQUAL(clock_stop(&clock_), far + 100);
}

static void test_leads_are_other_ones_after_each_wait_and_the_same_by_the_same_seed(void)
{
	int64_t seen[2][20];

	for (int turn = 0; turn < 2; turn++) {
		begin(2, 0);
		for (int i = 0; i < 20; i++) {
			int64_t at = clock_now(&clock_) + QUANTUM + 1;
			seen[turn][i] = lead(0);
			CHECK(!clock_report(&clock_, 0, at));
			CHECK(clock_report(&clock_, 1, at));
			CHECK(clock_report(&clock_, 0, at));
		}
		clock_stop(&clock_);
	}
	int64_t least = QUANTUM, most = 0;
	for (int i = 0; i < 20; i++) {
		EQUAL(seen[0][i], seen[1][i]);
		least = seen[0][i] < least ? seen[0][i] : least;
		most = seen[0][i] > most ? seen[0][i] : most;
	}
	CHECK(least >= QUANTUM / 2 && least < QUANTUM * 6 / 10 && most > QUANTUM * 9 / 10 && most <= QUANTUM);
}

static int longer_s;

/* The clock's, in place of the library's: it can make waits longer that a signal should end. */
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until)
{
	struct timespec later = {until->tv_sec + __atomic_load_n(&longer_s, __ATOMIC_SEQ_CST), until->tv_nsec};

	return pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &later);
}

/* How long CPU 0, which is far ahead, waits at once [ns of real time]. */
static void *waits_far_ahead(void *took)
{
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	CHECK(!clock_report(&clock_, 0, 10 * QUANTUM));
	clock_gettime(CLOCK_MONOTONIC, &end);
	*(int64_t *)took = (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
	return NULL;
}

static void test_who_waits_can_be_sent_back(void)
{
	int64_t took;
	pthread_t thread;

	begin(2, 0);
	/* Nobody waits: nothing happens. */
	clock_send_back(&clock_, 0);
	for (int i = 0; i < 6; i++)
		waits_far_ahead(&took);
	CHECK(took >= CLOCK_LONGEST_WAIT_NS);
	/* Longer than this by far, if nobody ends it: on a busy machine a thread waits for a CPU, too. */
	__atomic_store_n(&longer_s, 60, __ATOMIC_SEQ_CST);
	EQUAL(pthread_create(&thread, NULL, waits_far_ahead, &took), 0);
	while (!__atomic_load_n(&clock_.cpu[0].waits, __ATOMIC_SEQ_CST))
		sleep_ms(1);
	clock_send_back(&clock_, 0);
	EQUAL(pthread_join(thread, NULL), 0);
	CHECK(took < 60 * (int64_t)1000000000);
	__atomic_store_n(&longer_s, 0, __ATOMIC_SEQ_CST);
	clock_stop(&clock_);
}

static void test_a_cpu_that_slept_takes_its_time_to_wake(void)
{
	begin(2, 0);
	CHECK(clock_stop(&clock_) == 0);
	CHECK(clock_start(&clock_, &sleepy, 0, QUANTUM, 1, 1.0));
	clock_idle(&clock_, 1, 1000);
	CHECK(clock_report(&clock_, 0, 201000));
	EQUAL(clock_now(&clock_), 201000);
	EQUAL(clock_resume(&clock_, 1), 221000);
	/* Until the others have come there it waits; which is not to run ahead. */
	CHECK(!clock_report(&clock_, 1, 221000));
	EQUAL(clock_read(&clock_).most_ahead, 0);
	CHECK(clock_report(&clock_, 0, 216000));
	CHECK(!clock_report(&clock_, 1, 221000));
	CHECK(clock_report(&clock_, 0, 220000));
	CHECK(clock_report(&clock_, 1, 221000));
	CHECK(clock_report(&clock_, 1, 220000 + lead(1)));
	EQUAL(clock_now(&clock_), 220000);
	CHECK(!clock_report(&clock_, 1, 220001 + lead(1)));
	EQUAL(clock_read(&clock_).most_ahead, lead(1) - 999);
	/* Nobody else runs: then it is the clock. */
	clock_idle(&clock_, 0, 220000);
	EQUAL(clock_now(&clock_), 220001 + lead(1));
	/* One that was not asleep does not wake. */
	EQUAL(clock_resume(&clock_, 1), 220001 + lead(1));
	clock_stop(&clock_);
}

/* Its thread may take as long as it likes to come back: in modelled time it woke when it was called. */
static void test_a_cpu_that_was_called_is_waited_for(void)
{
	begin(2, 0);
	CHECK(clock_stop(&clock_) == 0);
	CHECK(clock_start(&clock_, &sleepy, 0, QUANTUM, 1, 1.0));
	clock_idle(&clock_, 1, 1000);
	CHECK(clock_report(&clock_, 0, 200000));
	clock_call(&clock_, 1, 201000);
	clock_call(&clock_, 1, 205000);
	/* It comes at 221000. */
	CHECK(clock_report(&clock_, 0, 221000 + lead(0)));
	EQUAL(clock_now(&clock_), 221000);
	CHECK(!clock_report(&clock_, 0, 221001 + lead(0)));
	EQUAL(clock_resume(&clock_, 1), 221000);
	CHECK(clock_report(&clock_, 1, 223000));
	CHECK(!clock_report(&clock_, 0, 228001));
	EQUAL(clock_read(&clock_).calls, 1);
	EQUAL(clock_read(&clock_).vain, 0);
	/* One that runs is not woken. */
	clock_call(&clock_, 1, 300000);
	EQUAL(clock_resume(&clock_, 1), 223000);
	clock_stop(&clock_);
}

static void test_a_call_in_vain_is_forgotten_after_a_while(void)
{
	begin(2, 0);
	clock_idle(&clock_, 1, 1000);
	CHECK(clock_report(&clock_, 0, 2000));
	clock_call(&clock_, 1, 2000);
	clock_idle(&clock_, 0, 9000);
	EQUAL(clock_now(&clock_), 2000);
	for (int tries = 0; tries < 100 && !clock_read(&clock_).vain; tries++)
		sleep_ms(100);
	EQUAL(clock_read(&clock_).vain, 1);
	sleep_ms(2);
	CHECK(clock_now(&clock_) > 2000);
	clock_stop(&clock_);
}

static void test_a_timer_that_is_due_holds_the_clock_until_it_has_run(void)
{
	begin_with_timer(1, 0, 700);
	CHECK(clock_report(&clock_, 0, 650));
	EQUAL(timers_asked, 0);
	CHECK(clock_report(&clock_, 0, 1000));
	EQUAL(clock_now(&clock_), 700);
	CHECK(timers_asked > 0);
	CHECK(!clock_report(&clock_, 0, 701 + QUANTUM));
	EQUAL(clock_now(&clock_), 700);
	timer_at = 5500;
	CHECK(clock_report(&clock_, 0, 701 + QUANTUM));
	EQUAL(clock_now(&clock_), 5500);
	timer_at = -1;
	CHECK(clock_report(&clock_, 0, 701 + QUANTUM));
	EQUAL(clock_now(&clock_), 701 + QUANTUM);
	EQUAL(clock_read(&clock_).timers, 2);
	clock_stop(&clock_);
}

/* A CPU sets one while it runs: it is seen at the next look, which a CPU takes when it has run its lead. */
static void test_a_timer_that_was_set_meanwhile_is_late_by_a_lead_at_most(void)
{
	begin(1, 0);
	timer_at = 700;
	for (int64_t at = 100; at <= 701 + lead(0); at += 100)
		clock_report(&clock_, 0, at);
	CHECK(timers_asked > 0);
	CHECK(clock_now(&clock_) <= 700 + lead(0));
	clock_stop(&clock_);
}

static void test_idle_time_passes_by_itself_up_to_the_next_timer(void)
{
	begin(2, 0);
	timer_at = 2000000;
	clock_idle(&clock_, 0, 10);
	clock_idle(&clock_, 1, 20);
	while (clock_now(&clock_) < timer_at)
		sleep_ms(1);
	/* No faster than real time. */
	CHECK(clock_read(&clock_).wall >= 2000000);
	sleep_ms(5);
	EQUAL(clock_now(&clock_), 2000000);
	CHECK(timers_asked > 0);
	timer_at = -1;
	sleep_ms(5);
	int64_t at = clock_resume(&clock_, 1);
	CHECK(at > 2000000);
	/* A CPU that runs takes the clock over: it stands until that one reports. */
	int64_t stands = clock_now(&clock_);
	sleep_ms(5);
	EQUAL(clock_now(&clock_), stands);
	CHECK(clock_read(&clock_).idle > 0);
	clock_stop(&clock_);
}

static void test_it_can_begin_again_later_and_its_record_goes_on(void)
{
	begin(1, 0);
	CHECK(clock_report(&clock_, 0, 400));
	int64_t end = clock_stop(&clock_);
	EQUAL(end, 400);
	/* In between nobody waits, and CPUs fall asleep and wake as ever. */
	CHECK(clock_report(&clock_, 0, 1000000000));
	clock_idle(&clock_, 0, 0);
	clock_resume(&clock_, 0);
	CHECK(clock_start(&clock_, &machine, 90000, QUANTUM, 1, 1.0));
	CHECK(clock_report(&clock_, 0, 90100));
	EQUAL(clock_now(&clock_), 90100);
	EQUAL(clock_read(&clock_).modelled, 500);
	clock_stop(&clock_);
}

#define THREADS 4
#define ROUNDS 300

static int64_t start_at;
static int rounds_begun;
static bool all_done;

/* A CPU: runs ahead, waits, sleeps, wakes. It must never be more than a quantum and a step ahead of one that runs. */
static void *run_cpu(void *number)
{
	uint32_t index = (uint32_t)(uintptr_t)number;
	struct random random = {index + 1};
	int64_t at = 0;
	int seen = 0;

	while (!__atomic_load_n(&all_done, __ATOMIC_SEQ_CST)) {
		if (seen != __atomic_load_n(&rounds_begun, __ATOMIC_SEQ_CST)) {
			seen = __atomic_load_n(&rounds_begun, __ATOMIC_SEQ_CST);
			at = __atomic_load_n(&start_at, __ATOMIC_SEQ_CST);
		}
		at += random_below(&random, 600);
		while (!clock_report(&clock_, index, at))
			;
		if (random_once_in(&random, 50)) {
			clock_idle(&clock_, index, at);
			if (random_once_in(&random, 10))
				usleep(50);
			at = clock_resume(&clock_, index);
		}
		/* In vain or not. */
		if (random_once_in(&random, 50))
			clock_call(&clock_, (index + 1) % THREADS, at);
	}
	return NULL;
}

static void test_many_threads_starts_and_stops_leave_nobody_behind(void)
{
	pthread_t threads[THREADS];
	struct random random = {7};

	begin(THREADS, 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		EQUAL(pthread_create(&threads[i], NULL, run_cpu, (void *)i), 0);
	for (int i = 0; i < ROUNDS; i++) {
		usleep(random_below(&random, 500));
		__atomic_store_n(&timer_at, clock_now(&clock_) + random_below(&random, 20000), __ATOMIC_SEQ_CST);
		usleep(random_below(&random, 500));
		__atomic_store_n(&timer_at, -1, __ATOMIC_SEQ_CST);
		int64_t end = clock_stop(&clock_);
		__atomic_store_n(&start_at, end + 10, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&rounds_begun, 1, __ATOMIC_SEQ_CST);
		CHECK(clock_start(&clock_, &machine, end + 10, QUANTUM, 1, 1.0));
	}
	clock_stop(&clock_);
	__atomic_store_n(&all_done, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < THREADS; i++)
		EQUAL(pthread_join(threads[i], NULL), 0);
	CHECK(clock_read(&clock_).reports > ROUNDS);
}

int main(void)
{
	test_a_cpu_that_slept_takes_its_time_to_wake();
	test_who_waits_can_be_sent_back();
	test_the_slowest_cpu_that_runs_is_the_clock();
	test_leads_are_other_ones_after_each_wait_and_the_same_by_the_same_seed();
	test_a_cpu_that_was_called_is_waited_for();
	test_a_call_in_vain_is_forgotten_after_a_while();
	test_a_timer_that_is_due_holds_the_clock_until_it_has_run();
	test_a_timer_that_was_set_meanwhile_is_late_by_a_lead_at_most();
	test_idle_time_passes_by_itself_up_to_the_next_timer();
	test_it_can_begin_again_later_and_its_record_goes_on();
	test_many_threads_starts_and_stops_leave_nobody_behind();
	return 0;
}
