/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline.h"

#include <inttypes.h>
#include <string.h>

#define OPEN INT64_MAX
#define NOT_LISTED UINT32_MAX

static const char *const kind_names[TIMELINE_KINDS] = {
#define X(name) #name,
	TIMELINE_SPANS(X) TIMELINE_OTHERS(X)
#undef X
};

void timeline_init(struct timeline *timeline, const struct timeline_plan *plan)
{
	memset(timeline, 0, sizeof(*timeline));
	timeline->plan = plan;
	timeline->from = timeline->to = OPEN;
}

void timeline_plan_begin(struct timeline_plan *plan, int64_t begun)
{
	plan->from = begun + plan->after;
	plan->to = plan->from + plan->length;
	__atomic_fetch_add(&plan->number, 1, __ATOMIC_RELEASE);
}

/* Where the list is full, the core's part ends here. Returns its place. */
static uint32_t list(struct timeline *timeline, const struct timeline_event *event)
{
	if (event->at >= timeline->to || event->until < timeline->from)
		return NOT_LISTED;
	if (timeline->count == MOST_EVENTS) {
		timeline->to = event->at > timeline->from ? event->at : timeline->from;
		return NOT_LISTED;
	}
	struct timeline_event *listed = &timeline->event[timeline->count];
	*listed = *event;
	if (listed->at < timeline->from)
		listed->at = timeline->from;
	return timeline->count++;
}

static void begin_part(struct timeline *timeline)
{
	timeline->begun = true;
	for (int kind = 0; kind < TIMELINE_SPAN_KINDS; kind++)
		for (int guest = 0; guest < 2; guest++)
			if (timeline->open[kind][guest].is)
				timeline->open[kind][guest].index = list(timeline, &timeline->open[kind][guest].event);
}

/* Before anything that happens at `at`: is it another window, and has its part begun? */
static void look(struct timeline *timeline, int64_t at)
{
	uint32_t number = __atomic_load_n(&timeline->plan->number, __ATOMIC_ACQUIRE);

	if (number != timeline->number) {
		timeline->number = number;
		timeline->count = 0;
		timeline->begun = false;
		timeline->from = timeline->plan->from;
		timeline->to = timeline->plan->to;
		for (int i = 0; i < 2 * TIMELINE_SPAN_KINDS; i++)
			timeline->open[i / 2][i % 2].index = NOT_LISTED;
	}
	if (!timeline->begun && at >= timeline->from)
		begin_part(timeline);
}

static struct timeline_event made(enum timeline_kind kind, bool guest, int64_t at, int64_t until, uint32_t value, const char *name)
{
	struct timeline_event event = {.at = at, .until = until, .value = value, .kind = (uint8_t)kind, .guest = guest};

	if (name)
		memcpy(event.name, name, strnlen(name, TASK_NAME));
	return event;
}

void timeline_begin(struct timeline *timeline, enum timeline_kind kind, bool guest, int64_t at, uint32_t value, const char *name)
{
	timeline_end(timeline, kind, guest, at, NO_VALUE);
	timeline->open[kind][guest].event = made(kind, guest, at, OPEN, value, name);
	timeline->open[kind][guest].is = true;
	timeline->open[kind][guest].index = timeline->begun ? list(timeline, &timeline->open[kind][guest].event) : NOT_LISTED;
}

void timeline_end(struct timeline *timeline, enum timeline_kind kind, bool guest, int64_t at, uint32_t value)
{
	look(timeline, at);
	if (!timeline->open[kind][guest].is)
		return;
	timeline->open[kind][guest].is = false;
	if (timeline->open[kind][guest].index == NOT_LISTED)
		return;
	struct timeline_event *event = &timeline->event[timeline->open[kind][guest].index];
	event->until = at;
	if (value != NO_VALUE)
		event->value = value;
}

void timeline_mark(struct timeline *timeline, enum timeline_kind kind, bool guest, int64_t at, uint32_t value, const char *name)
{
	look(timeline, at);
	struct timeline_event event = made(kind, guest, at, at, value, name);
	if (timeline->begun)
		list(timeline, &event);
}

void timeline_count(struct timeline *timeline, enum timeline_kind kind, bool guest)
{
	if (!timeline->open[kind][guest].is || timeline->open[kind][guest].index == NOT_LISTED)
		return;
	uint32_t *value = &timeline->event[timeline->open[kind][guest].index].value;
	*value = *value == NO_VALUE ? 1 : *value + 1;
}

static void list_empty_polls(struct timeline *timeline, int64_t until)
{
	struct timeline_event event = made(TIMELINE_empty_polls, false, timeline->empty_since, until, timeline->empty, NULL);

	if (timeline->empty)
		list(timeline, &event);
	timeline->empty = 0;
}

static void end_poll(struct timeline *timeline, int64_t at)
{
	struct timeline_event event = made(TIMELINE_poll, false, timeline->poll_at, at, timeline->poll_found, NULL);

	if (timeline->poll_at >= timeline->to) {
		/* Behind the part, no poll counts. */
		list_empty_polls(timeline, timeline->to);
	} else if (timeline->poll_found) {
		list_empty_polls(timeline, timeline->poll_at);
		list(timeline, &event);
	} else if (!timeline->empty++) {
		timeline->empty_since = timeline->poll_at;
	}
}

void timeline_poll(struct timeline *timeline, int64_t at)
{
	bool before = !timeline->begun;

	look(timeline, at);
	if (timeline->polling)
		end_poll(timeline, at);
	/* Empty polls of before are not counted with those of the part. */
	if (before)
		timeline->empty = 0;
	timeline->polling = true;
	timeline->poll_at = at;
	timeline->poll_found = 0;
}

void timeline_poll_found(struct timeline *timeline, uint32_t frames)
{
	if (frames > timeline->poll_found)
		timeline->poll_found = frames;
}

void timeline_write(struct timeline *timeline, int64_t begun, int64_t ended, FILE *out)
{
	look(timeline, OPEN - 1);
	int64_t to = timeline->to < ended ? timeline->to : ended;
	if (timeline->polling)
		list_empty_polls(timeline, timeline->poll_at);
	fprintf(out, "{\"from_ns\":%" PRId64 ",\"to_ns\":%" PRId64 ",\"full\":%s,\"events\":[", timeline->from - begun, to - begun,
		timeline->count == MOST_EVENTS ? "true" : "false");
	const char *comma = "";
	for (uint32_t i = 0; i < timeline->count; i++) {
		const struct timeline_event *event = &timeline->event[i];
		int64_t until = event->until < to ? event->until : to;
		if (event->at >= to)
			continue;
		fprintf(out, "%s[%" PRId64 ",%" PRId64 ",\"%s\",%d,%" PRId64 ",\"", comma, event->at - begun, until - event->at,
			kind_names[event->kind], event->guest, event->value == NO_VALUE ? -1 : (int64_t)event->value);
		tasks_write_name(event->name, out);
		fputs("\"]", out);
		comma = ",\n";
	}
	fputs("]}", out);
}
