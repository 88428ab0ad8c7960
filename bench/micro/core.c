/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What happens inside the core alone. */
#include "micro.h"

/* Register to register: some processors add constants while they rename registers, in no time. */
static uint64_t adds(uint64_t argument, uint64_t n)
{
    uint64_t sum = 0;

    (void)argument;
    for (uint64_t i = 0; i < n; i += 100)
        __asm__ volatile(".rept 100\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(n));
    return 0;
}

static uint64_t branches(uint64_t period, uint64_t n)
{
    volatile uint64_t taken = 0;
    uint64_t count = 0;

    for (uint64_t i = 0; i < n; i++) {
        int take = period ? ++count == period : (next_random() >> 40) & 1;
        if (take) {
            taken++; /* memory: no conditional move */
            count = 0;
        }
    }
    return 0;
}

static uint64_t branches_once(uint64_t period)
{
    return period ? 100 * period : 0;
}

const struct work core_work[] = {
    {"adds", "0: additions, each of the sum of the one before", NULL, adds, NULL, 0},
    {"random", "0: conditional branches on random bits", NULL, branches, NULL, 0},
    {"pattern", "period: conditional branches, taken once in a period", NULL, branches, branches_once, 0},
    {NULL, NULL, NULL, NULL, NULL, 0},
};
