/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts by thread: what is booked for whom. */
#include "tasks.h"

#include <string.h>

#include "check.h"

static struct tasks tasks;
static struct counters now[MODE_COUNT];

static void start(void)
{
	memset(now, 0, sizeof(now));
	tasks_init(&tasks);
}

static void switch_to(uint32_t id, const char *name)
{
	char padded[TASK_NAME] = "";

	memcpy(padded, name, strnlen(name, TASK_NAME));
	tasks_switch(&tasks, now, id, padded);
}

static uint64_t booked(uint32_t id, const char *name)
{
	for (uint32_t i = 0; i < tasks.count; i++)
		if (tasks.task[i].id == id && !strncmp(tasks.task[i].name, name, TASK_NAME))
			return tasks.task[i].counters[HOST_USER].instructions;
	return UINT64_MAX;
}

static void by_hand(void)
{
	start();
	now[HOST_USER].instructions = 100;
	switch_to(1, "one"); /* who ran before, nobody knows */
	now[HOST_USER].instructions += 10;
	now[HOST_KERNEL].loads += 3;
	switch_to(2, "two");
	now[HOST_USER].instructions += 20;
	switch_to(1, "one");
	now[HOST_USER].instructions += 5;
	EQUAL(booked(TASK_UNKNOWN, ""), 100);
	EQUAL(booked(1, "one"), 10);
	EQUAL(booked(2, "two"), 20);
	tasks_book(&tasks, now);
	tasks_book(&tasks, now); /* nothing came to it */
	EQUAL(booked(1, "one"), 15);
	EQUAL(tasks.task[1].counters[HOST_KERNEL].loads, 3);
	EQUAL(tasks.task[2].counters[HOST_KERNEL].loads, 0);
	EQUAL(tasks.count, 3);
}

/* As a shell's child that becomes another program: all since it was switched to is that program's, and what was booked before is not. */
static void another_name_at_the_end(void)
{
	start();
	switch_to(7, "bash");
	now[HOST_USER].instructions += 3;
	switch_to(8, "other");
	switch_to(7, "bash");
	now[HOST_USER].instructions += 40;
	tasks_name(&tasks, "sha256sum\0\0\0\0\0\0");
	switch_to(8, "other");
	EQUAL(booked(7, "bash"), 3);
	EQUAL(booked(7, "sha256sum"), 40);
	/* Who has the same name still is the same; whom nobody knows has none. */
	tasks_name(&tasks, "other\0\0\0\0\0\0\0\0\0\0");
	EQUAL(tasks.count, 4);
	start();
	tasks_name(&tasks, "sha256sum\0\0\0\0\0\0");
	EQUAL(tasks.count, 1);
}

/* The same id with another name is another thread; 16 letters need no end. */
static void names(void)
{
	start();
	switch_to(0, "swapper/0");
	now[HOST_USER].instructions = 1;
	switch_to(0, "swapper/1");
	now[HOST_USER].instructions = 3;
	switch_to(0, "swapper/0");
	now[HOST_USER].instructions = 7;
	switch_to(9, "sixteen letters!");
	now[HOST_USER].instructions = 15;
	switch_to(9, "sixteen letters?");
	tasks_book(&tasks, now);
	EQUAL(booked(0, "swapper/0"), 1 + 4);
	EQUAL(booked(0, "swapper/1"), 2);
	EQUAL(booked(9, "sixteen letters!"), 8);
	EQUAL(booked(9, "sixteen letters?"), 0);
}

/* What finds no place goes to nobody; who has one keeps it. */
static void a_full_table(void)
{
	start();
	for (uint32_t id = 1; id <= 2 * MOST_TASKS; id++) {
		switch_to(id, "many");
		now[HOST_USER].instructions += id;
	}
	switch_to(1, "many");
	now[HOST_USER].instructions += 1000;
	tasks_book(&tasks, now);
	EQUAL(tasks.count, MOST_TASKS);
	EQUAL(booked(1, "many"), 1001);
	EQUAL(booked(MOST_TASKS - 1, "many"), MOST_TASKS - 1);
	EQUAL(booked(MOST_TASKS, "many"), UINT64_MAX);
	uint64_t sum = 0;
	for (uint32_t i = 0; i < tasks.count; i++)
		sum += tasks.task[i].counters[HOST_USER].instructions;
	EQUAL(sum, now[HOST_USER].instructions);
}

/* After the end threads come and go, and nothing is booked. */
static void stopped(void)
{
	struct counters end[MODE_COUNT];

	start();
	switch_to(1, "one");
	now[HOST_USER].instructions = 10;
	now[HOST_USER].loads = 4;
	memcpy(end, now, sizeof(end));
	/* The core ran on a little, and switched, before it heard of the end. */
	now[HOST_USER].instructions = 12;
	switch_to(2, "two");
	now[HOST_USER].instructions = 13;
	end[HOST_USER].loads = 5;
	tasks_stop(&tasks, end);
	EQUAL(booked(1, "one"), 12);
	EQUAL(booked(2, "two"), 0);
	EQUAL(tasks.task[2].counters[HOST_USER].loads, 1);
	now[HOST_USER].instructions = 1000;
	switch_to(3, "three");
	now[HOST_USER].instructions = 2000;
	tasks_book(&tasks, now);
	EQUAL(booked(1, "one"), 12);
	EQUAL(booked(2, "two"), 0);
	EQUAL(booked(3, "three"), 0);
	EQUAL(tasks.task[tasks.present].id, 3);
}

/* What one poll takes in user mode, with what interrupts it, and whether it finds something. */
static void poll(uint64_t instructions, uint64_t kernel, bool found)
{
	tasks_poll(&tasks, now);
	now[HOST_USER].instructions += instructions;
	now[HOST_KERNEL].instructions += kernel;
	if (found)
		tasks_poll_found(&tasks);
}

static void polls(void)
{
	start();
	switch_to(1, "pmd");
	now[HOST_USER].instructions += 1000; /* of a poll whose begin was not seen */
	poll(10, 0, false);
	poll(500, 0, true);
	poll(11, 100, false); /* interrupted: not by itself */
	poll(600, 0, true);
	poll(700, 0, true);
	tasks_poll(&tasks, now);
	const struct task *pmd = &tasks.task[tasks.present];
	EQUAL(pmd->empty_polls, 2);
	EQUAL(pmd->empty.instructions, 21);
	EQUAL(booked(1, "pmd"), 1000 + 10 + 500 + 11 + 600 + 700);
	/* Another runs in the middle of a poll, and polls, too. */
	now[HOST_USER].instructions += 5;
	switch_to(2, "other");
	poll(3000, 0, false);
	poll(4000, 0, true);
	switch_to(1, "pmd");
	now[HOST_USER].instructions += 7;
	tasks_poll(&tasks, now);
	EQUAL(pmd->empty_polls, 3);
	EQUAL(pmd->empty.instructions, 21 + 12);
	switch_to(2, "other");
	EQUAL(tasks.task[tasks.present].empty_polls, 1);
	EQUAL(tasks.task[tasks.present].empty.instructions, 3000);
}

/* A poll that the window's end cuts is none, and none is counted behind it. */
static void polls_at_the_end(void)
{
	struct counters end[MODE_COUNT];

	start();
	switch_to(1, "pmd");
	poll(10, 0, false);
	poll(20, 0, false);
	memcpy(end, now, sizeof(end));
	now[HOST_USER].instructions += 30;
	tasks_stop(&tasks, end);
	poll(40, 0, false);
	poll(50, 0, false);
	EQUAL(tasks.task[tasks.present].empty_polls, 1);
	EQUAL(tasks.task[tasks.present].empty.instructions, 10);
	EQUAL(booked(1, "pmd"), 30);
}

int main(void)
{
	polls();
	polls_at_the_end();
	by_hand();
	another_name_at_the_end();
	names();
	a_full_table();
	stopped();
	return 0;
}
