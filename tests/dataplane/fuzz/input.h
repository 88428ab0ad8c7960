/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What fuzz targets have in common: an input that is read bit by bit, and what must hold. */
#ifndef VS_FUZZ_INPUT_H
#define VS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

static inline void must(int holds)
{
	if (!holds)
		abort();
}

/* Zero where the input is at its end. */
static inline uint32_t next(struct input *input, size_t bytes)
{
	uint32_t value = 0;

	if (input->left < bytes)
		return 0;
	memcpy(&value, input->at, bytes);
	input->at += bytes;
	input->left -= bytes;
	return value;
}

#endif
