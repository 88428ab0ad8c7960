/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "uncore.h"

#include <string.h>

#include "core.h"

bool uncore_init(struct uncore *uncore, const struct profile *profile, uint32_t core_count)
{
    memset(uncore, 0, sizeof(*uncore));
    uncore->profile = profile;
    uncore->core_count = core_count;
    uncore->node_count = 1;
    return core_count <= MOST_CORES && cache_init(&uncore->llc[0].cache, profile->llc_sets, profile->llc_ways);
}

void uncore_free(struct uncore *uncore)
{
    for (uint32_t i = 0; i < uncore->node_count; i++)
        cache_free(&uncore->llc[i].cache);
}

static uint8_t *lock(struct llc *llc, uint64_t line)
{
    /* One lock for all lines of a set: as cache.c, by 32 bits. */
    uint8_t *held = &llc->locks[((uint32_t)line % llc->cache.sets) % LLC_LOCKS];

    while (__atomic_test_and_set(held, __ATOMIC_ACQUIRE))
        __builtin_ia32_pause();
    return held;
}

static void unlock(uint8_t *held)
{
    __atomic_clear(held, __ATOMIC_RELEASE);
}

static uint64_t tick(struct llc *llc)
{
    uint64_t now = __atomic_load_n(&llc->now, __ATOMIC_RELAXED) + 1;

    __atomic_store_n(&llc->now, now, __ATOMIC_RELAXED);
    return now;
}

static uint32_t node_of_line(const struct uncore *uncore, uint64_t line)
{
    uint32_t node = uncore->node_count - 1;

    while (node > 0 && line < uncore->node_begin[node])
        node--;
    return node;
}

/* Ask the other cores for the line; they give it up if it is to be owned. Returns the strongest state any of them had. */
static enum line_state snoop(struct uncore *uncore, uint32_t index, uint64_t line, bool own)
{
    enum line_state strongest = LINE_INVALID;

    if (!uncore->profile->model_coherence)
        return strongest;
    for (uint32_t i = 0; i < uncore->core_count; i++) {
        if (i == index)
            continue;
        enum line_state state = core_snooped(uncore->core[i], line, own);
        if (state > strongest)
            strongest = state;
    }
    return strongest;
}

/* An inclusive LLC drops no line that a core keeps: the cores drop it too. */
static void drop_everywhere(struct uncore *uncore, uint32_t node, uint64_t line)
{
    for (uint32_t i = 0; i < uncore->core_count; i++)
        if (uncore->node_of_core[i] == node)
            core_snooped(uncore->core[i], line, true);
}

static void keep(struct uncore *uncore, uint32_t node, uint64_t line, enum line_state state)
{
    struct llc *llc = &uncore->llc[node];
    uint8_t *held = lock(llc, line);
    slot_t evicted = 0;

    if (!cache_touch(&llc->cache, line, tick(llc)))
        cache_insert(&llc->cache, line, state, tick(llc), &evicted);
    unlock(held);
    if (evicted && uncore->profile->llc_policy == LLC_INCLUSIVE)
        drop_everywhere(uncore, node, slot_line(evicted));
}

/* Whether the LLC had the line. A victim cache gives it away, the others keep it. */
static bool look_up(struct uncore *uncore, uint32_t node, uint64_t line)
{
    struct llc *llc = &uncore->llc[node];
    uint8_t *held = lock(llc, line);
    bool hit = uncore->profile->llc_policy == LLC_VICTIM ? cache_remove(&llc->cache, line) != LINE_INVALID
                                                         : cache_touch(&llc->cache, line, tick(llc)) != NULL;

    unlock(held);
    return hit;
}

enum served uncore_request(struct uncore *uncore, uint32_t index, uint64_t line, bool own, enum line_state *state)
{
    uint32_t node = uncore->node_of_core[index];
    enum line_state others = snoop(uncore, index, line, own);
    bool hit = look_up(uncore, node, line);

    *state = own ? LINE_MODIFIED : others == LINE_INVALID ? LINE_EXCLUSIVE : LINE_SHARED;
    if (!hit && uncore->profile->llc_policy != LLC_VICTIM)
        keep(uncore, node, line, LINE_SHARED);
    if (others == LINE_MODIFIED)
        return SERVED_MODIFIED;
    /* A line that one core holds exclusive may have been written: that core must be asked, which takes longer than the LLC. */
    if (others == LINE_EXCLUSIVE || (others == LINE_SHARED && !hit))
        return SERVED_SHARED;
    if (hit)
        return SERVED_LLC;
    return node_of_line(uncore, line) == node ? SERVED_LOCAL : SERVED_REMOTE;
}

bool uncore_upgrade(struct uncore *uncore, uint32_t index, uint64_t line)
{
    return snoop(uncore, index, line, true) != LINE_INVALID;
}

void uncore_evicted(struct uncore *uncore, uint32_t index, slot_t slot)
{
    if (uncore->profile->llc_policy == LLC_VICTIM || slot_state(slot) == LINE_MODIFIED)
        keep(uncore, uncore->node_of_core[index], slot_line(slot), LINE_SHARED);
}

uint32_t served_latency(const struct profile *profile, enum served served)
{
    switch (served) {
    case SERVED_L2:
        return profile->l2_latency;
    case SERVED_LLC:
        return profile->llc_latency;
    case SERVED_SHARED:
        return profile->llc_latency_shared;
    case SERVED_MODIFIED:
        return profile->llc_latency_modified;
    case SERVED_LOCAL:
        return profile->memory_latency_local;
    default:
        return profile->memory_latency_remote;
    }
}
