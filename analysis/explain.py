# SPDX-License-Identifier: GPL-2.0-or-later
"""The explanation of two switches, or two ways to reach one, in words: the answer, and the findings behind it.

Findings are rows of looks.yaml; functions here say what takes a search among several numbers.
"""

import math
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from vsprof.analysis import comparison, looks, messages, metrics, model, published, stats, style, vocabulary
from vsprof.analysis.comparison import Pair, measured, share
from vsprof.analysis.load import Result
from vsprof.analysis.looks import Words
from vsprof.analysis.source import on_path, samples, select
from vsprof.analysis.sources import SOFTWARE
from vsprof.terms.vocabulary import Headline

CONTAINERS = ("veth", "virtio-user")
"""Accesses of containers."""
MAIN_PAIR = [("kernel-ovs", "vhost-net", "vm2vm"), ("ovs-dpdk", "vhost-user", "vm2vm")]
BESIDE = ("T1-throughput", "T1-context-switches", "T3-vhost-user-over-vhost-net")
"""The published figures of just that pair, by their ids."""
HARDLY = 0.1
"""CPUs that work less of the time limit nothing, and are not named."""


def answer(result: Result) -> str:
    """For each pair of cases who delivers more, and who makes how many context switches; then what limits it, and what was published."""
    lines, on, sent = [], "", metrics.sent(result)
    saturated = vocabulary.at_saturation(sent)
    for pair in comparison.pairs(result):
        setting = f"**{pair.setting}**: " if pair.setting else ""
        delivered = _judged(pair, saturated)
        if said := [*delivered, *_switches_threads(pair, saturated)] or _judged(pair, sent):
            # Once; again where another processor is modelled.
            if delivered and (modelled := _modelled(pair)) != on:
                said[0], on = f"On {modelled} as modelled, {'i' if said[0].startswith('In ') else said[0][0]}{said[0][1:]}", modelled
            lines.append(setting + " ".join(said))
        lines += filter(None, (_full(pair), _published(pair)))
    if not lines:
        return looks.NO_ANSWER
    own = [messages.modelled_time(result.modelled)] if result.modelled else []
    # Cases that differ in an option alone have the same endpoints.
    contained = result.cases[result.cases["access"].isin(CONTAINERS)][["switch", "access"]].drop_duplicates()
    if named := ", ".join(f"{vocabulary.switch(case.switch).words} over {case.access}" for case in contained.itertuples()):
        own.append(f"The endpoints were containers, no virtual machines: {named}.")
    return "\n\n".join([*lines, *looks.notes(result, own)])


def _modelled(pair: Pair) -> str:
    """The processors that the two are predicted for, or nothing."""
    names = dict.fromkeys(str(pair.result.clock(case).get("cpu_name")) for case in (pair.other, pair.base))
    return " and on ".join(names) if pair.result.modelled else ""


def _switches_threads(pair: Pair, saturated: Iterable[tuple[str, str]]) -> list[str]:
    """Of those traffics among whose headlines it is."""
    said = []
    for traffic, load, metric, _ in vocabulary.headlines(saturated):
        per = vocabulary.per_data().get(traffic, "")
        if metric == f"context_switches_per_{per}" and measured(ratio := pair.ratio(traffic=traffic, load=load, metric=metric)):
            things = f"{'' if said else 'context switches '}per {per} of {vocabulary.called(traffic)}"
            said.append(comparison.as_many(ratio, things) + comparison.doubt(ratio))
    return [f"It makes {' and '.join(said)}."] if said else []


def _judged(pair: Pair, sent: Iterable[tuple[str, str]]) -> list[str]:
    """By what each of these traffics and loads is judged, a sentence for each."""
    said = []
    for traffic, load in sent:
        headline = vocabulary.judged_by(traffic)
        ratio = pair.ratio(traffic=traffic, load=load, metric=headline.metric) if headline else stats.NOTHING
        # Of two zeros, say where nothing came back, there is no ratio.
        if headline and measured(ratio) and math.isfinite(ratio.median):
            within = "" if headline.things else f"In {style.traffic_name(traffic, load)}, "
            doubt = comparison.doubt(ratio, "; the difference is not significant")
            said.append(f"{within}{pair.names()[1]} {_how_much(pair, {'traffic': traffic, 'load': load}, headline, ratio)}{doubt}.")
    return said


def _how_much(pair: Pair, where: dict[str, str], headline: Headline, ratio: stats.Estimate) -> str:
    """`delivers 2.20 times as many packets as …` of what is counted; `has 2.20 times the *one way, mean* of …` of anything else."""
    base, data = pair.names()[0], vocabulary.traffic(where["traffic"]).data
    if not (headline.verb or (data and data.number == headline.metric and not headline.things)):
        things = headline.things or f"*{headline.words}*"
        return f"has {comparison.of(ratio, f'the {things} of {base}')}"
    rates = Words(pair, where).sentences([f"{{other.{headline.metric}}} against {{base.{headline.metric}}}"])
    # In an emulator's time a rate says nothing.
    note = "".join(rates) if pair.result.modelled and where == comparison.sent(pair.result, "flood") else ""
    things = headline.things or f"{data.per if data else ''}s"
    return f"{headline.verb or 'delivers'} {comparison.as_many(ratio, things, base, note)}"


def _full(pair: Pair) -> str:
    """What limits each path in the flood: the CPUs that have no time left. Empty where time is not modelled."""
    said, flood = [], comparison.sent(pair.result, "flood")
    for case, name in pair.named:
        if cpus := utilisation(pair.result, case, **flood):
            roles = pair.result.cpu_roles(case)
            parts = [f"CPU {cpu} ({roles.get(cpu, '')}) {share(full)}" for cpu, full in cpus.items() if full.median >= HARDLY]
            said.append(f"with {name} {', '.join(parts)}")
    return f"Share of {vocabulary.called(flood['traffic'])}'s time that each CPU works: {'; '.join(said)}." if said else ""


def _published(pair: Pair) -> str:
    """What others measured of the same two, where time is modelled: a number of an emulator is set beside nobody's."""
    ways = pair.result.cases.loc[[pair.base, pair.other], ["switch", "access", "topology"]].itertuples(index=False, name=None)
    if not pair.result.modelled or list(ways) != MAIN_PAIR:
        return ""
    return messages.published_beside([f"{one.figure} ({one.target})" for one in map(published.EVERY.get, BESIDE)])


def utilisation(result: Result, case_id: str, **where: object) -> dict[int, stats.Estimate]:
    """How full each CPU of a case was in modelled time, the fullest first: the part of a window in which it worked, 0 to 1, as the model
    counted its cycles; polls that found nothing are no work, a sender that spins is. None where time was not modelled, or was idle."""
    frequency = result.clock(case_id).get("frequency_hz")
    rows = select(result.own_numbers, case_id=case_id, name=["cycles", f"{model.EMPTY}_cycles"], source="model", **where)
    rows = rows[rows["cpu"].notna() & rows["value"].notna()]
    if not frequency or rows.empty:
        return {}
    signed = rows.assign(part=np.where(rows["name"] == "cycles", rows["value"], -rows["value"]), per=rows["enabled_s"] * frequency)
    windows = signed.groupby(["run_id", "window", "cpu"], as_index=False).agg(part=("part", "sum"), per=("per", "max"))
    found = {int(cpu): stats.estimate(samples(one)) for cpu, one in windows.groupby("cpu")}
    return dict(sorted(found.items(), key=lambda one: -one[1].median))


@looks.in_rows
def endpoints(words: Words) -> Iterator[str]:
    """How much of the endpoints' CPUs was left under the flood."""
    case = words.cases["one"]
    roles = words.pair.result.cpu_roles(case)
    cpus = [cpu for cpu, role in roles.items() if role == "guest"]
    # On a host with too few CPUs the endpoints run where everything else does.
    whose = "the guests' CPUs" if cpus else "the CPU that the endpoints share with the host"
    cpus = cpus or [cpu for cpu, role in roles.items() if role == "host-other"]
    sent = {name: words.own[name] for name in ("traffic", "load")}
    idle = {cpu: words.pair.of(case, **sent, metric="cpu_idle", cpu=cpu) for cpu in cpus}
    if said := ", ".join(f"cpu{cpu} {share(one)}" for cpu, one in idle.items() if measured(one)):
        yield f"Idle on {whose}: {said} (a sender that floods uses all of its own)."


@looks.in_rows
def unfound(words: Words) -> str:
    """Searches that found no rate: it may be below the lowest tried, or above the highest, and the median of the others leaves it out."""
    pair, sent = words.pair, {name: words.own[name] for name in ("traffic", "load")}
    counts = {name: metrics.happened(pair.result, case_id=case, **sent, metric="search_ended") for case, name in pair.named}
    return "; ".join(f"over {name} {found} of {tried} searches found a rate" for name, (found, tried) in counts.items() if found < tried)


@looks.in_rows
def makers(words: Words) -> Iterator[str]:
    """Which role makes most of the context switches in each case."""
    result, sent = words.pair.result, {name: words.own[name] for name in ("traffic", "load")}
    for case, name in words.pair.named:
        table = SOFTWARE.summary(result, ["context_switches_per_second"], case_id=case, cpu=-1, **sent)
        table = table[~table["role"].isin(["all", "path"]) & on_path(result, table)]
        made = table.set_index("role")["median"]
        if made.empty or made.sum() == 0:
            yield f"in {name} nobody makes any"
        else:
            yield f"in {name}, {made.idxmax()} threads make {100 * made.max() / made.sum():.0f} % of them"


LOOKS = looks.of("switches")
markdown = partial(looks.explained, looks=LOOKS)
"""Every finding of every pair of cases, in the order in which a reader asks for them, as a numbered list."""
