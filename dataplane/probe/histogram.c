/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "histogram.h"

/* By how many bits a bucket's values were shifted to find it: its width is that power of two. */
static unsigned shift_of(unsigned index)
{
	unsigned octave = index >> HISTOGRAM_BITS;

	return octave ? octave - 1 : 0;
}

uint64_t histogram_low(unsigned index)
{
	unsigned shift = shift_of(index);

	return (uint64_t)(index - (shift << HISTOGRAM_BITS)) << shift;
}

uint64_t histogram_high(unsigned index)
{
	return histogram_low(index) + ((1ull << shift_of(index)) - 1);
}
