/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set-associative TLB with true LRU by stamps. Entries are tagged with an address-space number (0: the host; else the ASID of
 * a guest) and a generation: loading CR3 makes a new generation, which outdates all entries but those of global pages.
 */
#ifndef VSPROF_TLB_H
#define VSPROF_TLB_H

#include <stdbool.h>
#include <stdint.h>

#include "profile.h"

#define TLB_GLOBAL 0 /* the generation that never ends */
#define TLB_EMPTY UINT64_MAX

static const uint8_t page_shift[PAGE_SIZES] = {12, 21, 30};

struct tlb_entry {
	uint64_t key;      /* virtual page number and address space */
	uint64_t frame;    /* physical address of the page */
	uint64_t stamp;    /* time of last use */
	uint64_t filtered; /* the parts of a core's filter that may have lines of the page: a bit each */
	uint32_t generation;
	uint8_t size;
	bool memory; /* RAM, and not a device */
	bool device; /* not RAM; where it is not known what a page is, it is neither */
};

struct tlb {
	uint32_t sets, ways;
	struct tlb_entry *entries;
};

/* Whose pages are looked up, and when. */
struct tlb_context {
	uint16_t space;
	uint32_t generation;
};

bool tlb_init(struct tlb *tlb, uint32_t entries, uint32_t ways);
void tlb_free(struct tlb *tlb);
void tlb_clear(struct tlb *tlb);

/* The entry for the page of `size` that holds `address`, or NULL. Does not count as a use. */
struct tlb_entry *tlb_find(const struct tlb *tlb, uint64_t address, enum page_size size, struct tlb_context context);
/* Whether an entry that was found for a page of its size is still that page's. */
bool tlb_holds(const struct tlb_entry *entry, uint64_t address, uint16_t space);
/* Put in a translation in the place of the set's oldest one, which goes to `evicted`; returns its entry. NULL: there is no TLB. */
struct tlb_entry *tlb_insert(struct tlb *tlb, uint64_t address, const struct tlb_entry *translation, struct tlb_context context,
	uint64_t stamp, struct tlb_entry *evicted);
/* Forget the page that holds `address` in all sizes (INVLPG). */
void tlb_forget(struct tlb *tlb, uint64_t address, struct tlb_context context);
/* Forget all pages of an address space, the global ones too. */
void tlb_forget_space(struct tlb *tlb, uint16_t space);

#endif
