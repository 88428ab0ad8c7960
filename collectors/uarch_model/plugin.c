/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's side of the model: what QEMU translates becomes blocks, what it executes drives the cores. All state that is measured
 * lives in model.c and below; here is only the glue, and the changes between off, count and model.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "chain.h"
#include "clock.h"
#include "control.h"
#include "decode.h"
#include "idle.h"
#include "ipi.h"
#include "model.h"
#include "qemu_api.h"
#include "qemu_clock.h"
#include "qemu_flush.h"
#include "qemu_interrupt.h"

QEMU_EXPORT int qemu_plugin_version = QEMU_API_VERSION;
QEMU_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv);

#define CHANGE_NS 300000000
#define BACK_IN_HOST 500          /* instructions after #VMEXIT: KVM has loaded the host's GS again, and is not yet back in the guest */
#define REAL_MODE_END 0x110000    /* below it segments have bases, and a repeated string instruction's registers are no addresses */
#define REPORTS_A_QUANTUM 8       /* how often a processor tells the clock where it is */
#define FEWEST_BETWEEN_REPORTS 50 /* instructions */
#define CHECK_EVERY 1024          /* slow accesses between two comparisons of our translation with QEMU's */

enum state { OFF, COUNT, MODEL };
static const char *const state_names[] = {"off", "count", "model"};

/* VMCB: AMD64 Architecture Programmer's Manual vol. 2, appendix B. */
enum {
	VMCB_ASID = 0x58,
	VMCB_TLB_CONTROL = 0x5c,
	VMCB_NP_ENABLE = 0x90,
	VMCB_EVENT_INJECTION = 0xa8,
	VMCB_N_CR3 = 0xb0,
	VMCB_CR4 = 0x548,
	VMCB_CR3 = 0x550
};
#define EVENT_VALID (1ull << 31)
#define CR4_LA57 (1ull << 12)

struct vcpu {
	uint64_t counted;   /* instructions in state COUNT */
	bool space_unknown; /* CR3 was loaded: read it before the next block */
	bool task_unknown;  /* no task switch was seen yet */
	bool injected;      /* in its guest, which was entered with an interrupt; see safe_to_change */
	int32_t vector;     /* of that interrupt */
	uint64_t injections, mended;
	uint64_t landing;          /* where the host goes on after #VMEXIT */
	struct repeated repeating; /* MOVS or STOS, as it began; `bytes` is 0 if none does */
	struct address_space host_space;
	uint32_t slow_accesses;
	uint64_t checked, wrong; /* translations compared with QEMU's */
	/* Modelled time: it was `time_base` when the core had taken `cycles_base` cycles. */
	bool asleep;
	int64_t time_base;
	uint64_t cycles_base, cycles_reported, retired_reported;
	uint64_t report_at; /* `retired` at which it reports to the clock */
	bool probe;         /* the task that runs is one of a window's probes */
	bool free;          /* and so it takes no modelled time now */
};

/* Blocks live until the flush after the next: a core's last block is looked at once more after a flush. */
struct arena {
	struct arena *before;
	size_t used;
	struct block block[4096];
};

static qemu_plugin_id_t plugin_id;
static uint32_t vcpu_count;
static struct vcpu vcpus[MOST_CORES];
static struct model *model;
static struct core *cores[MOST_CORES]; /* the model's, one load nearer */
static struct profile profile;
static bool profile_known;
static struct memory memory;
static uint32_t sample_every = 20000;
static struct hook hooks[MOST_HOOKS];
static uint32_t hook_count;
static struct {
	uint64_t begin; /* physical address */
	uint64_t cpus;  /* a bit each */
} nodes[MOST_NODES];
static uint32_t node_count;
static uint64_t task_switch_pc, current_task_at, task_id_offset, task_name_offset, task_priority_offset;

static enum state state, wanted;
static bool change_wanted, change_asked; /* asked: of QEMU, by the first processor that could */
static pthread_mutex_t change_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/*
 * Modelled time passes in the state MODEL, once it was wanted. From its first begin on QEMU's clocks are ours: in other states they go
 * on from where modelled time ended, at the speed of real time.
 */
static struct {
	bool wanted, taken, runs;
	int64_t quantum; /* ns */
	uint64_t seed;
	uint64_t core_khz;  /* the modelled processor's */
	uint64_t ticks_khz; /* the cycle counter's, as the emulated kernel found it at boot */
	double pace;
	uint32_t deepest_idle;        /* as of idle_exit */
	int64_t origin, ticks_origin; /* the clock and the cycle counter when they were taken */
	int64_t offset;               /* of our clock from QEMU's own where time is not modelled */
	const char *failed;           /* why it did not begin */
} modelled;
static struct clock machine_clock;
static struct ipi ipis; /* between processors, in modelled time */
/*
 * Before a window's begin and behind its end probes are read. They have a priority that nothing else has, and what they do takes no
 * modelled time. The other processors wait meanwhile, because the clock stands still: reading a counter does not change what it counts.
 */
#define PROBES_PRIORITY 101 /* task_struct's static_prio of niceness -19 */
static bool probing;
static __thread int own_index = -1;      /* of the processor that this thread runs */
static __thread bool wants_machine_time; /* and not the processor's own */

static pthread_mutex_t arena_lock = PTHREAD_MUTEX_INITIALIZER;
static struct arena *arena, *old_arena;

/* Registers. */

enum {
	REG_CR3,
	REG_CR4,
	REG_RAX,
	REG_RSI = REG_RAX + 6,
	REG_RDI = REG_RAX + 7,
	REG_GS_BASE = REG_RAX + 16,
	REG_KERNEL_GS_BASE,
	REG_RIP,
	REG_COUNT
};
static const char *const register_names[REG_COUNT] = {"cr3", "cr4", "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9",
	"r10", "r11", "r12", "r13", "r14", "r15", "gs_base", "k_gs_base", "rip"};
static __thread struct {
	struct qemu_plugin_register *handle[REG_COUNT];
	GByteArray *bytes;
} registers;

static void find_registers(void)
{
	GArray *all = qemu_plugin_get_registers();
	const qemu_plugin_reg_descriptor *one = (const void *)all->data;

	for (unsigned int i = 0; i < all->len; i++)
		for (int wanted_one = 0; wanted_one < REG_COUNT; wanted_one++)
			if (!strcmp(one[i].name, register_names[wanted_one]))
				registers.handle[wanted_one] = one[i].handle;
	g_array_free(all, 1);
	registers.bytes = g_byte_array_new();
}

static uint64_t read_register(int which)
{
	uint64_t value = 0;

	if (!registers.bytes)
		find_registers();
	if (!registers.handle[which])
		return 0;
	g_byte_array_set_size(registers.bytes, 0);
	int length = qemu_plugin_read_register(registers.handle[which], registers.bytes);
	if (length > 0)
		memcpy(&value, registers.bytes->data, length < 8 ? (size_t)length : 8);
	return value;
}

static void on_flush(void);

/* Address spaces, guests and tasks. */

static void read_address_space(struct vcpu *vcpu, struct core *core)
{
	struct address_space space = core->space;
	bool five_levels = read_register(REG_CR4) & CR4_LA57;

	vcpu->space_unknown = false;
	space.root = read_register(REG_CR3);
	space.five_levels = five_levels;
	core->now->address_space_switches++;
	core_new_address_space(core, &space, core->guest ? core->context.space : 0);
	if (!core->guest)
		vcpu->host_space = core->space;
}

static void on_cr3(unsigned int index, void *data)
{
	(void)data;
	vcpus[index].space_unknown = true;
	/* The load itself comes after this; the next block looks. */
	cores[index]->sample_at = 0;
}

static void on_cr4(unsigned int index, void *data)
{
	core_flush_all(cores[index]);
	on_cr3(index, data);
}

static void on_invlpg(unsigned int index, void *data)
{
	core_forget_page(cores[index], read_register(REG_RAX + (int)(intptr_t)data));
}

static uint64_t vmcb_field(uint64_t vmcb, uint64_t offset)
{
	uint64_t value = 0;

	memory_read(&memory, vmcb + (offset & ~7ull), &value);
	return value >> (offset & 7) * 8;
}

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

static void change_if_safe(uint32_t index)
{
	if (__atomic_load_n(&change_wanted, __ATOMIC_ACQUIRE) && safe_to_change() &&
		!__atomic_exchange_n(&change_asked, true, __ATOMIC_ACQ_REL))
		qemu_flush((int)index, on_flush);
}

static void note_injection(struct vcpu *vcpu, uint64_t vmcb)
{
	uint64_t event = vmcb_field(vmcb, VMCB_EVENT_INJECTION);

	vcpu->vector = event & 0xff;
	vcpu->injections += (event & EVENT_VALID) != 0;
	__atomic_store_n(&vcpu->injected, event & EVENT_VALID, __ATOMIC_RELAXED);
}

/*
 * VMRUN stores: the frame of the interrupt that it injects, on its guest's stack. Now the number that it leaves behind is there, and can be
 * taken away, before the processor is asked to leave its code for another reason than ours: for an instruction that must be alone, say.
 * Such a wish was lost, too, and whoever had it waited for ever.
 */
static void on_injection(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct vcpu *vcpu = &vcpus[index];

	(void)info, (void)address, (void)data;
	if (!vcpu->injected || !qemu_interrupt_mend((int)index, vcpu->vector))
		return;
	vcpu->mended++;
	__atomic_store_n(&vcpu->injected, false, __ATOMIC_RELAXED);
}

/* Out of a guest: the best moment for a change, for the processor will not be back there at once. */
static void note_exit(struct vcpu *vcpu)
{
	__atomic_store_n(&vcpu->injected, false, __ATOMIC_RELAXED);
	change_if_safe((uint32_t)(vcpu - vcpus));
}

static void on_vmrun(unsigned int index, void *data)
{
	struct vcpu *vcpu = &vcpus[index];
	struct core *core = cores[index];
	uint64_t vmcb = read_register(REG_RAX);
	uint16_t number = 1 + (uint16_t)(vmcb_field(vmcb, VMCB_ASID) % 62);
	struct address_space guest = {
		.root = vmcb_field(vmcb, VMCB_CR3),
		.nested_root = vmcb_field(vmcb, VMCB_N_CR3),
		.nested = vmcb_field(vmcb, VMCB_NP_ENABLE) & 1,
		.five_levels = vmcb_field(vmcb, VMCB_CR4) & CR4_LA57,
		.nested_five_levels = core->space.five_levels,
	};

	note_injection(vcpu, vmcb);
	core->now->vm_entries++;
	core->now->stall_mode += core->profile->cost_vm_entry;
	vcpu->landing = block_next(data);
	if (vmcb_field(vmcb, VMCB_TLB_CONTROL) & 0xff)
		core_flush_address_space(core, number);
	core_switch_address_space(core, &guest, number);
	core_enter(core, true);
}

static void leave_guest(struct vcpu *vcpu, struct core *core)
{
	core_enter(core, false);
	core_forget_blocks(core);
	core_switch_address_space(core, &vcpu->host_space, 0);
	/* A processor that is nearly always in its guest would never be found outside by chance. */
	if (vcpu->task_unknown)
		core->sample_at = core->retired + BACK_IN_HOST;
}

static uint64_t real_pc(struct core *core)
{
	(void)core;
	return read_register(REG_RIP);
}

static bool read_virtual(struct core *core, uint64_t address, uint64_t *value)
{
	struct walk walk;
	uint64_t at;

	/* Entries of a structure may lie across the border of 8 bytes only if the structure is packed; tasks are not. */
	if (!walker_walk(&core->walker, &core->space, address, &walk))
		return false;
	at = walk.frame | (address & ((1ull << page_shift[walk.size]) - 1));
	return memory_read(&memory, at, value);
}

static void settle_free(struct vcpu *vcpu, struct core *core);

static bool read_name(struct core *core, uint64_t task, uint64_t name[2])
{
	return read_virtual(core, task + task_name_offset, &name[0]) && read_virtual(core, task + task_name_offset + 8, &name[1]);
}

/* The task whose task_struct is at `address` runs from now on. */
static bool read_task(struct core *core, uint32_t index, uint64_t address)
{
	uint64_t word = 0, priority = 0, name[2] = {0, 0};

	if (!read_virtual(core, address + task_id_offset, &word) || !read_virtual(core, address + task_priority_offset, &priority) ||
		!read_name(core, address, name))
		return false;
	core->thread = (uint32_t)(word >> (task_id_offset & 4) * 8);
	vcpus[index].probe = (uint32_t)(priority >> (task_priority_offset & 4) * 8) == PROBES_PRIORITY;
	settle_free(&vcpus[index], core);
	tasks_switch(model->tasks[index], core->counters, core->thread, (const char *)name);
	return true;
}

static void on_task_switch(unsigned int index, void *data)
{
	struct core *core = cores[index];
	uint64_t name[2];

	(void)data;
	core->now->task_switches++;
	if (core->guest)
		return;
	/* It may have another name than when it was switched to. The first switch seen is from somebody whom nobody knows. */
	if (!vcpus[index].task_unknown && read_name(core, read_register(REG_RDI), name))
		tasks_name(model->tasks[index], (const char *)name);
	vcpus[index].task_unknown = !read_task(core, index, read_register(REG_RSI));
}

/* Who runs, where nobody was switched to yet: a poll-mode thread may not leave its processor for minutes. */
static void find_task(struct vcpu *vcpu, struct core *core, uint32_t index)
{
	uint64_t base = read_register(REG_GS_BASE), task = 0;

	/* In user mode the kernel's base waits in the other register (SWAPGS). */
	if (!(base >> 63))
		base = read_register(REG_KERNEL_GS_BASE);
	if (core->guest || !(base >> 63) || !read_virtual(core, base + current_task_at, &task) || !(task >> 63))
		return;
	vcpu->task_unknown = !read_task(core, index, task);
}

static void on_hook(unsigned int index, void *data)
{
	uint32_t hook = (uint32_t)(uintptr_t)data;
	uint64_t word = 0;

	if (hooks[hook].end) {
		word = (uint16_t)read_register(REG_RAX);
	} else if (hooks[hook].length_at >= 0) {
		uint64_t at = read_register(REG_RDI) + (uint64_t)hooks[hook].length_at;
		read_virtual(cores[index], at, &word);
		word >>= (at & 4) * 8;
	}
	model_hooked(model, index, hook, (uint32_t)word);
}

/*
 * A repeated MOVS or STOS begins. Kernels copy and clear most of their memory by these, byte by byte: to be called for each would take
 * longer than all else. Where it ended, by itself, by a fault or by an interrupt, the next block learns of the register.
 *
 * While the model is being entered, code that was translated before runs on unseen: there the next block that is seen may come much
 * later, and find in the register another address, which would make a repetition of up to 2^64 bytes. So none is begun before all is seen.
 */
#define REPEAT_LOADS 0x100

static void on_repeat(unsigned int index, void *data)
{
	struct vcpu *vcpu = &vcpus[index];
	uint32_t what = (uint32_t)(uintptr_t)data;

	if (state != MODEL)
		return;
	vcpu->repeating = (struct repeated){.to = read_register(REG_RDI), .bytes = what & ~REPEAT_LOADS, .loads = what & REPEAT_LOADS};
	if (vcpu->repeating.loads)
		vcpu->repeating.from = read_register(REG_RSI);
	cores[index]->sample_at = 0;
}

static void end_repeat(struct vcpu *vcpu, struct core *core)
{
	struct repeated done = vcpu->repeating;
	int64_t length = (int64_t)(read_register(REG_RDI) - done.to);

	vcpu->repeating.bytes = 0;
	done.down = length < 0;
	done.count = (uint64_t)(done.down ? -length : length) / done.bytes;
	core_repeated(core, done);
}

static void on_mark(unsigned int index, void *data)
{
	bool begins = (intptr_t)data == MARK_BEGIN;

	/* The window's end is its last instant, and its begin the first: no probe runs in it. */
	if ((intptr_t)data == MARK_END)
		model_end(model);
	__atomic_store_n(&probing, !begins, __ATOMIC_RELAXED);
	settle_free(&vcpus[index], cores[index]);
	if (begins)
		model_begin(model);
}

/* Modelled time. */

static int64_t own_time(const struct vcpu *vcpu, const struct core *core)
{
	uint64_t cycles = vcpu->free ? 0 : core_cycles(core) - vcpu->cycles_base;

	return vcpu->time_base + (int64_t)((double)cycles * 1e6 / (double)modelled.core_khz);
}

/* Its own time is `at` now. */
static void set_own_time(struct vcpu *vcpu, const struct core *core, int64_t at)
{
	vcpu->time_base = at;
	vcpu->cycles_base = core_cycles(core);
}

/* Whether what it does is free may be another now. Then it is not modelled either: probes would push out of the caches what is measured. */
static void settle_free(struct vcpu *vcpu, struct core *core)
{
	bool free = vcpu->probe && __atomic_load_n(&probing, __ATOMIC_RELAXED);

	if (free == vcpu->free)
		return;
	set_own_time(vcpu, core, own_time(vcpu, core));
	vcpu->free = core->blind = free;
}

/* What QEMU's virtual clock reads: for a processor that runs the time that it has reached; for all others that of the whole machine. */
static int64_t present_clock(void)
{
	if (!modelled.runs)
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
	uint64_t by_width = wanted_cycles * core->profile->core_ipc_milli / 1000, until = wanted_cycles * instructions / took;

	return until < FEWEST_BETWEEN_REPORTS ? FEWEST_BETWEEN_REPORTS : until < by_width ? until : by_width;
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
		/* To be there in time. */
		double cycles = (double)(arrives - at) * (double)modelled.core_khz / 1e6;
		uint64_t there = core->retired + (uint64_t)(cycles * core->profile->core_ipc_milli / 1000) + 1;
		vcpu->report_at = there < vcpu->report_at ? there : vcpu->report_at;
		return;
	}
	qemu_interrupt_lock();
	if (ipi_take(&ipis, index))
		qemu_interrupt_raise((int)index, QEMU_INTERRUPT_POLL);
	qemu_interrupt_unlock();
}

/* A processor may have run too far ahead of the others: then it is held up here, though never for long. */
static void report_time(struct vcpu *vcpu, struct core *core, uint32_t index)
{
	if (core->retired >= vcpu->report_at) {
		settle_free(vcpu, core);
		int64_t at = own_time(vcpu, core), machine = clock_now(&machine_clock);
		uint64_t cycles = core_cycles(core);
		own_index = (int)index;
		vcpu->asleep = false;
		/* Time passed while nobody knew that it runs. */
		if (at < machine)
			set_own_time(vcpu, core, at = machine);
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
static void begin_modelled_time(void)
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

static void end_modelled_time(void)
{
	int64_t now = clock_stop(&machine_clock);

	modelled.runs = false;
	qemu_clock_let_sleep(false);
	for (uint32_t i = 0; i < vcpu_count; i++)
		if (own_time(&vcpus[i], cores[i]) > now)
			now = own_time(&vcpus[i], cores[i]);
	modelled.offset = now - qemu_clock_present();
	qemu_clock_notify_timers();
	qemu_interrupt_later(raise_the_rest);
}

/* What runs. */

static SELDOM void on_block_slow(unsigned int index, const struct block *block)
{
	struct vcpu *vcpu = &vcpus[index];
	struct core *core = cores[index];

	if (vcpu->repeating.bytes)
		end_repeat(vcpu, core);
	if (core->guest && block->pc == vcpu->landing) {
		leave_guest(vcpu, core);
		note_exit(vcpu);
	}
	if (core->retired >= core->sample_at) {
		if (vcpu->space_unknown)
			read_address_space(vcpu, core);
		if (vcpu->task_unknown && current_task_at)
			find_task(vcpu, core, index);
		model_tick(model, index);
		if (modelled.runs)
			report_time(vcpu, core, index);
		/* Where no processor ever rests, as beside one that does nothing but softirqs. */
		change_if_safe(index);
	}
	core_block(core, block);
}

#define ON_BLOCK(name, conditional, one_line, loop)                                                                              \
	static void name(unsigned int index, void *data)                                                                         \
	{                                                                                                                        \
		struct core *core = cores[index];                                                                                \
		const struct block *block = data;                                                                                \
                                                                                                                                 \
		if (__builtin_expect(core->retired >= core->sample_at || (core->guest && block->pc == vcpus[index].landing), 0)) \
			on_block_slow(index, block);                                                                             \
		else                                                                                                             \
			core_block_as(core, block, conditional, one_line, loop);                                                 \
	}
ON_BLOCK(on_block, false, false, false)
ON_BLOCK(on_line, false, true, false)
ON_BLOCK(on_conditional_block, true, false, false)
ON_BLOCK(on_conditional_line, true, true, false)
ON_BLOCK(on_loop, true, false, true)
ON_BLOCK(on_loop_line, true, true, true)

/* By what they end in, and whether they are all in one line. */
static qemu_plugin_vcpu_udata_cb_t on_blocks(const struct block *block)
{
	static const qemu_plugin_vcpu_udata_cb_t all[3][2] = {
		{on_block, on_line}, {on_conditional_block, on_conditional_line}, {on_loop, on_loop_line}};
	bool one_line = block->pc >> LINE_SHIFT == (block_next(block) - 1) >> LINE_SHIFT;

	return all[block->chain ? 2 : block->kind == BRANCH_CONDITIONAL][one_line];
}

static void on_block_counted(unsigned int index, void *data)
{
	vcpus[index].counted += ((const struct block *)data)->instructions;
}

/* Now and then: does our walk of the page tables find what QEMU found? */
static void check_translation(struct vcpu *vcpu, struct core *core, qemu_plugin_meminfo_t info, uint64_t address)
{
	struct filter_entry *entry = &core->data_filter[filter_set(address >> LINE_SHIFT)];
	struct qemu_plugin_hwaddr *theirs;

	if (++vcpu->slow_accesses % CHECK_EVERY || entry->line != (address >> LINE_SHIFT | core->space_tag))
		return;
	theirs = qemu_plugin_get_hwaddr(info, address);
	if (!theirs || qemu_plugin_hwaddr_is_io(theirs))
		return;
	uint64_t offset = address & ((1ull << page_shift[entry->page->size]) - 1);
	vcpu->checked++;
	vcpu->wrong += (entry->page->frame | offset) != qemu_plugin_hwaddr_phys_addr(theirs);
}

/* A load missed L1D: what it got may be the address of the next. */
static void on_missed_load(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address)
{
	struct core *core = cores[index];
	qemu_plugin_mem_value value = qemu_plugin_mem_get_value(info);

	if (value.type == QEMU_PLUGIN_MEM_VALUE_U64)
		core_loaded(core, value.data.u64);
	check_translation(&vcpus[index], core, info, address);
}

static SELDOM void on_access_slow(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address, bool store)
{
	struct core *core = cores[index];

	if (core->blind)
		return;
	if (core_access(core, address, store))
		on_missed_load(index, info, address);
	/* An access that runs over the end of its line touches two, but is one. */
	if ((address & 63) + (1ull << qemu_plugin_mem_size_shift(info)) > 64) {
		core_access(core, (address | 63) + 1, store);
		*(store ? &core->now->stores : &core->now->loads) -= 1;
	}
}

/* One of `bytes` at most. A function for each size that instructions have, or all those at a line's end would take the long way. */
#define ON_ACCESS(name, store, bytes)                                                                  \
	static void name(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address, void *data) \
	{                                                                                              \
		(void)data;                                                                            \
		if (__builtin_expect(!core_hits(cores[index], address, store, bytes), 0))              \
			on_access_slow(index, info, address, store);                                   \
	}
ON_ACCESS(on_load_1, false, 1)
ON_ACCESS(on_load_2, false, 2)
ON_ACCESS(on_load_4, false, 4)
ON_ACCESS(on_load_8, false, 8)
ON_ACCESS(on_load_16, false, 16) /* QEMU makes two accesses of what has more */
ON_ACCESS(on_store_1, true, 1)
ON_ACCESS(on_store_2, true, 2)
ON_ACCESS(on_store_4, true, 4)
ON_ACCESS(on_store_8, true, 8)
ON_ACCESS(on_store_16, true, 16)

/* By the binary logarithm of the bytes. */
static const qemu_plugin_vcpu_mem_cb_t on_load[] = {on_load_1, on_load_2, on_load_4, on_load_8, on_load_16},
				       on_store[] = {on_store_1, on_store_2, on_store_4, on_store_8, on_store_16};

/* What is translated. */

static struct block *new_block(void)
{
	struct block *block = NULL;

	pthread_mutex_lock(&arena_lock);
	if (!arena || arena->used == sizeof(arena->block) / sizeof(arena->block[0])) {
		struct arena *fresh = malloc(sizeof(*fresh));
		if (fresh) {
			fresh->before = arena;
			fresh->used = 0;
			arena = fresh;
		}
	}
	if (arena && arena->used < sizeof(arena->block) / sizeof(arena->block[0]))
		block = &arena->block[arena->used++];
	pthread_mutex_unlock(&arena_lock);
	return block;
}

static void free_arena(struct arena *one)
{
	while (one) {
		struct arena *before = one->before;
		free(one);
		one = before;
	}
}

static void instrument_special(struct qemu_plugin_insn *instruction, const struct decoded *d, struct block *block)
{
	const struct {
		qemu_plugin_vcpu_udata_cb_t callback;
		void *data;
	} by_kind[] = {
		[SPECIAL_CR3] = {on_cr3, NULL},
		[SPECIAL_CR4] = {on_cr4, NULL},
		[SPECIAL_INVLPG] = {on_invlpg, (void *)(intptr_t)d->address_register},
		[SPECIAL_VMRUN] = {on_vmrun, block},
		[SPECIAL_MARK] = {on_mark, (void *)(intptr_t)d->mark},
		[SPECIAL_PAUSE] = {NULL, NULL},
	};

	if (by_kind[d->special].callback)
		qemu_plugin_register_vcpu_insn_exec_cb(
			instruction, by_kind[d->special].callback, QEMU_PLUGIN_CB_R_REGS, by_kind[d->special].data);
}

static bool is_hooked(const struct hook *hook, uint64_t address, bool returns)
{
	return hook->end ? returns && address >= hook->address && address < hook->end : address == hook->address;
}

static void instrument_hooks(struct qemu_plugin_insn *instruction, bool returns)
{
	uint64_t address = qemu_plugin_insn_vaddr(instruction);

	for (uintptr_t i = 0; i < hook_count; i++)
		if (is_hooked(&hooks[i], address, returns))
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_hook, QEMU_PLUGIN_CB_R_REGS, (void *)i);
}

/* A block that branches to its own begin: how long the chain is that goes from each time round to the next. */
static uint16_t chain_of_loop(const struct block *block, const struct qemu_plugin_tb *tb)
{
	static __thread struct chain chain;
	uint8_t bytes[LONGEST_INSTRUCTION + 1];

	if (block->kind != BRANCH_CONDITIONAL || block->target != block->pc)
		return 0;
	chain_begin(&chain);
	for (size_t i = 0; i < block->instructions; i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, i);
		chain_add(&chain, bytes, qemu_plugin_insn_data(instruction, bytes, sizeof(bytes)));
	}
	return block_chain(&profile, block->instructions, chain_cycles(&chain, &profile), CHAIN_ROUNDS);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb);
	/* What is wanted decides, not what is: code is translated between the wish and the flush, too. */
	struct block *block = wanted == OFF || !count ? NULL : new_block();
	uint8_t bytes[LONGEST_INSTRUCTION + 1];
	struct decoded d = {.kind = BRANCH_NONE};

	(void)id;
	if (!block)
		return;
	*block = (struct block){.pc = qemu_plugin_tb_vaddr(tb), .instructions = (uint16_t)count};
	/* The kernel's half of the address space; a user never runs there, nor the kernel below. */
	block->user = !(block->pc >> 63);
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, i);
		d = decode(bytes, qemu_plugin_insn_data(instruction, bytes, sizeof(bytes)));
		block->atomics += d.atomic;
		block->pauses += d.special == SPECIAL_PAUSE;
		block->ports += d.port;
		if (wanted == COUNT)
			continue;
		if (d.special)
			instrument_special(instruction, &d, block);
		if (d.special == SPECIAL_VMRUN)
			qemu_plugin_register_vcpu_mem_cb(instruction, on_injection, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_W, NULL);
		if (task_switch_pc && qemu_plugin_insn_vaddr(instruction) == task_switch_pc)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_task_switch, QEMU_PLUGIN_CB_R_REGS, NULL);
		instrument_hooks(instruction, d.kind == BRANCH_RETURN);
		if (d.repeat && block->pc >= REAL_MODE_END) {
			uintptr_t what = d.bytes | (d.repeat == REPEAT_MOVS ? REPEAT_LOADS : 0);
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_repeat, QEMU_PLUGIN_CB_R_REGS, (void *)what);
			continue;
		}
		int size = __builtin_ctz(d.bytes);
		qemu_plugin_register_vcpu_mem_cb(instruction, on_load[size], QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_R, NULL);
		qemu_plugin_register_vcpu_mem_cb(instruction, on_store[size], QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_W, NULL);
	}
	struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, count - 1);
	block->length = (uint16_t)(qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last) - block->pc);
	block->target = block_next(block) + (uint64_t)d.displacement;
	block->kind = (uint8_t)d.kind;
	block->way = block->user | (block->atomics || block->pauses || block->ports ? SPECIAL_WAY : 0);
	block->chain = wanted == MODEL ? chain_of_loop(block, tb) : 0;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, wanted == COUNT ? on_block_counted : on_blocks(block), QEMU_PLUGIN_CB_NO_REGS, block);
}

/* Changes of state. Translated code must be thrown away, which QEMU does only when asked by a processor's own thread. */

/* From here on all is seen. What was seen before was a part: of address spaces and tasks the last may have come unseen. */
static void forget_what_was_seen(void)
{
	for (uint32_t i = 0; i < vcpu_count; i++) {
		vcpus[i].space_unknown = vcpus[i].task_unknown = true;
		cores[i]->sample_at = 0;
	}
}

/* All processors stand still, and no translated code is left. */
static void on_flush(void)
{
	pthread_mutex_lock(&arena_lock);
	free_arena(old_arena);
	old_arena = arena;
	arena = NULL;
	pthread_mutex_unlock(&arena_lock);
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

static void on_idle(qemu_plugin_id_t id, unsigned int index)
{
	(void)id;
	own_index = (int)index;
	if (state == MODEL)
		model_settle(model, index);
	clock_idle(&machine_clock, index, modelled.runs ? own_time(&vcpus[index], cores[index]) : 0);
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
static void on_resume(qemu_plugin_id_t id, unsigned int index)
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
	vcpus[index].asleep = false;
	change_if_safe(index);
}

/* Wait a little for a change that was begun. Returns whether it is done. */
static bool wait_for_change(void)
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

static void begin_change(enum state to)
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

/* The value of -m on QEMU's own command line, in bytes; it must end in M. */
static uint64_t machine_memory(void)
{
	char words[32768];
	FILE *file = fopen("/proc/self/cmdline", "r");
	size_t length = file ? fread(words, 1, sizeof(words) - 1, file) : 0;

	if (file)
		fclose(file);
	words[length] = '\0';
	for (const char *word = words; word < words + length; word += strlen(word) + 1)
		if (!strcmp(word, "-m"))
			return strtoull(word + 3, NULL, 10) << 20;
	return 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

/*
 * QEMU keeps the machine's RAM in one mapping of exactly its size; that of two NUMA nodes in one for each, of the files that
 * testbeds/emulator/machine.py names so. Its machine q35 leaves a hole below 4 GiB.
 */
static bool find_memory(void)
{
	uint64_t bytes = machine_memory(), low_bytes = bytes >= 0xb0000000u ? 0x80000000u : bytes, begin, end;
	char line[512], access[8], path[256];
	FILE *maps = fopen("/proc/self/maps", "r");

	memory = (struct memory){.low_bytes = low_bytes, .high_bytes = bytes - low_bytes};
	while (maps && fgets(line, sizeof(line), maps)) {
		path[0] = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %255s", &begin, &end, access, path) < 3 ||
			strncmp(access, "rw", 2))
			continue;
		const uint8_t *at = (const uint8_t *)begin;
		if (end - begin == bytes) {
			memory.low = at;
			memory.high = at + low_bytes;
		} else if (end - begin == low_bytes && ends_with(path, "/node0.ram")) {
			memory.low = at;
		} else if (end - begin == bytes - low_bytes && ends_with(path, "/node1.ram")) {
			memory.high = at;
		}
	}
	if (maps)
		fclose(maps);
	if (!memory.high && memory.high_bytes)
		memory.low = NULL;
	return memory.low != NULL;
}

static bool add_nodes(void)
{
	for (uint32_t i = 0; i < node_count; i++) {
		if (!uncore_add_node(&model->uncore, nodes[i].begin >> LINE_SHIFT))
			return false;
		for (uint32_t cpu = 0; cpu < vcpu_count; cpu++)
			if (nodes[i].cpus >> cpu & 1)
				model->uncore.node_of_core[cpu] = (uint8_t)i;
	}
	return true;
}

static bool make_model(FILE *out)
{
	if (!profile_known) {
		fprintf(out, "error: no profile was given yet\n");
		return false;
	}
	if (!memory.low && !find_memory()) {
		fprintf(out, "error: the machine's RAM was not found among QEMU's mappings\n");
		return false;
	}
	if (memory.low_bytes + memory.high_bytes > (MOST_LINES << LINE_SHIFT) / 2) {
		fprintf(out, "error: the machine has %" PRIu64 " MiB of RAM, and the model's caches can tell 32 GiB apart\n",
			(memory.low_bytes + memory.high_bytes) >> 20);
		return false;
	}
	if (model)
		model_free(model);
	memset(vcpus, 0, sizeof(vcpus));
	model = model_new(&profile, vcpu_count, memory, sample_every);
	if (model && !add_nodes()) {
		model_free(model);
		model = NULL;
	}
	if (!model) {
		fprintf(out, "error: no memory for the model of %u cores: %s\n", vcpu_count, strerror(errno));
		return false;
	}
	model->hook_count = hook_count;
	memcpy(model->hook, hooks, sizeof(hooks));
	for (uint32_t i = 0; i < vcpu_count; i++) {
		cores[i] = model->core[i];
		cores[i]->real_pc = real_pc;
	}
	forget_what_was_seen();
	return true;
}

/* The commands. */

/* state NAME: "ok" when it is so, "pending" while no processor was idle yet: ask again, and wake one meanwhile. */
static void command_state(const char *name, FILE *out)
{
	static bool flush_found;
	char error[256] = "";

	for (enum state to = OFF; to <= MODEL; to++) {
		if (strcmp(name, state_names[to]))
			continue;
		if (!change_wanted && to != state) {
			/* By way of off: the model must not be replaced while it runs. */
			if (to != OFF && state != OFF)
				fprintf(out, "error: first off, then %s\n", name);
			else if (!flush_found && !(flush_found = qemu_flush_find(error, sizeof(error))))
				fprintf(out, "error: %s\n", error);
			else if (to != MODEL || make_model(out))
				begin_change(to);
			if (!change_wanted)
				return;
		}
		if (!wait_for_change() || state != to)
			fputs("pending\n", out);
		else if (modelled.failed)
			fprintf(out, "error: modelled time did not begin: %s\n", modelled.failed);
		else
			fputs("ok\n", out);
		return;
	}
	fprintf(out, "error: no state %s: off, count or model\n", name);
}

static void command_profile(const char *path, FILE *out)
{
	char text[16384], error[256];
	FILE *file = fopen(path, "r");

	if (!file) {
		fprintf(out, "error: %s: %s\n", path, strerror(errno));
		return;
	}
	size_t length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = '\0';
	struct profile fresh;
	if (profile_parse(text, &fresh, error, sizeof(error))) {
		fprintf(out, "error: profile: %s\n", error);
		return;
	}
	if (state == MODEL) {
		fputs("error: the profile can't change while the model runs\n", out);
		return;
	}
	profile = fresh;
	profile_known = true;
	fputs("ok\n", out);
}

static void command_kernel(const char *arguments, FILE *out)
{
	if (sscanf(arguments, "%" SCNx64 " %" SCNx64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &task_switch_pc, &current_task_at,
		    &task_id_offset, &task_name_offset, &task_priority_offset) == 5)
		fputs("ok\n", out);
	else
		fputs("error: kernel ADDRESS_OF_SWITCH_TO PERCPU_CURRENT_TASK PID_OFFSET COMM_OFFSET STATIC_PRIO_OFFSET\n", out);
}

/* By their names: those by which a poll-mode thread's polls are told apart. */
static enum poll_part poll_part(const char *name)
{
	static const char *const words[] = {[POLL_BEGINS] = "polls", [POLL_FOUND] = "bursts", [POLL_FOUND_IF_ANY] = "found"};

	for (enum poll_part part = POLL_BEGINS; part <= POLL_FOUND_IF_ANY; part++)
		if (!strcmp(name, words[part]))
			return part;
	return POLL_NOTHING;
}

static void add_hook(struct hook fresh, const char *wrong, FILE *out)
{
	fresh.poll = poll_part(fresh.name);
	if (state == MODEL || hook_count == MOST_HOOKS)
		fprintf(out, "error: %s\n", state == MODEL ? "no hooks while the model runs" : "too many hooks");
	else if (wrong)
		fprintf(out, "error: %s\n", wrong);
	else {
		hooks[hook_count++] = fresh;
		fputs("ok\n", out);
	}
}

static void command_hook(const char *arguments, FILE *out)
{
	struct hook fresh = {.length_at = -1};
	bool understood = sscanf(arguments, "%31s %" SCNx64 " %" SCNd64, fresh.name, &fresh.address, &fresh.length_at) >= 2;

	add_hook(fresh, understood ? NULL : "hook NAME ADDRESS [OFFSET_OF_LENGTH]", out);
}

static void command_returns(const char *arguments, FILE *out)
{
	struct hook fresh = {.length_at = -1};
	bool understood = sscanf(arguments, "%31s %" SCNx64 " %" SCNx64, fresh.name, &fresh.address, &fresh.end) == 3;

	add_hook(fresh, understood && fresh.address < fresh.end ? NULL : "returns NAME BEGIN END", out);
}

/* node BEGIN CPUS: the next NUMA node, its memory's first physical address and its processors, a bit each; both hexadecimal. */
static void command_node(const char *arguments, FILE *out)
{
	uint64_t begin, cpus;
	bool understood = sscanf(arguments, "%" SCNx64 " %" SCNx64, &begin, &cpus) == 2;

	/* Node 0 begins at 0, and a new list with it. */
	if (understood && begin == 0)
		node_count = 0;
	if (state == MODEL || node_count == MOST_NODES)
		fprintf(out, "error: %s\n", state == MODEL ? "no nodes while the model runs" : "too many nodes");
	else if (!understood || (node_count && begin <= nodes[node_count - 1].begin))
		fputs("error: node BEGIN CPUS, one behind the other\n", out);
	else {
		nodes[node_count].begin = begin;
		nodes[node_count++].cpus = cpus;
		fputs("ok\n", out);
	}
}

/* clock QUANTUM_NS CORE_KHZ TICKS_KHZ PACE DEEPEST_IDLE SEED: time is modelled from the next change to the state model on. */
static void command_clock(const char *arguments, FILE *out)
{
	char error[256];
	int64_t quantum;
	uint64_t core_khz, ticks_khz, seed;
	double pace;
	uint32_t deepest_idle;

	if (sscanf(arguments, "%" SCNd64 " %" SCNu64 " %" SCNu64 " %lf %" SCNu32 " %" SCNu64, &quantum, &core_khz, &ticks_khz, &pace,
		    &deepest_idle, &seed) != 6 ||
		quantum <= 0 || !core_khz || !ticks_khz || pace <= 0)
		fputs("error: clock QUANTUM_NS CORE_KHZ TICKS_KHZ PACE DEEPEST_IDLE SEED, the first four above 0\n", out);
	else if (state == MODEL)
		fputs("error: the clock can't change while the model runs\n", out);
	else if (!modelled.taken && !(qemu_clock_find(error, sizeof(error)) && qemu_interrupt_find(vcpu_count, error, sizeof(error))))
		fprintf(out, "error: %s: modelled time needs QEMU 9.1 to 11.1 with threads for TCG's CPUs\n", error);
	else {
		modelled.quantum = quantum;
		modelled.core_khz = core_khz;
		modelled.ticks_khz = ticks_khz;
		modelled.pace = pace;
		modelled.deepest_idle = deepest_idle;
		modelled.seed = seed;
		modelled.wanted = true;
		fputs("ok\n", out);
	}
}

static void write_clock(FILE *out)
{
	struct clock_record record = clock_read(&machine_clock);

	fprintf(out, "{\"runs\":%s,\"now_ns\":%" PRId64 ",\"modelled_ns\":%" PRId64 ",\"wall_ns\":%" PRId64 ",\"idle_ns\":%" PRId64,
		modelled.runs ? "true" : "false",
		modelled.runs    ? clock_now(&machine_clock)
		: modelled.taken ? present_clock()
				 : 0,
		record.modelled, record.wall, record.idle);
	fprintf(out,
		",\"quantum_ns\":%" PRId64 ",\"reports\":%" PRIu64 ",\"waits\":%" PRIu64 ",\"slices\":%" PRIu64 ",\"far_ahead\":%" PRIu64
		",\"most_ahead_ns\":%" PRId64 ",\"timers\":%" PRIu64 ",\"calls\":%" PRIu64 ",\"vain\":%" PRIu64 "}",
		modelled.quantum, record.reports, record.waits, record.slices, record.far_ahead, record.most_ahead, record.timers,
		record.calls, record.vain);
}

/* How often the kernels' receiving function (the hook of that name) was called since the model began: whether a rate is steady yet. */
static uint64_t packets_so_far(void)
{
	uint64_t sum = 0;

	for (uint32_t hook = 0; model && hook < model->hook_count; hook++)
		for (uint32_t i = 0; !strcmp(model->hook[hook].name, "packets") && i < model->core_count; i++)
			for (int mode = 0; mode < MODE_COUNT; mode++)
				sum += model->hooked[i][hook][mode].calls;
	return sum;
}

static void command_status(FILE *out)
{
	fprintf(out, "{\"state\":\"%s\",\"window\":%d,\"clock\":", state_names[state], model ? (int)model->window : 0);
	write_clock(out);
	fprintf(out, ",\"packets\":%" PRIu64 ",\"vcpus\":[", packets_so_far());
	for (uint32_t i = 0; i < vcpu_count; i++)
		fprintf(out,
			"%s{\"instructions\":%" PRIu64 ",\"asleep\":%s,\"at_ns\":%" PRId64 ",\"translations_checked\":%" PRIu64
			",\"translations_wrong\":%" PRIu64 ",\"injections\":%" PRIu64 ",\"mended\":%" PRIu64 "}",
			i ? "," : "", vcpus[i].counted + (model ? model->core[i]->retired : 0),
			machine_clock.cpu[i].idle ? "true" : "false", machine_clock.cpu[i].at, vcpus[i].checked, vcpus[i].wrong,
			vcpus[i].injections, vcpus[i].mended);
	fputs("]}\n", out);
}

static void command_window(FILE *out)
{
	if (!model || model->window != WINDOW_CLOSED) {
		fputs("error: no window was closed\n", out);
		return;
	}
	/* A core that sleeps on has nothing left to book: its tables can be brought up to date from here. */
	for (int tries = 0; tries < 100 && !model_settled(model); tries++)
		usleep(1000);
	for (uint32_t i = 0; i < model->core_count; i++)
		model_settle(model, i);
	model_write(model, out);
}

static void handle(char *line, FILE *out)
{
	char *argument = line + strcspn(line, " ");

	if (*argument)
		*argument++ = '\0';
	if (!strcmp(line, "state"))
		command_state(argument, out);
	else if (!strcmp(line, "profile"))
		command_profile(argument, out);
	else if (!strcmp(line, "kernel"))
		command_kernel(argument, out);
	else if (!strcmp(line, "clock"))
		command_clock(argument, out);
	else if (!strcmp(line, "status"))
		command_status(out);
	else if (!strcmp(line, "window"))
		command_window(out);
	else if (!strcmp(line, "sample")) {
		sample_every = (uint32_t)strtoul(argument, NULL, 10);
		fputs("ok\n", out);
	} else if (!strcmp(line, "hook")) {
		command_hook(argument, out);
	} else if (!strcmp(line, "returns")) {
		command_returns(argument, out);
	} else if (!strcmp(line, "node")) {
		command_node(argument, out);
	} else if (!strcmp(line, "begin") && state == MODEL) {
		model_begin(model);
		fputs("ok\n", out);
	} else if (!strcmp(line, "end") && state == MODEL) {
		model_end(model);
		fputs("ok\n", out);
	} else {
		fprintf(out, "error: can't %s in state %s\n", line, state_names[state]);
	}
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	const char *path = NULL;

	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "control=", 8))
			path = argv[i] + 8;
	if (!path || strcmp(info->target_name, "x86_64") || !info->system_emulation || info->system.max_vcpus > MOST_CORES) {
		fprintf(stderr, "uarch_model: needs control=PATH and an x86_64 machine of at most %d processors\n", MOST_CORES);
		return -1;
	}
	plugin_id = id;
	vcpu_count = (uint32_t)info->system.max_vcpus;
	clock_init(&machine_clock, vcpu_count);
	ipi_init(&ipis);
	qemu_plugin_register_vcpu_idle_cb(id, on_idle);
	qemu_plugin_register_vcpu_resume_cb(id, on_resume);
	return control_start(path, handle);
}
