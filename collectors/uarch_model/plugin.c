/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's side of the model: what QEMU translates becomes blocks, what it executes drives the cores. All state that is measured
 * lives in model.c and below; plugin*.c are only the glue, and the changes between off, count and model.
 */
#include <string.h>

#include "control.h"
#include "plugin.h"

QEMU_EXPORT int qemu_plugin_version = QEMU_API_VERSION;
QEMU_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv);

qemu_plugin_id_t plugin_id;
uint32_t vcpu_count;
struct vcpu vcpus[MOST_CORES];
struct model *model;
struct core *cores[MOST_CORES];
struct profile profile;
bool profile_known;
struct memory memory;
uint32_t sample_every = 20000;
struct hook hooks[MOST_HOOKS];
uint32_t hook_count;
struct node nodes[MOST_NODES];
uint32_t node_count;
uint64_t task_switch_pc, current_task_at, task_id_offset, task_name_offset, task_priority_offset;
enum state state, wanted;
bool change_wanted;
struct modelled modelled;
struct clock machine_clock;
struct ipi ipis;
bool probing;

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
