# SPDX-License-Identifier: GPL-2.0-or-later
"""What this host's PMU can count, and which metrics can be made of it: `vsprof events`; vendors' lists: `vsprof events import`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vsprof.collectors.events import catalogue, importer, probe
from vsprof.collectors.events import messages as events_messages
from vsprof.collectors.events.catalogue import Catalogue
from vsprof.collectors.events.entries import Event, Metric
from vsprof.collectors.events.importer import Imported
from vsprof.collectors.events.probe import Survey
from vsprof.runner import messages


@dataclass(frozen=True)
class Listing:
    """A catalogue, and what was found out about it on this host."""

    catalogue: Catalogue
    survey: Survey

    def why_not(self, metric: str) -> str | None:
        """Why a metric can't be had here, or None."""
        if missing := self.catalogue.missing(metric):
            return missing
        lacking = [name for name in self.catalogue.needs(metric) if not self.survey.events[name].counted]
        if not lacking:
            return None
        reasons = {self.survey.events[name].why for name in lacking}
        return reasons.pop() if len(reasons) == 1 and "" not in reasons else messages.needs_uncountable(lacking)

    def to_json(self) -> dict[str, Any]:
        known = self.catalogue
        return {
            "processor": known.processor.id,
            "processor_name": known.processor.name,
            "microarchitecture": known.microarchitecture,
            "vendor_defined": known.vendor_defined,
            "perf": self.survey.perf,
            "findings": self.survey.findings,
            "events": [self._event(name) for name in known.events],
            "metrics": [self._metric(name) for name in known.metrics],
        }

    def _event(self, name: str) -> dict[str, Any]:
        event, found = self.catalogue.events[name], self.survey.events[name]
        return {
            "name": name,
            "perf": event.perf(pmu=self.catalogue.pmu),
            "kind": "hardware" if event.hardware else "software",
            "counted": found.counted,
            "state": found.state,
            "why": found.why,
            "description": event.description,
            "errata": event.errata,
            "source": event.source,
        }

    def _metric(self, name: str) -> dict[str, Any]:
        metric, why = self.catalogue.metrics[name], self.why_not(name)
        return {
            "name": name,
            "unit": metric.unit,
            "expression": metric.text,
            "needs": [] if self.catalogue.missing(name) else [*self.catalogue.needs(name), *self.catalogue.needs_data(name)],
            "available": why is None,
            "why": why or "",
            "description": metric.description,
        }


def examine(files: Iterable[Path] = (), microarchitecture: str | None = None) -> Listing:
    """Read the catalogue, and try each event on this host; of another ``microarchitecture`` nothing is tried. Raises ``BadInput``."""
    known = catalogue.load(microarchitecture, files)
    if microarchitecture is not None:
        untried = probe.Probed(probe.NOT_TRIED, messages.other_processor())
        return Listing(known, Survey("", [messages.other_processor()], dict.fromkeys(known.events, untried)))
    found = probe.survey(known)
    strange = [messages.unknown_processor(known.processor.id)] if known.vendor_defined else []
    return Listing(known, Survey(found.perf, [*strange, *found.findings], found.events))


def render(listing: Listing) -> str:
    """For people: what stands in the way of all, then one line an event and one line a metric. Lines are as long as they are."""
    known = listing.to_json()
    return "\n".join([*_head(known), "", *_events(known), "", *_metrics(known)])


def _head(known: dict[str, Any]) -> Iterator[str]:
    if messages.other_processor() in known["findings"]:
        yield f"events: {known['microarchitecture']}"
    else:
        name = f"{known['processor_name']} ({known['processor']})" if known["processor_name"] else known["processor"]
        yield f"processor: {name}; its events: {known['microarchitecture']}; {known['perf'] or 'no perf'}"
    yield from known["findings"]
    counted, here = (sum(row[key] for row in known[kind]) for kind, key in (("events", "counted"), ("metrics", "available")))
    yield f"{counted} of {len(known['events'])} events can be counted, {here} of {len(known['metrics'])} metrics can be had"


def _events(known: dict[str, Any]) -> Iterator[str]:
    """One without a description has what perf is given; the reason is left out where it has been said of all events already."""
    rows = known["events"]
    width = max((len(row["name"]) for row in rows), default=0)
    said = _said(known)
    yield "Events, and what they count:"
    for row in rows:
        why = "" if row["counted"] or row["why"] in said else ": ".join(filter(None, (row["state"], row["why"])))
        errata = row["errata"] and f"errata: {row['errata']}"
        more = "".join(f" ({text})" for text in (errata, why) if text)
        yield f"  {_yes(row['counted'])}  {row['name']:{width}}  {row['description'] or row['perf']}{more}"


def _metrics(known: dict[str, Any]) -> Iterator[str]:
    """The reason is left out where it has been said of all events already."""
    rows = known["metrics"]
    widths = [max((len(row[key]) for row in rows), default=0) for key in ("name", "unit")]
    said = _said(known) | {""}
    yield "Metrics, their units, and the events and data that they need:"
    for row in rows:
        why = "" if row["why"] in said else f"{'; ' if row['needs'] else ''}{row['why']}"
        yield f"  {_yes(row['available'])}  {row['name']:{widths[0]}}  {row['unit']:{widths[1]}}  {', '.join(row['needs'])}{why}"


def _said(known: dict[str, Any]) -> set[str]:
    """The reasons that stand in the head."""
    return {events_messages.pmu_refused(), *known["findings"]}


def _yes(this: bool) -> str:
    return "yes" if this else "no "


# --- Importing ----------------------------------------------------------------------------------------------------------


def render_import(done: Imported) -> str:
    """For people: one line a file, what can be asked for, and one line for each reason that kept something out."""
    return "\n".join([*_written(done), *_left_out(done)])


def _written(done: Imported) -> Iterator[str]:
    for one in done.files:
        events, metrics = (len(one.names(kind)) for kind in (Event, Metric))
        yield f"{one.path} ({one.form}): {messages.counted_entries(events, metrics)} of {done.microarchitecture} -> {one.to}"
    imported = [entry for one in done.files for entry in one.entries]
    for collector, outside in (("perf_stat", False), ("uncore", True)):
        if first := next((entry.name for entry in imported if bool(isinstance(entry, Event) and entry.unit) == outside), None):
            yield messages.name_them(collector, first)


def _left_out(done: Imported) -> Iterator[str]:
    if done.left_out:
        yield f"left out: {len(done.left_out)}"
    yield from (f"  {line}" for line in importer.summed_up(done.left_out))
