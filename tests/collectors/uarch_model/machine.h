/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A small machine of the model's own cores, for sequences by hand. */
#ifndef VSPROF_TEST_MACHINE_H
#define VSPROF_TEST_MACHINE_H

#include "core.h"
#include "tables.h"

struct machine {
	struct profile profile;
	struct ram ram;
	struct uncore uncore;
	struct core *core[MOST_CORES];
};

/* Without walks a virtual address is a physical one, and all of it is memory. */
static inline struct machine *machine_new(const struct profile *profile, uint32_t core_count)
{
	struct machine *machine = calloc(1, sizeof(*machine));

	CHECK(machine);
	machine->profile = *profile;
	machine->ram = ram_new(8ull << 20);
	CHECK(uncore_init(&machine->uncore, &machine->profile, core_count));
	for (uint32_t i = 0; i < core_count; i++) {
		machine->core[i] = machine->uncore.core[i] = core_new();
		CHECK(machine->core[i] && core_init(machine->core[i], &machine->profile, &machine->uncore, i, ram_memory(&machine->ram)));
	}
	return machine;
}

static inline void machine_free(struct machine *machine)
{
	for (uint32_t i = 0; i < machine->uncore.core_count; i++) {
		core_free(machine->core[i]);
		free(machine->core[i]);
	}
	uncore_free(&machine->uncore);
	free(machine->ram.bytes);
	free(machine);
}

static inline struct profile profile_without_walks(void)
{
	struct profile profile = default_profile();

	profile.model_page_walks = 0;
	return profile;
}

static inline bool load(struct core *core, uint64_t address)
{
	return core_access(core, address, false);
}

static inline void store(struct core *core, uint64_t address)
{
	core_access(core, address, true);
}

/* Two instructions a cycle. */
#define FLOW(instructions) ((uint16_t)((instructions) * CHAIN_PART / 2))

/* A block of 10 instructions at `pc` that nothing ends. */
static inline struct block plain_block(uint64_t pc, uint16_t length)
{
	return (struct block){.pc = pc, .length = length, .instructions = 10, .flow = FLOW(10), .user = !(pc >> 63), .way = !(pc >> 63)};
}

/* The counters of all modes together. */
static inline struct counters all_counters(const struct core *core)
{
	struct counters sum = {0}, none = {0};

	for (int mode = 0; mode < MODE_COUNT; mode++)
		counters_add_difference(&sum, &core->counters[mode], &none);
	return sum;
}

#endif
