/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the model counts, per processor and mode. Each name is the name of a number in the measurements: the list here is the
 * only one. Counts are events; the stall_ ones are cycles of the modelled processor.
 */
#ifndef VSPROF_COUNTERS_H
#define VSPROF_COUNTERS_H

#include <stdint.h>

#define COUNTERS(X)                                                                                                                   \
	X(instructions) /* run; a REP string instruction once for each time that it is entered */                                     \
	X(loads)        /* data accesses that read */                                                                                 \
	X(stores)       /* data accesses that write */                                                                                \
	X(l1d_misses)   /* accesses whose line was not in L1D; one for each line of an access that crosses lines */                   \
	X(l1i_fetches)  /* lines asked of L1I: one for each line of each translated block */                                          \
	X(l1i_misses)                                                                                                                 \
	X(l2_accesses) /* demand: L1 misses of both kinds and of the page walker, no prefetches */                                    \
	X(l2_misses)                                                                                                                  \
	X(llc_misses)        /* demand; filled from memory or another node's cache */                                                 \
	X(llc_hits_shared)   /* L2 misses served while another core of the node held the line clean */                                \
	X(llc_hits_modified) /* L2 misses served by the modified line of another core of the node */                                  \
	X(l1d_upgrades)      /* stores to a line that other cores had to give up */                                                   \
	X(prefetches)        /* lines brought in by the prefetchers */                                                                \
	X(memory_local)      /* fills from memory of the core's own NUMA node */                                                      \
	X(memory_remote)     /* fills from memory of another node */                                                                  \
	X(remote_cache)      /* fills from a cache of another node, whose core or LLC had the line */                                 \
	X(dtlb_misses)       /* not in the first-level data TLB */                                                                    \
	X(dtlb_walks)        /* nor in the second level */                                                                            \
	X(itlb_misses)                                                                                                                \
	X(itlb_walks)                                                                                                                 \
	X(walk_references) /* page-table entries read by the walker */                                                                \
	X(walk_cycles)     /* cycles that the walker was at work */                                                                   \
	X(branches)        /* all taken or not: conditional, calls, returns, jumps */                                                 \
	X(branch_misses)                                                                                                              \
	X(flow_cycles) /* cycles that the instructions take if nothing misses, by the core's width and their blocks' chains */        \
	X(fused)       /* comparisons and the like that the core takes as one with the conditional branch behind them */              \
	X(atomics)     /* instructions with a lock prefix */                                                                          \
	X(pauses)                                                                                                                     \
	X(kernel_entries)         /* from user to kernel mode: system calls, interrupts, exceptions */                                \
	X(interrupts)             /* control arrived where no instruction had sent it: interrupts and faults */                       \
	X(vm_entries)             /* VMRUN */                                                                                         \
	X(task_switches)          /* the kernel's __switch_to */                                                                      \
	X(address_space_switches) /* CR3 loads */                                                                                     \
	X(stall_l2)               /* cycles waited for data in L2 */                                                                  \
	X(stall_llc)              /* cycles waited for data in the LLC or another core */                                             \
	X(stall_memory)           /* cycles waited for data in memory or another node's cache */                                      \
	X(stall_frontend)         /* cycles waited for instructions from beyond L1I */                                                \
	X(stall_dtlb)             /* cycles of address translation for data */                                                        \
	X(stall_itlb)             /* cycles of address translation for instructions */                                                \
	X(stall_branch)           /* cycles lost to mispredicted branches */                                                          \
	X(stall_mode)             /* cycles of mode switches, atomics, pauses, and accesses to devices */                             \
	X(ipis)                   /* interrupts that the core sent to another, one for each that it reaches */                        \
	X(io_accesses)            /* loads and stores of devices' registers but the local APIC's, IN, OUT; repeated ones each once */ \
	X(repeat_cycles)          /* cycles of repeated string instructions, beyond those of any instruction; part of the base */     \
	X(chain_cycles) /* cycles by which loops take longer than the flow, above all for chains of dependent instructions; part of the base */

struct counters {
#define X(name) uint64_t name;
	COUNTERS(X)
#undef X
};

enum {
#define X(name) COUNTER_##name,
	COUNTERS(X)
#undef X
		COUNTER_COUNT
};

extern const char *const counter_names[COUNTER_COUNT];

/* The modes counted apart. Bit 0: user. Bit 1: in a guest of the emulated host. */
enum mode { HOST_KERNEL, HOST_USER, GUEST_KERNEL, GUEST_USER, MODE_COUNT };

extern const char *const mode_names[MODE_COUNT];

/* to += more - less, counter by counter. */
void counters_add_difference(struct counters *to, const struct counters *more, const struct counters *less);

#endif
