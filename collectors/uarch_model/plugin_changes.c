/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes between off, count and model. Translated code must be thrown away, which QEMU does only when asked by a processor's own thread. */
#include "plugin.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "qemu_flush.h"

#define CHANGE_NS 300000000

static bool change_asked; /* of QEMU, by the first processor that could */
static pthread_mutex_t change_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void on_flush(void);

/*
 * QEMU's TCG (10.0) leaves its exception_index behind when VMRUN injects an interrupt. A processor that is then asked to leave its
 * code, as all are for a change of state, delivers the interrupt once more, even where its guest has interrupts off: seen as guests
 * whose timer interrupt waited for ever for the lock that the timer interrupt below it held. The next #VMEXIT mends it, and so does
 * on_injection. So the model is left only while no processor is between the two; when it is entered, where nothing is seen yet, the
 * guests must stand still.
 */
static bool safe_to_change(void)
{
	for (uint32_t i = 0; state == MODEL && i < vcpu_count; i++)
		if (__atomic_load_n(&vcpus[i].injected, __ATOMIC_RELAXED))
			return false;
	return true;
}

void change_if_safe(uint32_t index)
{
	if (__atomic_load_n(&change_wanted, __ATOMIC_ACQUIRE) && safe_to_change() &&
		!__atomic_exchange_n(&change_asked, true, __ATOMIC_ACQ_REL))
		qemu_flush((int)index, on_flush);
}

/* Out of a guest: the best moment for a change, for the processor will not be back there at once. */
void note_exit(struct vcpu *vcpu)
{
	__atomic_store_n(&vcpu->injected, false, __ATOMIC_RELAXED);
	change_if_safe((uint32_t)(vcpu - vcpus));
}

/* From here on all is seen. What was seen before was a part: of address spaces and tasks the last may have come unseen. */
void forget_what_was_seen(void)
{
	for (uint32_t i = 0; i < vcpu_count; i++) {
		vcpus[i].space_unknown = vcpus[i].task_unknown = true;
		cores[i]->sample_at = 0;
	}
}

/* All processors stand still, and no translated code is left. */
static void on_flush(void)
{
	forget_old_blocks();
	for (uint32_t i = 0; model && i < model->core_count; i++)
		core_forget_blocks(model->core[i]);
	if (wanted == MODEL)
		forget_what_was_seen();
	if (wanted == MODEL && modelled.wanted && !modelled.runs && !modelled.failed)
		begin_modelled_time();
	else if (wanted != MODEL && modelled.runs)
		end_modelled_time();
	pthread_mutex_lock(&change_lock);
	state = wanted;
	/* In this order: who sees it wanted still must not ask again. One that wakes runs beside this. */
	__atomic_store_n(&change_wanted, false, __ATOMIC_RELEASE);
	__atomic_store_n(&change_asked, false, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&change_lock);
}

/* Wait a little for a change that was begun. Returns whether it is done. */
bool wait_for_change(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += CHANGE_NS;
	if (end.tv_nsec >= 1000000000) {
		end.tv_nsec -= 1000000000;
		end.tv_sec++;
	}
	pthread_mutex_lock(&change_lock);
	while (change_wanted && pthread_cond_timedwait(&changed, &change_lock, &end) != ETIMEDOUT)
		;
	bool done = !change_wanted;
	pthread_mutex_unlock(&change_lock);
	return done;
}

void begin_change(enum state to)
{
	wanted = to;
	/*
	 * The processors learn of a translation callback when they next leave their code; one registered before the flush is known to
	 * all of them when it comes, so that nothing is translated without it. It is never taken away, see qemu_flush.h.
	 */
	if (to != OFF)
		qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, on_translation);
	__atomic_store_n(&change_wanted, true, __ATOMIC_RELEASE);
}
