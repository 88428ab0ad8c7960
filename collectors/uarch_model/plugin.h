/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of the glue to QEMU know of each other: the machine, its processors, and the functions of each plugin_*.c. */
#ifndef VSPROF_PLUGIN_H
#define VSPROF_PLUGIN_H

#include "clock.h"
#include "ipi.h"
#include "model.h"
#include "qemu_api.h"

enum state { OFF, COUNT, MODEL };

struct vcpu {
	uint64_t counted;   /* instructions in state COUNT */
	bool space_unknown; /* CR3 was loaded: read it before the next block */
	bool task_unknown;  /* no task switch was seen yet */
	bool injected;      /* in its guest, which was entered with an interrupt; see safe_to_change */
	int32_t vector;     /* of that interrupt */
	uint64_t injections, mended;
	uint64_t landing;          /* where the host goes on after #VMEXIT */
	uint64_t vmcb;             /* of the guest */
	struct repeated repeating; /* MOVS or STOS, as it began; `bytes` is 0 if none does */
	struct address_space host_space;
	uint32_t slow_accesses;
	uint64_t checked, wrong; /* translations compared with QEMU's */
	/* Modelled time: it was `time_base` when the core had taken `cycles_base` cycles. */
	bool asleep;
	int64_t time_base;
	uint64_t cycles_base, cycles_reported, retired_reported;
	uint64_t report_at;  /* `retired` at which it reports to the clock */
	bool probe;          /* the task that runs is one of a window's probes */
	bool free;           /* and so it takes no modelled time now */
	bool errand;         /* it is to go on for a probe that spins, without waiting for the clock */
	uint64_t errand_end; /* `retired` up to which it does */
	uint64_t pauses;     /* of the host's kernel, when it last reported as a probe */
};

extern qemu_plugin_id_t plugin_id;
extern uint32_t vcpu_count;
extern struct vcpu vcpus[MOST_CORES];
extern struct model *model;
extern struct core *cores[MOST_CORES]; /* the model's, one load nearer */

/* What the next model is made of: told by commands while none runs. */
extern struct profile profile;
extern bool profile_known;
extern struct memory memory;
extern uint32_t sample_every;
extern struct hook hooks[MOST_HOOKS];
extern uint32_t hook_count;
extern struct node {
	uint64_t begin; /* physical address */
	uint64_t cpus;  /* a bit each */
} nodes[MOST_NODES];
extern uint32_t node_count;
extern uint64_t task_switch_pc, current_task_at, task_id_offset, task_name_offset, task_priority_offset;

extern enum state state, wanted;
extern bool change_wanted;

/*
 * Modelled time passes in the state MODEL, once it was wanted. From its first begin on QEMU's clocks are ours: in other states they go
 * on from where modelled time ended, at the speed of real time.
 */
extern struct modelled {
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
extern struct clock machine_clock;
extern struct ipi ipis; /* between processors, in modelled time */
/*
 * Before a window's begin and behind its end probes are read. They have a priority that nothing else has, and what they do takes no
 * modelled time. The other processors wait meanwhile, because the clock stands still: reading a counter does not change what it counts.
 */
#define PROBES_PRIORITY 101 /* task_struct's static_prio of niceness -19 */
extern bool probing;

/* plugin_registers.c */

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

uint64_t read_register(int which);

/* plugin_guests.c */

void read_address_space(struct vcpu *vcpu, struct core *core);
void leave_guest(struct vcpu *vcpu, struct core *core);
void on_cr3(unsigned int index, void *data);
void on_cr4(unsigned int index, void *data);
void on_invlpg(unsigned int index, void *data);
void on_vmrun(unsigned int index, void *data);
void on_injection(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address, void *data);

/* plugin_kernel.c */

/* The address at which the block that runs was entered. */
uint64_t real_pc(struct core *core);
void find_task(struct vcpu *vcpu, struct core *core, uint32_t index);
void on_task_switch(unsigned int index, void *data);
void on_hook(unsigned int index, void *data);
void on_mark(unsigned int index, void *data);

/* A task's id, name and priority. */
struct who {
	uint32_t id, priority;
	char name[TASK_NAME];
};
/* Returns false where its memory, or that of its address, is not mapped. */
bool read_virtual(struct core *core, uint64_t address, uint64_t *value);
bool read_who(struct core *core, uint64_t task, struct who *who);

/* plugin_timeline.c */

/* NULL: nothing is written down now. */
struct timeline *timeline_of(uint32_t index);
void plan_timeline(void);
void watch_instruction(struct qemu_plugin_insn *instruction, bool returns);
void note_task(uint32_t index, uint32_t id, const char *name);
void note_hook(uint32_t index, const struct hook *hook, uint32_t value);
void command_watch(const char *arguments, FILE *out);
void command_timeline(const char *arguments, FILE *out);
void command_events(FILE *out);

/* plugin_time.c */

/* Where processor `index` is in modelled time. For its own thread. */
int64_t core_time(uint32_t index);

int64_t present_clock(void);
void settle_free(struct vcpu *vcpu, struct core *core);
void report_time(struct vcpu *vcpu, struct core *core, uint32_t index);
void begin_modelled_time(void);
void end_modelled_time(void);
void on_idle(qemu_plugin_id_t id, unsigned int index);
void on_resume(qemu_plugin_id_t id, unsigned int index);

/* plugin_run.c */

#define REAL_MODE_END 0x110000 /* below it segments have bases, and a repeated string instruction's registers are no addresses */
#define REPEAT_LOADS 0x100     /* in the data of on_repeat: MOVS, not STOS */

void on_repeat(unsigned int index, void *data);
/* Its data is the operand itself. */
void on_prefetch(unsigned int index, void *data);
void on_block_counted(unsigned int index, void *data);
/* The function for blocks of this kind. */
qemu_plugin_vcpu_udata_cb_t on_blocks(const struct block *block);
/* By the binary logarithm of the bytes. */
extern const qemu_plugin_vcpu_mem_cb_t on_load[5], on_store[5];

/* plugin_translate.c */

void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
/* No translated code is left. */
void forget_old_blocks(void);

/* plugin_changes.c */

void begin_change(enum state to);
/* Wait a little for a change that was begun. Returns whether it is done. */
bool wait_for_change(void);
void change_if_safe(uint32_t index);
void note_exit(struct vcpu *vcpu);
void forget_what_was_seen(void);

/* plugin_machine.c */

/* Without it the reason is written to `out`. */
bool make_model(FILE *out);

/* plugin_commands.c */

void handle(char *line, FILE *out);

#endif
