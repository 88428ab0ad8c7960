/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "chain.h"

#include <string.h>

#define SETTLING_ROUNDS 4

void chain_begin(struct chain *chain)
{
	chain->count = chain->vector_stores = 0;
	chain->known = true;
}

void chain_add(struct chain *chain, const uint8_t *bytes, size_t length)
{
	struct effect effect = effect_of(bytes, length);

	if (!effect.known || chain->count == CHAIN_MOST) {
		chain->known = false;
		return;
	}
	if (effect.stores_vector)
		chain->vector_stores++;
	else if (effect.writes)
		chain->effect[chain->count++] = effect;
}

/* When the last of these places is ready. */
static uint32_t latest(const uint32_t *ready, uint64_t places)
{
	uint32_t last = 0;

	for (; places; places &= places - 1) {
		uint32_t one = ready[__builtin_ctzll(places)];
		last = one > last ? one : last;
	}
	return last;
}

static void once_round(const struct chain *chain, uint32_t load, uint32_t *ready)
{
	for (uint32_t i = 0; i < chain->count; i++) {
		const struct effect *e = &chain->effect[i];
		uint32_t operands = latest(ready, e->reads), data = e->loads ? latest(ready, e->address) + load : 0;
		uint32_t done = (operands > data ? operands : data) + e->latency;
		for (uint64_t to = e->writes; to; to &= to - 1)
			ready[__builtin_ctzll(to)] = done;
	}
}

uint32_t chain_once(const struct chain *chain, const struct profile *profile)
{
	uint32_t ready[PLACES] = {0}, most = 0;

	once_round(chain, profile->l1d_latency, ready);
	for (int i = 0; i < PLACES; i++)
		most = ready[i] > most ? ready[i] : most;
	return most;
}

uint32_t chain_condition(const struct chain *chain, const struct profile *profile)
{
	uint32_t ready[PLACES] = {0};

	once_round(chain, profile->l1d_latency, ready);
	return latest(ready, IN_ALL_FLAGS);
}

uint32_t chain_cycles(const struct chain *chain, const struct profile *profile)
{
	uint32_t ready[PLACES] = {0}, before[PLACES], load = profile->l1d_latency;
	uint32_t most = chain->vector_stores * CHAIN_ROUNDS * profile->core_vector_store_permille / 1000;

	if (!chain->known)
		return 0;
	for (int i = 0; i < SETTLING_ROUNDS; i++)
		once_round(chain, load, ready);
	memcpy(before, ready, sizeof(before));
	for (int i = 0; i < CHAIN_ROUNDS; i++)
		once_round(chain, load, ready);
	for (int i = 0; i < PLACES; i++)
		most = ready[i] - before[i] > most ? ready[i] - before[i] : most;
	return most;
}
