/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What answers for L1 and the first-level TLBs: see core.h. Whatever takes a line or a page away takes it out of here. */
#include "core_parts.h"

void filters_clear_pages(struct core *core)
{
	for (int i = 0; i < PAGE_FILTER_SETS; i++)
		core->page_filter[i].page = UINT64_MAX;
	for (int i = 0; i < CODE_PAGES; i++)
		core->code_page[i].page = UINT64_MAX;
	core->code_line = UINT64_MAX;
}

void filters_clear(struct core *core)
{
	for (int i = 0; i < FILTER_SETS; i++) {
		core->data_filter[i].line = core->data_filter[i].store_line = FILTER_EMPTY;
		core->code_filter[i].line = core->code_filter[i].store_line = FILTER_EMPTY;
	}
	filters_clear_pages(core);
}

/* A slot of L1 gets another line, or none. */
void filter_forget_slot(struct filter_entry *filter, const uint16_t *filtered, const struct cache *cache, size_t slot)
{
	struct filter_entry *entry = &filter[filtered[slot] % FILTER_SETS];

	if (entry->stamp == &cache->stamps[slot]) {
		__atomic_store_n(&entry->line, FILTER_EMPTY, __ATOMIC_RELAXED);
		__atomic_store_n(&entry->store_line, FILTER_EMPTY, __ATOMIC_RELAXED);
	}
}

void filter_remember_slot(struct filter_entry *filter, uint16_t *filtered, const struct cache *cache, const slot_t *slot, uint64_t line,
	struct tlb_entry *page, bool writable)
{
	size_t at = (size_t)(slot - cache->slots);
	uint16_t set = (uint16_t)filter_set(line);

	/* Gone at once: to bring it in, a very small LLC had to drop it again, or another core took it in between. */
	if (!*slot)
		return;
	/* Under another virtual address, or as another process's. */
	if (filtered[at] != set)
		filter_forget_slot(filter, filtered, cache, at);
	filtered[at] = set;
	page->filtered |= 1ull << set / FILTER_PART;
	filter[set] = (struct filter_entry){
		.line = line,
		.store_line = writable ? line : FILTER_EMPTY,
		.stamp = &cache->stamps[at],
		.page = page,
	};
	/* Another core may have taken the line, or made it shared, before it could see here who knows of it. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	slot_t now = __atomic_load_n(slot, __ATOMIC_RELAXED);
	if (!now)
		filter_forget_slot(filter, filtered, cache, at);
	else if (slot_state(now) != LINE_MODIFIED)
		filter[set].store_line = FILTER_EMPTY;
}

/* No filter may vouch for the page of `entry` any longer; `parts` is where. */
void filter_forget_lines(struct filter_entry *filter, const struct tlb_entry *entry, uint64_t parts)
{
	for (; parts; parts &= parts - 1) {
		struct filter_entry *part = &filter[__builtin_ctzll(parts) * FILTER_PART];
		for (int i = 0; i < FILTER_PART; i++)
			if (part[i].page == entry)
				part[i].line = part[i].store_line = FILTER_EMPTY;
	}
}

/* The filters' lines that pages of one TLB vouch for: those of an address space that ends, but for the global ones. */
void filter_forget_space(struct filter_entry *filter, struct tlb *tlb, uint16_t number)
{
	for (uint32_t i = 0; i < tlb->sets * tlb->ways; i++) {
		struct tlb_entry *entry = &tlb->entries[i];
		if (!entry->filtered || entry->generation == TLB_GLOBAL || entry->key >> 52 != (number & 0xfff))
			continue;
		filter_forget_lines(filter, entry, entry->filtered);
		entry->filtered = 0;
	}
}

/* INVLPG, as far as the filters are concerned. */
void filter_forget_page(struct filter_entry *filter, const struct tlb tlb[PAGE_SIZES], uint64_t address, struct tlb_context context)
{
	for (int size = 0; size < PAGE_SIZES; size++) {
		const struct tlb_entry *entry = tlb_find(&tlb[size], address, (enum page_size)size, context);
		if (entry)
			filter_forget_lines(filter, entry, entry->filtered);
	}
}
