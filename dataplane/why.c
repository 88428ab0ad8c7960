/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "why.h"

#include <stdarg.h>
#include <stdio.h>

int refuse(struct why *why, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	vsnprintf(why->text, sizeof(why->text), format, values);
	va_end(values);
	return -1;
}
