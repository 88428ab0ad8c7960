/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When what happened: what is listed of a window's part, and how it is cut. */
#include "timeline.h"

#include <string.h>

#include "check.h"

static struct timeline timeline;
static struct timeline_plan plan;

/* A window that begins at 1000, of which 100 to 600 is written down. */
static void start(void)
{
	plan = (struct timeline_plan){.after = 100, .length = 500};
	timeline_init(&timeline, &plan);
}

/* What would be read of it. */
static const char *written(int64_t ended)
{
	static char text[1 << 20];
	FILE *out = fmemopen(text, sizeof(text), "w");

	CHECK(out);
	timeline_write(&timeline, 1000, ended, out);
	fclose(out);
	return text;
}

static void says(int64_t ended, const char *expected)
{
	const char *found = written(ended);

	if (!strcmp(found, expected))
		return;
	fprintf(stderr, "found    %s\nexpected %s\n", found, expected);
	exit(1);
}

static void spans_and_marks(void)
{
	start();
	timeline_begin(&timeline, TIMELINE_task, false, 900, 1, "before"); /* lasts into the part: is cut at its begin */
	timeline_begin(&timeline, TIMELINE_irq, false, 950, NO_VALUE, "timer");
	timeline_end(&timeline, TIMELINE_irq, false, 960, NO_VALUE); /* is over before it */
	timeline_plan_begin(&plan, 1000);
	timeline_mark(&timeline, TIMELINE_wake, false, 1050, 9, "early");
	timeline_mark(&timeline, TIMELINE_wake, false, 1100, 2, "at \"once\"");
	timeline_begin(&timeline, TIMELINE_task, false, 1200, 2, "sixteen letters!");
	timeline_begin(&timeline, TIMELINE_task, true, 1250, 3, "in the guest"); /* beside the host's */
	timeline_begin(&timeline, TIMELINE_guest, false, 1300, NO_VALUE, NULL);
	timeline_end(&timeline, TIMELINE_guest, false, 1400, 0x78);
	timeline_end(&timeline, TIMELINE_guest, false, 1410, 0x60); /* there is none */
	timeline_count(&timeline, TIMELINE_softirq, true);          /* outside of any */
	timeline_begin(&timeline, TIMELINE_softirq, true, 1420, NO_VALUE, "net_rx");
	timeline_count(&timeline, TIMELINE_softirq, true);
	timeline_count(&timeline, TIMELINE_softirq, true);
	timeline_end(&timeline, TIMELINE_softirq, true, 1430, NO_VALUE);
	timeline_begin(&timeline, TIMELINE_sleep, false, 1450, NO_VALUE, NULL);
	timeline_mark(&timeline, TIMELINE_ipi, true, 1600, 0, NULL); /* too late */
	timeline_end(&timeline, TIMELINE_sleep, false, 1700, NO_VALUE);
	says(3000, "{\"from_ns\":100,\"to_ns\":600,\"full\":false,\"events\":["
		   "[100,100,\"task\",0,1,\"before\"],\n[100,0,\"wake\",0,2,\"at ?once?\"],\n[200,400,\"task\",0,2,\"sixteen letters!\"],\n"
		   "[250,350,\"task\",1,3,\"in the "
		   "guest\"],\n[300,100,\"guest\",0,120,\"\"],\n[420,10,\"softirq\",1,2,\"net_rx\"],\n[450,150,\"sleep\",0,-1,\"\"]]}");
	/* A window that ended earlier. */
	CHECK(strstr(written(1350), "\"to_ns\":350,"));
	CHECK(strstr(written(1350), "[300,50,\"guest\",0,120,\"\"]]}"));
}

/* A core to which nothing happens in the whole part is in the middle of something all the same. */
static void nothing_happens(void)
{
	start();
	timeline_begin(&timeline, TIMELINE_guest, false, 900, NO_VALUE, NULL);
	timeline_plan_begin(&plan, 1000);
	says(3000, "{\"from_ns\":100,\"to_ns\":600,\"full\":false,\"events\":[[100,500,\"guest\",0,-1,\"\"]]}");
}

static void polls(void)
{
	start();
	timeline_poll(&timeline, 980);
	timeline_plan_begin(&plan, 1000);
	timeline_poll(&timeline, 1090); /* the one before is not of the part, nor is its being empty */
	timeline_poll(&timeline, 1110);
	timeline_poll(&timeline, 1120);
	timeline_poll(&timeline, 1130);
	timeline_poll_found(&timeline, 32);
	timeline_poll_found(&timeline, 8); /* given on: no more than what came */
	timeline_poll(&timeline, 1200);
	timeline_poll(&timeline, 1210);
	timeline_poll_found(&timeline, 1);
	timeline_poll(&timeline, 1230);
	timeline_poll(&timeline, 1240);
	for (int64_t at = 1600; at < 9000; at += 10) /* behind the part */
		timeline_poll(&timeline, at);
	says(3000, "{\"from_ns\":100,\"to_ns\":600,\"full\":false,\"events\":["
		   "[110,20,\"empty_polls\",0,2,\"\"],\n[130,70,\"poll\",0,32,\"\"],\n[200,10,\"empty_polls\",0,1,\"\"],\n"
		   "[210,20,\"poll\",0,1,\"\"],\n[230,370,\"empty_polls\",0,2,\"\"]]}");
}

static void a_full_list_ends_early(void)
{
	start();
	plan.length = 100000;
	timeline_plan_begin(&plan, 1000);
	for (int i = 0; i < MOST_EVENTS + 10; i++)
		timeline_mark(&timeline, TIMELINE_ipi, true, 1100 + i, 0, NULL);
	CHECK(strstr(written(1000000), "{\"from_ns\":100,\"to_ns\":4196,\"full\":true,"));
	CHECK(strstr(written(1000000), "[4195,0,\"ipi\",1,0,\"\"]]}"));
	/* The next window begins anew. */
	timeline_plan_begin(&plan, 100000);
	timeline_mark(&timeline, TIMELINE_ipi, false, 100200, 3, NULL);
	EQUAL(timeline.count, 1);
}

static void without_a_plan(void)
{
	plan = (struct timeline_plan){0};
	timeline_init(&timeline, &plan);
	CHECK(!timeline_wanted(&timeline));
	start();
	CHECK(timeline_wanted(&timeline));
}

int main(void)
{
	spans_and_marks();
	nothing_happens();
	polls();
	a_full_list_ends_early();
	without_a_plan();
	return 0;
}
