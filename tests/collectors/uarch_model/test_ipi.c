/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interrupts between CPUs, with a clock of their own: when they take effect, and that none is forgotten. */
#include "ipi.h"

#include "check.h"

#define QUANTUM 10000
#define LATENCY 300

static struct clock clock_;
static struct ipi ipi;

static int64_t no_deadline(void)
{
	return -1;
}
static void no_timers(void)
{
}
static int64_t wake(int64_t idle)
{
	return idle / 10;
}
static const struct clock_machine machine = {no_deadline, no_timers, wake};

static void begin(void)
{
	clock_init(&clock_, 3);
	ipi_init(&ipi);
	CHECK(clock_start(&clock_, &machine, 0, QUANTUM, 1, 1.0));
}

static void test_one_that_sleeps_wakes_when_the_interrupt_arrives(void)
{
	begin();
	clock_idle(&clock_, 2, 0);
	clock_idle(&clock_, 1, 1000);
	CHECK(clock_report(&clock_, 0, 11000));
	EQUAL(clock_now(&clock_), 11000);
	CHECK(ipi_send(&ipi, &clock_, 1, 11000 + LATENCY));
	EQUAL(ipi_next(&ipi, 1), IPI_NONE);
	/* It takes its time to wake, from there on; the sender does not run away meanwhile, however late its thread comes. */
	int64_t woken = 11000 + LATENCY + (11000 + LATENCY - 1000) / 10;
	CHECK(clock_report(&clock_, 0, woken + clock_.cpu[0].lead));
	EQUAL(clock_now(&clock_), woken);
	CHECK(!clock_report(&clock_, 0, woken + clock_.cpu[0].lead + 1));
	/* Another call changes nothing. */
	CHECK(ipi_send(&ipi, &clock_, 1, woken));
	EQUAL(clock_resume(&clock_, 1), woken);
	CHECK(clock_report(&clock_, 1, woken + 10));
	EQUAL(clock_now(&clock_), woken + 10);
	clock_stop(&clock_);
}

static void test_one_that_runs_goes_on_until_it_arrives(void)
{
	begin();
	clock_idle(&clock_, 2, 0);
	CHECK(clock_report(&clock_, 0, 4000));
	CHECK(clock_report(&clock_, 1, 2000));
	CHECK(!ipi_send(&ipi, &clock_, 1, 4000 + LATENCY));
	EQUAL(ipi_next(&ipi, 1), 4000 + LATENCY);
	EQUAL(ipi_next(&ipi, 0), IPI_NONE);
	/* The first counts, whichever was sent first. */
	CHECK(!ipi_send(&ipi, &clock_, 1, 4000 + 2 * LATENCY));
	EQUAL(ipi_next(&ipi, 1), 4000 + LATENCY);
	CHECK(!ipi_send(&ipi, &clock_, 1, 3000 + LATENCY));
	EQUAL(ipi_next(&ipi, 1), 3000 + LATENCY);
	CHECK(ipi_take(&ipi, 1));
	CHECK(!ipi_take(&ipi, 1));
	EQUAL(ipi_next(&ipi, 1), IPI_NONE);
	clock_stop(&clock_);
}

static void test_one_that_is_ahead_is_interrupted_at_once(void)
{
	begin();
	CHECK(clock_report(&clock_, 1, 3000));
	CHECK(ipi_send(&ipi, &clock_, 1, 3000));
	CHECK(ipi_send(&ipi, &clock_, 1, 2000 + LATENCY));
	EQUAL(ipi_next(&ipi, 1), IPI_NONE);
	clock_stop(&clock_);
}

static void test_without_modelled_time_nothing_is_held_back(void)
{
	begin();
	clock_stop(&clock_);
	CHECK(ipi_send(&ipi, &clock_, 1, 1000000));
	EQUAL(ipi_next(&ipi, 1), IPI_NONE);
}

int main(void)
{
	test_one_that_sleeps_wakes_when_the_interrupt_arrives();
	test_one_that_runs_goes_on_until_it_arrives();
	test_one_that_is_ahead_is_interrupted_at_once();
	test_without_modelled_time_nothing_is_held_back();
	return 0;
}
