/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What runs: blocks, their loads and stores, and repeated string instructions. */
#include "plugin.h"

#include <string.h>

#include "decode.h"

#define CHECK_EVERY 1024 /* slow accesses between two comparisons of our translation with QEMU's */

/*
 * A repeated MOVS or STOS begins. Kernels copy and clear most of their memory by these, byte by byte: to be called for each would take
 * longer than all else. Where it ended, by itself, by a fault or by an interrupt, the next block learns of the register.
 *
 * While the model is being entered, code that was translated before runs on unseen: there the next block that is seen may come much
 * later, and find in the register another address, which would make a repetition of up to 2^64 bytes. So none is begun before all is seen.
 */
void on_repeat(unsigned int index, void *data)
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

/* QEMU takes it for a NOP, and reports no access. */
void on_prefetch(unsigned int index, void *data)
{
	struct operand line;

	if (state != MODEL)
		return;
	memcpy(&line, &data, sizeof(line));
	uint64_t address = (uint64_t)(int64_t)line.displacement;
	if (line.base != NO_REGISTER)
		address += read_register(REG_RAX + line.base);
	if (line.index != NO_REGISTER)
		address += read_register(REG_RAX + line.index) * line.scale;
	core_prefetch(cores[index], address, line.way & ASK_OWN, line.way & ASK_FAR);
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
qemu_plugin_vcpu_udata_cb_t on_blocks(const struct block *block)
{
	static const qemu_plugin_vcpu_udata_cb_t all[3][2] = {
		{on_block, on_line}, {on_conditional_block, on_conditional_line}, {on_loop, on_loop_line}};
	bool one_line = block->pc >> LINE_SHIFT == (block_next(block) - 1) >> LINE_SHIFT;

	return all[block->chain ? 2 : block->kind == BRANCH_CONDITIONAL][one_line];
}

void on_block_counted(unsigned int index, void *data)
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

const qemu_plugin_vcpu_mem_cb_t on_load[] = {on_load_1, on_load_2, on_load_4, on_load_8, on_load_16},
				on_store[] = {on_store_1, on_store_2, on_store_4, on_store_8, on_store_16};
