/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tlb.h"

#include <stdlib.h>

bool tlb_init(struct tlb *tlb, uint32_t entries, uint32_t ways)
{
	tlb->ways = ways;
	tlb->sets = ways ? entries / ways : 0;
	tlb->entries = calloc(entries ? entries : 1, sizeof(struct tlb_entry));
	if (tlb->entries)
		tlb_clear(tlb);
	return tlb->entries != NULL;
}

void tlb_free(struct tlb *tlb)
{
	free(tlb->entries);
	tlb->entries = NULL;
}

void tlb_clear(struct tlb *tlb)
{
	for (uint32_t i = 0; i < tlb->sets * tlb->ways; i++)
		tlb->entries[i] = (struct tlb_entry){.key = TLB_EMPTY};
}

static inline uint64_t key_of(uint64_t address, enum page_size size, uint16_t space)
{
	/* A page number has 52 bits at most. The size is not part of the key: it is compared beside it. */
	return address >> page_shift[size] | (uint64_t)(space & 0xfff) << 52;
}

static inline struct tlb_entry *set_of(const struct tlb *tlb, uint64_t address, enum page_size size)
{
	return tlb->entries + (size_t)((address >> page_shift[size]) & (tlb->sets - 1)) * tlb->ways;
}

static inline bool current(const struct tlb_entry *entry, struct tlb_context context)
{
	return entry->generation == context.generation || entry->generation == TLB_GLOBAL;
}

struct tlb_entry *tlb_find(const struct tlb *tlb, uint64_t address, enum page_size size, struct tlb_context context)
{
	if (!tlb->sets)
		return NULL;
	uint64_t key = key_of(address, size, context.space);
	struct tlb_entry *set = set_of(tlb, address, size);

	for (uint32_t i = 0; i < tlb->ways; i++)
		if (set[i].key == key && set[i].size == size && current(&set[i], context))
			return &set[i];
	return NULL;
}

bool tlb_holds(const struct tlb_entry *entry, uint64_t address, uint16_t space)
{
	return entry->key == key_of(address, entry->size, space);
}

struct tlb_entry *tlb_insert(struct tlb *tlb, uint64_t address, const struct tlb_entry *translation, struct tlb_context context,
	uint64_t stamp, struct tlb_entry *evicted)
{
	if (!tlb->sets)
		return NULL;
	enum page_size size = translation->size;
	struct tlb_entry *set = set_of(tlb, address, size), *oldest = set;

	for (uint32_t i = 0; i < tlb->ways; i++) {
		if (set[i].key == TLB_EMPTY) {
			oldest = &set[i];
			break;
		}
		if (set[i].stamp < oldest->stamp)
			oldest = &set[i];
	}
	*evicted = *oldest;
	*oldest = *translation;
	oldest->key = key_of(address, size, context.space);
	oldest->stamp = stamp;
	return oldest;
}

void tlb_forget(struct tlb *tlb, uint64_t address, struct tlb_context context)
{
	for (int size = 0; size < PAGE_SIZES; size++) {
		struct tlb_entry *entry = tlb_find(tlb, address, (enum page_size)size, context);
		if (entry)
			entry->key = TLB_EMPTY;
	}
}

void tlb_forget_space(struct tlb *tlb, uint16_t space)
{
	for (uint32_t i = 0; i < tlb->sets * tlb->ways; i++)
		if (tlb->entries[i].key >> 52 == (space & 0xfff))
			tlb->entries[i].key = TLB_EMPTY;
}
