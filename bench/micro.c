/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Microbenchmarks whose events are known beforehand: micro KIND ARGUMENTS ITERATIONS
 *
 *   chase BYTES N       follow N pointers through the lines of a buffer in one random cycle
 *   pages COUNT N       the same through one line of each of COUNT pages of 4 KiB
 *   hugepages COUNT N   the same through pages of 2 MiB
 *   stream BYTES N      read a buffer of BYTES in order, N times, 8 bytes at a time
 *   random 0 N          N conditional branches on random bits
 *   pattern PERIOD N    N conditional branches, taken once in PERIOD
 *   syscalls 0 N        N system calls that do nothing
 *
 * The loop alone lies between two marks of the processor model (collectors/uarch_model/decode.h), which are NOPs elsewhere.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE 64
#define MARK(n) __asm__ volatile(".byte 0x0f, 0x1f, 0x80\n\t.long 0x7673500" #n ::: "memory")

static uint64_t state = 88172645463325252ull;

/* Marsaglia, "Xorshift RNGs", 2003: the same numbers everywhere. */
static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static char *map(size_t bytes, int flags)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | flags, -1, 0);

    if (at == MAP_FAILED) {
        perror("micro: mmap");
        exit(1);
    }
    return at;
}

/* Link `count` places, the i-th at i * stride (+ a line that differs by page), into one random cycle (Sattolo, 1986). */
static void **link_places(char *buffer, size_t count, size_t stride, int spread)
{
    size_t *order = malloc(count * sizeof(*order));

    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count - 1; i > 0; i--) {
        size_t j = next_random() % i, other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
#define PLACE(i) (buffer + (i) * stride + (spread ? (i) % (4096 / LINE) * LINE : 0))
    for (size_t i = 0; i < count; i++)
        *(void **)PLACE(order[i]) = PLACE(order[(i + 1) % count]);
    void **first = (void **)PLACE(order[0]);
    free(order);
    return first;
}

static void *follow(void **at, uint64_t n)
{
    while (n--)
        at = *at;
    return at;
}

static void chase(char *buffer, size_t count, size_t stride, int spread, uint64_t n)
{
    void **first = link_places(buffer, count, stride, spread);
    void *volatile kept = follow(first, count);

    MARK(1);
    kept = follow(first, n);
    MARK(2);
    (void)kept;
}

static uint64_t sum(const uint64_t *at, size_t words)
{
    uint64_t total = 0;

    for (size_t i = 0; i < words; i++) {
        total += at[i];
        __asm__ volatile("" : "+r"(total)); /* one load each, no vectors */
    }
    return total;
}

static void stream(size_t bytes, uint64_t n)
{
    uint64_t *buffer = (uint64_t *)map(bytes, 0);
    volatile uint64_t kept = sum(buffer, bytes / 8);

    MARK(1);
    while (n--)
        kept = sum(buffer, bytes / 8);
    MARK(2);
    (void)kept;
}

static void branches(uint64_t period, uint64_t n)
{
    volatile uint64_t taken = 0;
    uint64_t count = 0;

    MARK(1);
    for (uint64_t i = 0; i < n; i++) {
        int take = period ? ++count == period : (next_random() >> 40) & 1;
        if (take) {
            taken++; /* memory: no conditional move */
            count = 0;
        }
    }
    MARK(2);
}

static void syscalls(uint64_t n)
{
    MARK(1);
    while (n--)
        syscall(SYS_getppid);
    MARK(2);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: micro KIND ARGUMENT ITERATIONS\n");
        return 2;
    }
    const char *kind = argv[1];
    uint64_t size = strtoull(argv[2], NULL, 10), n = strtoull(argv[3], NULL, 10);

    if (!strcmp(kind, "chase"))
        /* Huge pages, so that translation costs nothing here. */
        chase(map((size + 0x1fffff) & ~0x1fffffull, MAP_HUGETLB), size / LINE, LINE, 0, n);
    else if (!strcmp(kind, "pages"))
        chase(map(size * 4096, 0), size, 4096, 1, n);
    else if (!strcmp(kind, "hugepages"))
        chase(map(size << 21, MAP_HUGETLB), size, 1 << 21, 1, n);
    else if (!strcmp(kind, "stream"))
        stream(size, n);
    else if (!strcmp(kind, "random") || !strcmp(kind, "pattern"))
        branches(size, n);
    else if (!strcmp(kind, "syscalls"))
        syscalls(n);
    else
        return fprintf(stderr, "micro: no kind %s\n", kind), 2;
    return 0;
}
