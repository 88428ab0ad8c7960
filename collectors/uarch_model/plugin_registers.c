/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers of the processor whose thread asks, by QEMU's names. */
#include "plugin.h"

#include <string.h>

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

uint64_t read_register(int which)
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
