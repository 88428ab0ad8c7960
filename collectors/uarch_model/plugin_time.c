/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Modelled time: what QEMU's clocks read, when processors wait for each other, and when an interrupt arrives. */
#include "plugin.h"

#include "idle.h"
#include "qemu_clock.h"
#include "qemu_interrupt.h"

#define REPORTS_A_QUANTUM 8       /* how often a processor tells the clock where it is */
#define FEWEST_BETWEEN_REPORTS 50 /* instructions */
#define ERRAND 3000               /* instructions, in which a lock is let go, or an interrupt answered, a guest's exit included */

static __thread int own_index = -1;      /* of the processor that this thread runs */
static __thread bool wants_machine_time; /* and not the processor's own */

static int64_t own_time(const struct vcpu *vcpu, const struct core *core)
{
	uint64_t cycles = vcpu->free ? 0 : core_cycles(core) - vcpu->cycles_base;

	return vcpu->time_base + (int64_t)((double)cycles * 1e6 / (double)modelled.core_khz);
}

int64_t core_time(uint32_t index)
{
	return own_time(&vcpus[index], cores[index]);
}

/* Its own time is `at` now. */
static void set_own_time(struct vcpu *vcpu, const struct core *core, int64_t at)
{
	vcpu->time_base = at;
	vcpu->cycles_base = core_cycles(core);
}

/* Whether what it does is free may be another now. Then it is not modelled either: probes would push out of the caches what is measured. */
void settle_free(struct vcpu *vcpu, struct core *core)
{
	bool free = vcpu->probe && __atomic_load_n(&probing, __ATOMIC_RELAXED);

	if (free == vcpu->free)
		return;
	set_own_time(vcpu, core, own_time(vcpu, core));
	vcpu->free = core->blind = free;
}

/* What QEMU's virtual clock reads: for a processor that runs the time that it has reached; for all others that of the whole machine. */
int64_t present_clock(void)
{
	if (!__atomic_load_n(&modelled.runs, __ATOMIC_ACQUIRE))
		return qemu_clock_present() + modelled.offset;
	int64_t machine = clock_now(&machine_clock);
	if (own_index < 0 || wants_machine_time || vcpus[own_index].asleep)
		return machine;
	int64_t own = own_time(&vcpus[own_index], cores[own_index]);
	return own > machine ? own : machine;
}

static int64_t present_ticks(void)
{
	return modelled.ticks_origin + (int64_t)((double)(present_clock() - modelled.origin) * (double)modelled.ticks_khz / 1e6);
}

static int64_t machine_deadline(void)
{
	wants_machine_time = true;
	int64_t due = qemu_clock_deadline();
	wants_machine_time = false;
	return due;
}

static int64_t time_to_wake(int64_t idle)
{
	return idle_exit(&profile, modelled.deepest_idle, idle);
}

static const struct clock_machine around_clock = {machine_deadline, qemu_clock_notify_timers, time_to_wake};

/* How many instructions until the next report: fewer where each takes long, as they did since the last one. */
static uint64_t until_report(const struct vcpu *vcpu, const struct core *core, uint64_t cycles)
{
	uint64_t instructions = core->retired - vcpu->retired_reported + 1, took = cycles - vcpu->cycles_reported + 1;
	uint64_t wanted_cycles = (uint64_t)modelled.quantum * modelled.core_khz / 1000000 / REPORTS_A_QUANTUM;
	uint64_t by_width = wanted_cycles * core->profile->core_width, until = wanted_cycles * instructions / took;

	return until < FEWEST_BETWEEN_REPORTS ? FEWEST_BETWEEN_REPORTS : until < by_width ? until : by_width;
}

/*
 * A probe spins: for a lock that another processor's thread holds, or for an answer to an interrupt. But the clock stands still for the
 * probe, so the other one waits, too, and gets on by a block of code every few milliseconds only. It is sent on for a while.
 */
static void help_probe(uint32_t index)
{
	for (uint32_t i = 0; i < vcpu_count; i++) {
		if (i == index || vcpus[i].asleep || __atomic_exchange_n(&vcpus[i].errand, true, __ATOMIC_RELEASE))
			continue;
		clock_send_back(&machine_clock, i);
	}
}

/* Whether it has paused since it was asked last, as only who spins does. */
static bool has_paused(struct vcpu *vcpu, const struct core *core)
{
	uint64_t before = vcpu->pauses;

	vcpu->pauses = core->counters[HOST_KERNEL].pauses;
	return vcpu->pauses != before;
}

/* Whether a processor is sent on for a probe, and must not wait. */
static bool on_errand(struct vcpu *vcpu, const struct core *core)
{
	if (__atomic_exchange_n(&vcpu->errand, false, __ATOMIC_ACQUIRE))
		vcpu->errand_end = core->retired + ERRAND;
	return core->retired < vcpu->errand_end;
}

/*
 * A request to interrupt processor `to`, by the thread that makes it. Those of one processor to another take their time: a local APIC
 * is told from outside only then. Nothing that has come in is lost before: the APIC has it, and this is to make its processor look.
 */
static void on_interrupt(int to, int request)
{
	bool on_its_way = false;

	if (modelled.runs && request == QEMU_INTERRUPT_POLL && own_index >= 0 && own_index != to && !vcpus[own_index].free) {
		struct core *core = cores[own_index];
		int64_t takes = (int64_t)((double)profile.cost_ipi * 1e6 / (double)modelled.core_khz);
		core->now->ipis++;
		if (timeline_of((uint32_t)own_index))
			timeline_mark(timeline_of((uint32_t)own_index), TIMELINE_ipi, core->guest, core_time((uint32_t)own_index),
				(uint32_t)to, NULL);
		on_its_way = !ipi_send(&ipis, &machine_clock, (uint32_t)to, own_time(&vcpus[own_index], core) + takes);
	}
	if (on_its_way)
		return;
	if (request == QEMU_INTERRUPT_POLL) {
		ipi_take(&ipis, (uint32_t)to);
		/* From a timer or a device. A processor that sleeps wakes now, however long its thread takes to do so. */
		if (modelled.runs)
			clock_call(&machine_clock, (uint32_t)to, present_clock());
	}
	qemu_interrupt_raise(to, request);
}

/* Interrupts on their way that nobody would wait for: their processors fell asleep, or time is not modelled any longer. */
static void raise_the_rest(void *of)
{
	(void)of;
	for (uint32_t i = 0; i < vcpu_count; i++)
		if ((!modelled.runs || vcpus[i].asleep) && ipi_take(&ipis, i))
			qemu_interrupt_raise((int)i, QEMU_INTERRUPT_POLL);
}

/* Processor `index` is at `at`: what has arrived by now interrupts it. */
static void take_interrupts(struct vcpu *vcpu, const struct core *core, uint32_t index, int64_t at)
{
	int64_t arrives = ipi_next(&ipis, index);

	if (arrives == IPI_NONE)
		return;
	if (arrives > at && !vcpu->free) {
		/* To be there in time, at half of its width: slower code comes later than that, quicker code earlier, and is asked again. */
		double cycles = (double)(arrives - at) * (double)modelled.core_khz / 1e6;
		uint64_t there = core->retired + (uint64_t)(cycles * core->profile->core_width / 2) + 1;
		vcpu->report_at = there < vcpu->report_at ? there : vcpu->report_at;
		return;
	}
	qemu_interrupt_lock();
	if (ipi_take(&ipis, index))
		qemu_interrupt_raise((int)index, QEMU_INTERRUPT_POLL);
	qemu_interrupt_unlock();
}

/* A processor may have run too far ahead of the others: then it is held up here, though never for long. */
void report_time(struct vcpu *vcpu, struct core *core, uint32_t index)
{
	if (core->retired >= vcpu->report_at && on_errand(vcpu, core)) {
		vcpu->report_at = vcpu->errand_end;
	} else if (core->retired >= vcpu->report_at) {
		settle_free(vcpu, core);
		int64_t at = own_time(vcpu, core), machine = clock_now(&machine_clock);
		uint64_t cycles = core_cycles(core);
		own_index = (int)index;
		vcpu->asleep = false;
		/* Time passed while nobody knew that it runs. */
		if (at < machine)
			set_own_time(vcpu, core, at = machine);
		if (vcpu->free && has_paused(vcpu, core))
			help_probe(index);
		bool may_go = clock_report(&machine_clock, index, at);
		vcpu->report_at = core->retired + (may_go ? until_report(vcpu, core, cycles) : 0);
		if (may_go) {
			vcpu->retired_reported = core->retired;
			vcpu->cycles_reported = cycles;
		}
		take_interrupts(vcpu, core, index, at);
	}
	if (vcpu->report_at < core->sample_at)
		core->sample_at = vcpu->report_at;
}

/* Both with all processors standing still. */
void begin_modelled_time(void)
{
	int64_t now = qemu_clock_present() + modelled.offset;

	if (!modelled.taken) {
		modelled.origin = now;
		modelled.ticks_origin = qemu_clock_present_ticks();
	}
	probing = false;
	for (uint32_t i = 0; i < vcpu_count; i++) {
		settle_free(&vcpus[i], cores[i]);
		set_own_time(&vcpus[i], cores[i], now);
		vcpus[i].report_at = 0;
		vcpus[i].asleep = machine_clock.cpu[i].idle;
	}
	if (!clock_start(&machine_clock, &around_clock, now, modelled.quantum, modelled.seed, modelled.pace)) {
		modelled.failed = "no thread for the clock";
		return;
	}
	modelled.runs = true;
	if (!modelled.taken && !qemu_clock_take(present_clock, present_ticks)) {
		modelled.failed = "QEMU's clocks do not follow";
		modelled.runs = false;
		clock_stop(&machine_clock);
		return;
	}
	if (!modelled.taken)
		qemu_interrupt_take(on_interrupt);
	modelled.taken = true;
	model->clock = present_clock;
	qemu_clock_let_sleep(true);
}

void end_modelled_time(void)
{
	int64_t now = clock_stop(&machine_clock);

	for (uint32_t i = 0; i < vcpu_count; i++)
		if (own_time(&vcpus[i], cores[i]) > now)
			now = own_time(&vcpus[i], cores[i]);
	modelled.offset = now - qemu_clock_present();
	/* In this order: QEMU's main loop runs beside this, and would see a clock that is far ahead, for modelled time is the slower one. */
	__atomic_store_n(&modelled.runs, false, __ATOMIC_RELEASE);
	qemu_clock_let_sleep(false);
	qemu_clock_notify_timers();
	qemu_interrupt_later(raise_the_rest);
}

void on_idle(qemu_plugin_id_t id, unsigned int index)
{
	(void)id;
	own_index = (int)index;
	if (state == MODEL)
		model_settle(model, index);
	clock_idle(&machine_clock, index, modelled.runs ? own_time(&vcpus[index], cores[index]) : 0);
	if (timeline_of(index))
		timeline_begin(timeline_of(index), TIMELINE_sleep, false, core_time(index), NO_VALUE, NULL);
	vcpus[index].asleep = true;
	if (ipi_next(&ipis, index) != IPI_NONE) {
		clock_call(&machine_clock, index, ipi_next(&ipis, index));
		qemu_interrupt_later(raise_the_rest);
	}
}

/*
 * Asked for when a processor wakes, not when it goes to sleep: what QEMU then queues for it is done at once, where a processor
 * that falls asleep would do it at its next waking, and until then nobody else asks.
 */
void on_resume(qemu_plugin_id_t id, unsigned int index)
{
	(void)id;
	own_index = (int)index;
	int64_t at = clock_resume(&machine_clock, index);
	if (modelled.runs) {
		set_own_time(&vcpus[index], cores[index], at);
		/* Where the others are not yet, it must not run: see clock_resume. */
		vcpus[index].report_at = 0;
		cores[index]->sample_at = 0;
	}
	if (timeline_of(index))
		timeline_end(timeline_of(index), TIMELINE_sleep, false, at, NO_VALUE);
	vcpus[index].asleep = false;
	change_if_safe(index);
}
