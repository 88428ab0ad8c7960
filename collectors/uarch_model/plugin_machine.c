/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The emulated machine's memory and nodes, and a model of it. */
#include "plugin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

bool make_model(FILE *out)
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
	plan_timeline();
	model->hook_count = hook_count;
	memcpy(model->hook, hooks, sizeof(hooks));
	for (uint32_t i = 0; i < vcpu_count; i++) {
		cores[i] = model->core[i];
		cores[i]->real_pc = real_pc;
	}
	forget_what_was_seen();
	return true;
}
