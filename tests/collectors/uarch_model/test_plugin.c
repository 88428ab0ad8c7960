/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's side of the model, with a QEMU that does nothing: what is seen while the model is being entered is a part, for code that
 * was translated before runs on unseen. Nothing of it may be taken for the whole.
 */
#include "plugin.c"
#include "plugin_changes.c"
#include "plugin_commands.c"
#include "plugin_guests.c"
#include "plugin_kernel.c"
#include "plugin_machine.c"
#include "plugin_registers.c"
#include "plugin_run.c"
#include "plugin_time.c"
#include "plugin_timeline.c"
#include "plugin_translate.c"

#include "assembled.h"
#include "check.h"

#define FAR 0xffff888000000000ull

/* A processor's registers. A handle is the address of one. */
static uint64_t values[REG_COUNT];
static qemu_plugin_reg_descriptor described[REG_COUNT];
static GArray all_registers = {.data = (char *)described, .len = REG_COUNT};
static uint8_t bytes[16];
static GByteArray byte_array = {.data = bytes};

GArray *qemu_plugin_get_registers(void)
{
	for (int i = 0; i < REG_COUNT; i++)
		described[i] = (qemu_plugin_reg_descriptor){.handle = (void *)&values[i], .name = register_names[i]};
	return &all_registers;
}

int qemu_plugin_read_register(struct qemu_plugin_register *handle, GByteArray *to)
{
	memcpy(to->data, handle, 8);
	return 8;
}

GByteArray *g_byte_array_new(void)
{
	return &byte_array;
}

GByteArray *g_byte_array_set_size(GByteArray *array, unsigned int length)
{
	array->len = length;
	return array;
}

char *g_array_free(GArray *array, int free_segment)
{
	(void)array, (void)free_segment;
	return NULL;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
/* Asked for by a processor that runs, it waits until all stand still. */
void async_safe_run_on_cpu(void *cpu, void (*work)(void *cpu, uint64_t data), uint64_t data);
void tb_flush(void *cpu);
static void (*work_left)(void *cpu, uint64_t data);
static int asked, flushes;

void async_safe_run_on_cpu(void *cpu, void (*work)(void *cpu, uint64_t data), uint64_t data)
{
	work_left = work;
	asked++;
}
void tb_flush(void *cpu)
{
	flushes++;
}

static void stand_still(void)
{
	void (*work)(void *cpu, uint64_t data) = work_left;

	work_left = NULL;
	if (work)
		work(NULL, 0);
}

/* It calls nobody, and translates only what it is given. */
#define NOTHING(name, ...)     \
	void name(__VA_ARGS__) \
	{                      \
	}
NOTHING(qemu_plugin_register_vcpu_idle_cb, qemu_plugin_id_t id, qemu_plugin_vcpu_simple_cb_t cb)
NOTHING(qemu_plugin_register_vcpu_resume_cb, qemu_plugin_id_t id, qemu_plugin_vcpu_simple_cb_t cb)
NOTHING(qemu_plugin_register_vcpu_tb_trans_cb, qemu_plugin_id_t id, qemu_plugin_vcpu_tb_trans_cb_t cb)
NOTHING(qemu_plugin_register_vcpu_mem_cb, struct qemu_plugin_insn *insn, qemu_plugin_vcpu_mem_cb_t cb, enum qemu_plugin_cb_flags flags,
	enum qemu_plugin_mem_rw rw, void *data)

#define NEVER(type, name, ...)                                \
	type name(__VA_ARGS__)                                \
	{                                                     \
		fprintf(stderr, "%s was called\n", __func__); \
		exit(1);                                      \
	}
NEVER(unsigned int, qemu_plugin_mem_size_shift, qemu_plugin_meminfo_t info)
NEVER(struct qemu_plugin_hwaddr *, qemu_plugin_get_hwaddr, qemu_plugin_meminfo_t info, uint64_t vaddr)
NEVER(bool, qemu_plugin_hwaddr_is_io, const struct qemu_plugin_hwaddr *address)
NEVER(uint64_t, qemu_plugin_hwaddr_phys_addr, const struct qemu_plugin_hwaddr *address)
NEVER(qemu_plugin_mem_value, qemu_plugin_mem_get_value, qemu_plugin_meminfo_t info)

/* Of single instructions: who wanted to know last, and how many did. */
static qemu_plugin_vcpu_udata_cb_t seen;
static void *seen_with;
static int seen_by_how_many;

void qemu_plugin_register_vcpu_insn_exec_cb(
	struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t cb, enum qemu_plugin_cb_flags flags, void *data)
{
	seen = cb;
	seen_with = data;
	seen_by_how_many++;
}

/* A block to be translated, and who wants to know when it runs. */
struct qemu_plugin_insn {
	const uint8_t *code; /* with its length before it */
	uint64_t address;
};
struct qemu_plugin_tb {
	size_t count;
	struct qemu_plugin_insn insn[8];
};
static qemu_plugin_vcpu_udata_cb_t entered;
static void *entered_with;

static struct qemu_plugin_tb translated(const uint8_t *code, uint64_t address)
{
	struct qemu_plugin_tb tb = {0};

	for (; *code; address += *code, code += 1 + *code)
		tb.insn[tb.count++] = (struct qemu_plugin_insn){code, address};
	return tb;
}

void qemu_plugin_register_vcpu_tb_exec_cb(
	struct qemu_plugin_tb *tb, qemu_plugin_vcpu_udata_cb_t cb, enum qemu_plugin_cb_flags flags, void *data)
{
	entered = cb;
	entered_with = data;
}

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb)
{
	return tb->count;
}

uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb)
{
	return tb->insn[0].address;
}

struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index)
{
	return (struct qemu_plugin_insn *)&tb->insn[index];
}

size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t length)
{
	CHECK(insn->code[0] <= length);
	memcpy(to, insn->code + 1, insn->code[0]);
	return insn->code[0];
}

size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn)
{
	return insn->code[0];
}

uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn)
{
	return insn->address;
}

/* Its interrupts: cpu_interrupt reads the table as a compiler makes of QEMU's. */
static void *table[128];
void *fake_table = table;
__asm__(".balign 64\n.globl cpu_interrupt\ncpu_interrupt:\n"
	"    movq fake_table(%rip), %rax\n"
	"    movq 0xb8(%rax), %rax\n"
	"    jmp *%rax\n"
	"    .skip 64, 0x90\n");
void cpu_interrupt(void *cpu, int request);
void tcg_handle_interrupt(void *cpu, int request);
void *qemu_get_cpu(int index);
void bql_lock_impl(const char *file, int line);
void bql_unlock(void);
void *qemu_get_aio_context(void);
void aio_bh_schedule_oneshot_full(void *loop, void (*call)(void *), void *of, const char *name);
void *object_class_by_name(const char *name);
static int32_t cpus[2][4096];
static int raised[2], locks;
static void (*to_be_called)(void *);

void tcg_handle_interrupt(void *cpu, int request)
{
	raised[((int32_t *)cpu - cpus[0]) / 4096]++;
}
void *qemu_get_cpu(int index)
{
	return cpus[index];
}
void bql_lock_impl(const char *file, int line)
{
	locks++;
}
void bql_unlock(void)
{
	locks--;
}
void *qemu_get_aio_context(void)
{
	return NULL;
}
void aio_bh_schedule_oneshot_full(void *loop, void (*call)(void *), void *of, const char *name)
{
	to_be_called = call;
}
void *object_class_by_name(const char *name)
{
	return table;
}

static uint64_t stores(void)
{
	uint64_t sum = 0;

	for (int mode = 0; mode < MODE_COUNT; mode++)
		sum += cores[0]->counters[mode].stores;
	return sum;
}

static uint8_t ram[1 << 16];
static const struct block block = {.pc = 0xffffffff81000000ull, .length = 4, .instructions = 1};

static void begin_model(uint32_t count)
{
	FILE *out = fopen("/dev/null", "w");

	CHECK(out);
	vcpu_count = count;
	profile = default_profile();
	profile_known = true;
	memory = (struct memory){.low = ram, .low_bytes = sizeof(ram)};
	command_state("model", out);
	CHECK(change_wanted && state == OFF);
	fclose(out);
}

static void test_what_is_seen_while_the_model_is_entered_is_forgotten(void)
{
	asked = flushes = 0;
	begin_model(1);

	/* STOS is seen, then much that is not, then a block that is: RDI and CR3 were changed in between. */
	values[REG_CR3] = 0x1000;
	values[REG_RDI] = 0x5000;
	on_block(0, (void *)&block);
	on_repeat(0, (void *)1);
	values[REG_RDI] = FAR;
	on_block(0, (void *)&block);
	EQUAL(stores(), 0);
	EQUAL(cores[0]->space.root, 0x1000);
	values[REG_CR3] = 0x2000;
	CHECK(work_left && state == OFF);
	EQUAL(asked, 1);
	EQUAL(flushes, 0);

	on_resume(0, 0);
	stand_still();
	CHECK(!change_wanted && state == MODEL);
	on_block(0, (void *)&block);
	EQUAL(cores[0]->space.root, 0x2000);
	on_repeat(0, (void *)1);
	values[REG_RDI] += 16;
	on_block(0, (void *)&block);
	EQUAL(stores(), 16);
	begin_change(OFF);
	on_resume(0, 0);
	stand_still();
	CHECK(state == OFF);
}

/* By the registers of the moment: 0x8000 + 4 * 0x10 - 0x40. */
static void test_a_prefetch_asks_for_the_line_that_its_registers_point_to(void)
{
	struct operand operand = {.base = 3, .index = 9, .scale = 4, .way = 0, .displacement = -0x40};

	begin_model(1);
	on_resume(0, 0);
	stand_still();
	CHECK(state == MODEL);
	/* An address is its own place. */
	((struct profile *)(uintptr_t)cores[0]->profile)->model_page_walks = 0;
	on_block(0, (void *)&block);
	values[REG_RAX + 3] = 0x8000;
	values[REG_RAX + 9] = 0x10;
	on_prefetch(0, operand_as_data(operand));
	CHECK(cache_peek(&cores[0]->l1d, 0x8000 >> LINE_SHIFT));
	operand.index = NO_REGISTER;
	operand.way = ASK_FAR;
	on_prefetch(0, operand_as_data(operand));
	CHECK(!cache_peek(&cores[0]->l1d, 0x7fc0 >> LINE_SHIFT));
	CHECK(cache_peek(&cores[0]->l2, 0x7fc0 >> LINE_SHIFT));
	begin_change(OFF);
	on_resume(0, 0);
	stand_still();
	CHECK(state == OFF);
}

static int64_t no_deadline(void)
{
	return -1;
}
static void no_timers(void)
{
}
static const struct clock_machine no_machine = {no_deadline, no_timers, NULL};

/* Two processors in modelled time, both at 1000 ns; an interrupt between them takes 700 cycles. */
static void begin_time(void)
{
	char error[256] = "";

	begin_model(2);
	clock_init(&machine_clock, 2);
	ipi_init(&ipis);
	on_resume(0, 0);
	stand_still();
	CHECK(state == MODEL);
	table[0xb8 / 8] = (void *)tcg_handle_interrupt;
	CHECK(qemu_interrupt_find(2, error, sizeof(error)));
	qemu_interrupt_take(on_interrupt);
	modelled.core_khz = 1000000;
	modelled.quantum = 50000;
	CHECK(clock_start(&machine_clock, &no_machine, 1000, modelled.quantum, 1, 1.0));
	modelled.runs = true;
	for (uint32_t i = 0; i < 2; i++) {
		set_own_time(&vcpus[i], cores[i], 1000);
		vcpus[i].report_at = 0;
		report_time(&vcpus[i], cores[i], i);
	}
	raised[0] = raised[1] = 0;
}

static void end_time(void)
{
	clock_stop(&machine_clock);
	modelled.runs = false;
	begin_change(OFF);
	on_resume(0, 0);
	stand_still();
}

static void test_a_processor_that_runs_is_interrupted_when_it_has_come_that_far(void)
{
	begin_time();
	own_index = 0;
	cpu_interrupt(cpus[1], QEMU_INTERRUPT_POLL);
	EQUAL(raised[1], 0);
	EQUAL(cores[0]->counters[HOST_KERNEL].ipis, 1);
	/* It reports in time for it, and not before gets it. */
	vcpus[1].report_at = 0;
	report_time(&vcpus[1], cores[1], 1);
	EQUAL(raised[1], 0);
	EQUAL(vcpus[1].report_at, 700 * profile.core_width / 2 + 1);
	cores[1]->retired = vcpus[1].report_at;
	cores[1]->flow += 700 * CHAIN_PART;
	report_time(&vcpus[1], cores[1], 1);
	EQUAL(raised[1], 1);
	EQUAL(locks, 0);
	/* What is no message to a local APIC, or comes from the main loop, is passed on. */
	own_index = 0;
	cpu_interrupt(cpus[1], 0x2);
	EQUAL(raised[1], 2);
	own_index = -1;
	cpu_interrupt(cpus[1], QEMU_INTERRUPT_POLL);
	EQUAL(raised[1], 3);
	EQUAL(cores[0]->counters[HOST_KERNEL].ipis, 1);
	end_time();
}

/* Beyond its lead by far, so that nobody but a probe would have it go on. */
static void hold_up(uint32_t cpu)
{
	vcpus[cpu].report_at = 0;
	cores[cpu]->flow += 1000000 * CHAIN_PART;
	report_time(&vcpus[cpu], cores[cpu], cpu);
	EQUAL(vcpus[cpu].report_at, cores[cpu]->retired);
}

/* The probe on processor 0 reports, having paused so often. */
static void probe_reports(uint32_t pauses)
{
	cores[0]->counters[HOST_KERNEL].pauses += pauses;
	vcpus[0].report_at = 0;
	report_time(&vcpus[0], cores[0], 0);
}

static void test_who_a_probe_waits_for_does_not_wait(void)
{
	begin_time();
	vcpus[0].probe = probing = true;
	probe_reports(0);
	CHECK(vcpus[0].free);
	hold_up(1);
	probe_reports(0);
	hold_up(1);
	/* It spins: the other one is to go on for a while, and then waits again, unless the probe still spins. */
	probe_reports(1);
	report_time(&vcpus[1], cores[1], 1);
	EQUAL(vcpus[1].report_at, cores[1]->retired + ERRAND);
	cores[1]->retired += ERRAND;
	report_time(&vcpus[1], cores[1], 1);
	EQUAL(vcpus[1].report_at, cores[1]->retired);
	probe_reports(0);
	report_time(&vcpus[1], cores[1], 1);
	EQUAL(vcpus[1].report_at, cores[1]->retired);
	probe_reports(3);
	report_time(&vcpus[1], cores[1], 1);
	EQUAL(vcpus[1].report_at, cores[1]->retired + ERRAND);
	/* Who is no probe spins by the clock. */
	cores[1]->retired += ERRAND;
	probing = false;
	probe_reports(1);
	CHECK(!vcpus[0].free);
	hold_up(1);
	probe_reports(1);
	hold_up(1);
	vcpus[0].probe = false;
	end_time();
}

static void test_a_processor_that_falls_asleep_does_not_miss_its_interrupt(void)
{
	begin_time();
	own_index = 0;
	cpu_interrupt(cpus[1], QEMU_INTERRUPT_POLL);
	to_be_called = NULL;
	on_idle(0, 1);
	CHECK(to_be_called);
	EQUAL(raised[1], 0);
	to_be_called(NULL);
	EQUAL(raised[1], 1);
	on_resume(0, 1);
	EQUAL(own_time(&vcpus[1], cores[1]), 1700);
	/* Asleep when it is sent: it is woken at once, and goes on then. */
	on_idle(0, 1);
	own_index = 0;
	cores[0]->flow += 2000 * CHAIN_PART;
	cpu_interrupt(cpus[1], QEMU_INTERRUPT_POLL);
	EQUAL(raised[1], 2);
	on_resume(0, 1);
	EQUAL(own_time(&vcpus[1], cores[1]), 3700);
	end_time();
}

/* Four dependent multiplications take 12 cycles, of which a block's flow has a fifth beyond its width, 3.4 cycles. */
#define LOOP                         \
	INSTRUCTION("imul rax, rbx") \
	INSTRUCTION("imul rax, rbx") INSTRUCTION("imul rax, rbx") INSTRUCTION("imul rax, rbx") INSTRUCTION("dec rcx")
#define BACK INSTRUCTION("jne . - 0x13") /* 4 of 4 bytes, one of 3 */
#define ON INSTRUCTION("jne . + 0x20")

static void test_a_loop_pays_for_its_chain(void)
{
	struct qemu_plugin_tb loop = translated(ASSEMBLED(LOOP BACK), 0xffffffff81000000ull),
			      no_loop = translated(ASSEMBLED(LOOP ON), 0xffffffff81000000ull);

	/* To count instructions no profile is needed. */
	profile = (struct profile){0};
	wanted = COUNT;
	on_translation(0, &loop);
	CHECK(entered == on_block_counted);
	wanted = OFF;
	begin_model(1);
	on_resume(0, 0);
	stand_still();
	CHECK(state == MODEL);
	on_translation(0, &no_loop);
	EQUAL(((struct block *)entered_with)->chain, 0);
	CHECK(entered == on_conditional_line);
	on_translation(0, &loop);
	EQUAL(((struct block *)entered_with)->flow, 217);
	EQUAL(((struct block *)entered_with)->chain, 12 * CHAIN_PART - 217);
	CHECK(entered == on_loop_line);
	for (int i = 0; i < 11; i++)
		entered(0, entered_with);
	EQUAL(cores[0]->counters[HOST_KERNEL].chain_cycles, 10 * (12 * CHAIN_PART - 217) / CHAIN_PART);
	begin_change(OFF);
	on_resume(0, 0);
	stand_still();
}

static const char *answer(void (*command)(const char *, FILE *), const char *arguments)
{
	static char text[256];
	FILE *out = fmemopen(text, sizeof(text), "w");

	CHECK(out);
	command(arguments, out);
	fclose(out);
	return text;
}

static const char *happened(void)
{
	static char text[1 << 16];
	FILE *out = fmemopen(text, sizeof(text), "w");

	CHECK(out);
	command_events(out);
	fclose(out);
	return text;
}

/* The instruction at an address is translated, and runs. */
static void run_at(uint64_t address, bool returns)
{
	struct qemu_plugin_tb tb = translated(ASSEMBLED(INSTRUCTION("nop")), address);

	seen_by_how_many = 0;
	watch_instruction((struct qemu_plugin_insn *)&tb.insn[0], returns);
	if (seen_by_how_many)
		seen(0, seen_with);
}

static void test_what_happens_is_written_down_and_costs_nothing(void)
{
	CHECK(!strncmp(answer(command_watch, "nonsense x 1 2"), "error: watch KIND", 17));
	CHECK(!strncmp(answer(command_watch, "irq timer 2 1"), "error", 5));
	CHECK(!strcmp(answer(command_watch, "irq timer ffffffff81000000 ffffffff81000100"), "ok\n"));
	CHECK(!strcmp(answer(command_watch, "softirq net_rx ffffffff81000100 ffffffff81000200"), "ok\n"));
	CHECK(!strcmp(answer(command_watch, "irq_end exit ffffffff81000300 ffffffff81000400"), "ok\n"));
	CHECK(!strcmp(answer(command_watch, "softirqs_end all ffffffff81000200 ffffffff81000300"), "ok\n"));
	run_at(0xffffffff81000000ull, false);
	EQUAL(seen_by_how_many, 0); /* no part of a window is wanted yet */
	CHECK(!strncmp(answer(command_timeline, "1 -1 0"), "error", 5));
	CHECK(!strcmp(answer(command_timeline, "100 5000 24"), "ok\n"));
	begin_time();
	model->clock = present_clock;
	model_begin(model);
	cores[0]->flow += 200 * CHAIN_PART;
	uint64_t cycles = core_cycles(cores[0]), instructions = cores[0]->retired;
	run_at(0xffffffff81000000ull, false);
	note_task(1, 7, "other");
	cores[0]->flow += 50 * CHAIN_PART;
	run_at(0xffffffff81000100ull, false);
	note_hook(0, &(struct hook){.name = "packets"}, 60);
	cores[0]->flow += 50 * CHAIN_PART;
	run_at(0xffffffff81000110ull, false); /* nobody watches it */
	run_at(0xffffffff810002f0ull, true);  /* the end of all softirqs: net_rx returned by another way */
	run_at(0xffffffff81000300ull, false); /* nor did the interrupt's */
	EQUAL(core_cycles(cores[0]), cycles + 100);
	EQUAL(cores[0]->retired, instructions);
	on_idle(0, 0);
	on_resume(0, 0);
	cores[0]->guest = true;
	note_task(0, 9, "guest's");
	cores[0]->guest = false;
	CHECK(!strcmp(happened(), "[]\n")); /* while it runs nothing is told */
	model->window = WINDOW_CLOSED;
	model->ended_ns = model->begun_ns + 10000;
	end_time();
	CHECK(strstr(happened(), "[200,100,\"irq\",0,-1,\"timer\"],\n[250,50,\"softirq\",0,1,\"net_rx\"],\n[300,0,\"sleep\",0,-1,\"\"],\n"
				 "[300,4800,\"task\",1,9,\"guest's\"]]}"));
	/* It had not come to the part that is wanted when it was switched to: it goes on in it. */
	CHECK(strstr(happened(), "[100,5000,\"task\",0,7,\"other\"]]}"));
	CHECK(!strcmp(answer(command_timeline, "0 0 0"), "ok\n"));
}

int main(void)
{
	test_a_loop_pays_for_its_chain();
	test_what_is_seen_while_the_model_is_entered_is_forgotten();
	test_a_prefetch_asks_for_the_line_that_its_registers_point_to();
	test_a_processor_that_runs_is_interrupted_when_it_has_come_that_far();
	test_who_a_probe_waits_for_does_not_wait();
	test_a_processor_that_falls_asleep_does_not_miss_its_interrupt();
	test_what_happens_is_written_down_and_costs_nothing();
	model_free(model);
	return 0;
}
