/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What QEMU translates becomes blocks, with a callback for each event of them that the model wants to see. */
#include "plugin.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "pace.h"

/* Blocks live until the flush after the next: a core's last block is looked at once more after a flush. */
struct arena {
	struct arena *before;
	size_t used;
	struct block block[4096];
};

static pthread_mutex_t arena_lock = PTHREAD_MUTEX_INITIALIZER;
static struct arena *arena, *old_arena;

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

/* A core's last block is looked at once more after a flush: those of before the last one go. */
void forget_old_blocks(void)
{
	pthread_mutex_lock(&arena_lock);
	free_arena(old_arena);
	old_arena = arena;
	arena = NULL;
	pthread_mutex_unlock(&arena_lock);
}

static void *operand_as_data(struct operand operand)
{
	void *data;

	_Static_assert(sizeof(operand) == sizeof(data), "it goes where a pointer does");
	memcpy(&data, &operand, sizeof(data));
	return data;
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
		[SPECIAL_PREFETCH] = {profile.prefetch_software ? on_prefetch : NULL, operand_as_data(d->line)},
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

/* How long a block takes if nothing misses. */
static void take_pace(struct block *block, const struct qemu_plugin_tb *tb)
{
	static __thread struct pace pace;
	uint8_t bytes[LONGEST_INSTRUCTION + 1];

	pace_begin(&pace, &profile);
	for (size_t i = 0; i < block->instructions; i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, i);
		size_t length = qemu_plugin_insn_data(instruction, bytes, sizeof(bytes));
		pace_add(&pace, qemu_plugin_insn_vaddr(instruction), bytes, length);
	}
	pace_end(&pace, block);
}

/* Whether the block's last two instructions are taken as one. */
static bool ends_fused(const struct block *block, const struct qemu_plugin_tb *tb)
{
	uint8_t bytes[LONGEST_INSTRUCTION + 1];

	if (block->kind != BRANCH_CONDITIONAL || block->instructions < 2)
		return false;
	return effect_fuses(bytes, qemu_plugin_insn_data(qemu_plugin_tb_get_insn(tb, block->instructions - 2u), bytes, sizeof(bytes)));
}

void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
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
		block->pauses += d.special == SPECIAL_PAUSE && block->pauses < MOST_OF_A_KIND;
		block->ports += d.port && block->ports < MOST_OF_A_KIND;
		if (wanted == COUNT)
			continue;
		if (d.special)
			instrument_special(instruction, &d, block);
		if (d.special == SPECIAL_VMRUN)
			qemu_plugin_register_vcpu_mem_cb(instruction, on_injection, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_W, NULL);
		if (task_switch_pc && qemu_plugin_insn_vaddr(instruction) == task_switch_pc)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_task_switch, QEMU_PLUGIN_CB_R_REGS, NULL);
		instrument_hooks(instruction, d.kind == BRANCH_RETURN);
		watch_instruction(instruction, d.kind == BRANCH_RETURN);
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
	block->fused = ends_fused(block, tb);
	if (wanted == MODEL)
		take_pace(block, tb);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, wanted == COUNT ? on_block_counted : on_blocks(block), QEMU_PLUGIN_CB_NO_REGS, block);
}
