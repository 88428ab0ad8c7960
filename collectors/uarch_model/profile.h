/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The modelled processor's parameters. profile.py makes a flat text of a YAML profile, one "key value" a line; this reads it.
 * The keys below are the whole list; each must be given exactly once.
 */
#ifndef VSPROF_PROFILE_H
#define VSPROF_PROFILE_H

#include <stddef.h>
#include <stdint.h>

struct cache_shape {
	uint32_t sets, ways;
	uint32_t latency; /* cycles from load to use */
};

struct tlb_shape {
	uint32_t entries, ways; /* 0 entries: there is none for this page size */
};

enum page_size { PAGE_4K, PAGE_2M, PAGE_1G, PAGE_SIZES };

/* Where lines go that the LLC learns of. */
enum llc_policy { LLC_INCLUSIVE, LLC_NON_INCLUSIVE, LLC_VICTIM };

/* A list, one key a line. */
/* clang-format off */
#define PROFILE_KEYS(X)                                                                                                       \
	X(core_width, "core.width")                 /* instructions a cycle at most */                                               \
	X(core_rob, "core.rob")                     /* reorder buffer: instructions in flight */                                     \
	X(core_mispredict, "core.mispredict")       /* cycles */                                                                     \
	X(core_fetch_ahead, "core.fetch_ahead")     /* cycles by which code is asked for before it is needed */                      \
	X(core_line_ops, "core.line_ops")           /* of a line of code: delivered at once; 0: as many as there are */              \
	X(core_line_cycles, "core.line_cycles")     /* for each further group of so many */                                          \
	X(core_call_cycles, "core.call_cycles")     /* a call or a return takes so long in the front end */                          \
	X(core_taken_permille, "core.taken_permille") /* and another taken branch or a further line, of a cycle */                                     \
	X(core_chain_permille, "core.chain_permille") /* of what a block's chain takes longer than its flow, the part not hidden, fitted */ \
	X(core_exposed_l2_permille, "core.exposed_l2_permille")   /* of an L2 hit's extra latency, the part not hidden, fitted */    \
	X(core_overlap_permille, "core.overlap_permille")         /* of a long miss in another's shadow, the part paid, fitted */    \
	X(core_vector_store_permille, "core.vector_store_permille") /* of a cycle, for 32 bytes */                                            \
	X(l1i_sets, "l1i.sets") X(l1i_ways, "l1i.ways") X(l1i_latency, "l1i.latency")                                                \
	X(l1d_sets, "l1d.sets") X(l1d_ways, "l1d.ways") X(l1d_latency, "l1d.latency")                                                \
	X(l1d_fill_buffers, "l1d.fill_buffers") /* lines that prefetch instructions can have under way to it */                      \
	X(l2_sets, "l2.sets") X(l2_ways, "l2.ways") X(l2_latency, "l2.latency")                                                      \
	X(l2_line_cycles, "l2.line_cycles")         /* that L1D does nothing else while a line comes from L2 */                      \
	X(llc_sets, "llc.sets")                     /* of all slices together; need not be a power of two */                         \
	X(llc_ways, "llc.ways") X(llc_latency, "llc.latency")                                                                        \
	X(llc_policy, "llc.policy")                 /* 0 inclusive, 1 non-inclusive, 2 victim */                                     \
	X(llc_latency_shared, "llc.latency_shared")     /* clean in another core */                                                  \
	X(llc_latency_modified, "llc.latency_modified") /* modified in another core */                                               \
	X(memory_latency_local, "memory.latency_local") X(memory_latency_remote, "memory.latency_remote")                            \
	X(memory_latency_remote_cache, "memory.latency_remote_cache") /* in a cache of another node */                               \
	X(memory_line_cycles, "memory.line_cycles") /* cycles from one line to the next where one core reads many; 0: no limit */    \
	X(dtlb_4k_entries, "dtlb.4k.entries") X(dtlb_4k_ways, "dtlb.4k.ways")                                                        \
	X(dtlb_2m_entries, "dtlb.2m.entries") X(dtlb_2m_ways, "dtlb.2m.ways")                                                        \
	X(dtlb_1g_entries, "dtlb.1g.entries") X(dtlb_1g_ways, "dtlb.1g.ways")                                                        \
	X(itlb_4k_entries, "itlb.4k.entries") X(itlb_4k_ways, "itlb.4k.ways")                                                        \
	X(itlb_2m_entries, "itlb.2m.entries") X(itlb_2m_ways, "itlb.2m.ways")                                                        \
	X(stlb_entries, "stlb.entries") X(stlb_ways, "stlb.ways") X(stlb_latency, "stlb.latency")                                    \
	X(stlb_1g_entries, "stlb.1g.entries") X(stlb_1g_ways, "stlb.1g.ways")                                                        \
	X(stlb_code_entries, "stlb.code.entries") X(stlb_code_ways, "stlb.code.ways") /* 0: code shares stlb.entries */              \
	X(walk_pde_entries, "walk.pde_entries")     /* paging-structure caches, fully associative */                                 \
	X(walk_pdpte_entries, "walk.pdpte_entries")                                                                                  \
	X(walk_pml4e_entries, "walk.pml4e_entries")                                                                                  \
	X(walk_nested_entries, "walk.nested_entries") /* guest-physical to host-physical */                                          \
	X(walk_fixed, "walk.fixed")                 /* cycles to start a walk */                                                     \
	X(walk_exposed_permille, "walk.exposed_permille") /* of a walk's cycles, the part not hidden */                              \
	X(branch_history, "branch.history")         /* bits of global history */                                                     \
	X(branch_bimodal_bits, "branch.bimodal_bits") /* log2 of the entries */                                                      \
	X(branch_global_bits, "branch.global_bits") /* log2 of the entries */                                                        \
	X(branch_target_bits, "branch.target_bits") /* log2 of the entries that predict indirect jumps */                            \
	X(branch_return_stack, "branch.return_stack")                                                                                \
	X(cost_kernel_entry, "cost.kernel_entry")   /* cycles, both ways together */                                                 \
	X(cost_interrupt, "cost.interrupt")         /* beyond the kernel entry */                                                    \
	X(cost_ipi, "cost.ipi")                     /* from one core's request to the other's interrupt, beyond cost.interrupt */    \
	X(cost_vm_entry, "cost.vm_entry")           /* VMRUN and the exit that ends it */                                            \
	X(cost_atomic, "cost.atomic") X(cost_pause, "cost.pause")                                                                    \
	X(cost_rdtsc, "cost.rdtsc") X(cost_lfence, "cost.lfence") X(cost_mfence, "cost.mfence") X(cost_popf, "cost.popf")            \
	X(cost_xsave, "cost.xsave") X(cost_xrstor, "cost.xrstor") /* with and without their suffixes, and FXSAVE, FXRSTOR */         \
	X(cost_wrfsbase, "cost.wrfsbase")           /* WRFSBASE, WRGSBASE */                                                         \
	X(cost_apic, "cost.apic")                   /* access to a register of the core's own local APIC */                          \
	X(cost_mmio, "cost.mmio") X(cost_mmio_write, "cost.mmio_write") /* a load, a store of a device's register */                 \
	X(cost_port_io, "cost.port_io")             /* IN, OUT */                                                                    \
	/* A repeated MOVS or STOS: cycles of one of so many bytes at most; of a longer one to start, and its bytes a cycle */       \
	X(cost_repeat_short_bytes, "cost.repeat_short_bytes") X(cost_repeat_short, "cost.repeat_short")                              \
	X(cost_repeat_start, "cost.repeat_start") X(cost_repeat_bytes, "cost.repeat_bytes")                                          \
	/* Idle states, in ns: how long it must last for the state to be taken, how long it takes to wake; no latency: no such state */\
	X(idle_c1_residency, "idle.c1.residency_ns") X(idle_c1_latency, "idle.c1.latency_ns")                                        \
	X(idle_c1e_residency, "idle.c1e.residency_ns") X(idle_c1e_latency, "idle.c1e.latency_ns")                                    \
	X(idle_c2_residency, "idle.c2.residency_ns") X(idle_c2_latency, "idle.c2.latency_ns")                                        \
	X(idle_c3_residency, "idle.c3.residency_ns") X(idle_c3_latency, "idle.c3.latency_ns")                                        \
	X(idle_c6_residency, "idle.c6.residency_ns") X(idle_c6_latency, "idle.c6.latency_ns")                                        \
	X(prefetch_l1i_next, "prefetch.l1i_next")   /* 1: the line after a missed line of code */                                    \
	X(prefetch_l2_adjacent, "prefetch.l2_adjacent") /* 1: the other line of the 128-byte pair */                                 \
	X(prefetch_l2_stream, "prefetch.l2_stream") /* lines ahead of a stream within its page; 0: none */                           \
	X(prefetch_l1_stream, "prefetch.l1_stream") /* lines ahead of a stream of loads, into L1D; 0: none */                        \
	X(prefetch_software, "prefetch.software")   /* 1: prefetch instructions are obeyed */                                        \
	X(model_page_walks, "model.page_walks")     /* 0: pages are taken as 4 KiB, walks cost walk.fixed */                         \
	X(model_branches, "model.branches")                                                                                          \
	X(model_coherence, "model.coherence")       /* 0: cores never take lines from each other */                                  \
	X(model_idle_states, "model.idle_states")   /* 0: a processor that wakes goes on at once */
/* clang-format on */

struct profile {
#define X(field, key) uint32_t field;
	PROFILE_KEYS(X)
#undef X
};

/*
 * Read `text` into `profile`. Returns 0; or -1 with `error` naming the key and what is wrong with it (unknown, missing, twice,
 * not a number, out of range).
 */
int profile_parse(const char *text, struct profile *profile, char *error, size_t size);

#endif
