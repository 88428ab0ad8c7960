/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An error for the user: one sentence with the value seen and the next move. */
#ifndef VS_WHY_H
#define VS_WHY_H

struct why {
	char text[320];
};

/* Writes the sentence, and returns -1: `return refuse(why, …);`. */
int refuse(struct why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
