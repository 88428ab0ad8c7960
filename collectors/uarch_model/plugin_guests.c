/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Address spaces of the host, and the guests that it enters and leaves. */
#include "plugin.h"

#include "qemu_interrupt.h"

/* VMCB: AMD64 Architecture Programmer's Manual vol. 2, appendix B. */
enum {
	VMCB_ASID = 0x58,
	VMCB_TLB_CONTROL = 0x5c,
	VMCB_EXIT_CODE = 0x70,
	VMCB_NP_ENABLE = 0x90,
	VMCB_EVENT_INJECTION = 0xa8,
	VMCB_N_CR3 = 0xb0,
	VMCB_CR4 = 0x548,
	VMCB_CR3 = 0x550
};
#define EVENT_VALID (1ull << 31)
#define CR4_LA57 (1ull << 12)
#define BACK_IN_HOST 500 /* instructions after #VMEXIT: KVM has loaded the host's GS again, and is not yet back in the guest */

void read_address_space(struct vcpu *vcpu, struct core *core)
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

void on_cr3(unsigned int index, void *data)
{
	(void)data;
	vcpus[index].space_unknown = true;
	/* The load itself comes after this; the next block looks. */
	cores[index]->sample_at = 0;
}

void on_cr4(unsigned int index, void *data)
{
	core_flush_all(cores[index]);
	on_cr3(index, data);
}

void on_invlpg(unsigned int index, void *data)
{
	core_forget_page(cores[index], read_register(REG_RAX + (int)(intptr_t)data));
}

static uint64_t vmcb_field(uint64_t vmcb, uint64_t offset)
{
	uint64_t value = 0;

	memory_read(&memory, vmcb + (offset & ~7ull), &value);
	return value >> (offset & 7) * 8;
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
void on_injection(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct vcpu *vcpu = &vcpus[index];

	(void)info, (void)address, (void)data;
	if (!vcpu->injected || !qemu_interrupt_mend((int)index, vcpu->vector))
		return;
	vcpu->mended++;
	__atomic_store_n(&vcpu->injected, false, __ATOMIC_RELAXED);
}

void on_vmrun(unsigned int index, void *data)
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
	vcpu->vmcb = vmcb;
	if (vmcb_field(vmcb, VMCB_TLB_CONTROL) & 0xff)
		core_flush_address_space(core, number);
	core_switch_address_space(core, &guest, number);
	core_enter(core, true);
	if (timeline_of(index))
		timeline_begin(timeline_of(index), TIMELINE_guest, false, core_time(index), NO_VALUE, NULL);
}

void leave_guest(struct vcpu *vcpu, struct core *core)
{
	struct timeline *timeline = timeline_of(core->index);

	if (timeline)
		timeline_end(timeline, TIMELINE_guest, false, core_time(core->index), (uint32_t)vmcb_field(vcpu->vmcb, VMCB_EXIT_CODE));
	core_enter(core, false);
	core_forget_blocks(core);
	core_switch_address_space(core, &vcpu->host_space, 0);
	/* A processor that is nearly always in its guest would never be found outside by chance. */
	if (vcpu->task_unknown)
		core->sample_at = core->retired + BACK_IN_HOST;
}
