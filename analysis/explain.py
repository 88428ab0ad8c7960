# SPDX-License-Identifier: GPL-2.0-or-later
"""The explanation of two switches, or two ways to reach one, in words: the answer, and the findings behind it.

Findings of the usual form are the `Comparison`s below; functions look at mechanisms: what a poll-mode thread, the kernel's datapath or the
bridge's local port do here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from vsprof.analysis import comparison, messages, metrics, model, published, stats, style, vocabulary
from vsprof.analysis.comparison import EQUAL, FLOOD, FORWARD, NDR, PDR, PING, TCP, Comparison, Finding, Pair, measured, plain, share, told
from vsprof.analysis.load import Result
from vsprof.analysis.source import samples, select
from vsprof.analysis.sources import SOFTWARE
from vsprof.terms import units

LARGEST_FRAME = 1600
"""Bytes: a mean above it can't come from frames of a 1500-byte MTU."""
CONTAINERS = ("veth", "virtio-user")
"""Accesses of containers."""
MAIN_PAIR = [("kernel-ovs", "vhost-net", "vm2vm"), ("ovs-dpdk", "vhost-user", "vm2vm")]
BESIDE = ("T1-throughput", "T1-context-switches", "T3-vhost-user-over-vhost-net")
"""The published figures of just that pair, by their ids."""
HARDLY = 0.1
"""CPUs that work less of the time limit nothing, and are not named."""
RECEIVED = {**FLOOD, "metric": "packet_rate_received"}
REPLIES = {**PING, "metric": "context_switches_per_reply"}


def answer(result: Result) -> str:
    """For each pair of cases who delivers more, and who makes how many context switches; then what limits it, and what was published."""
    lines, sent = [], style.traffics(result.frame)
    others = [one for one in vocabulary.at_saturation(sent) if one[0] not in {where["traffic"] for where in (FLOOD, FORWARD, TCP)}]
    for pair in comparison.pairs(result):
        setting = f"**{pair.setting}**: " if pair.setting else ""
        if said := " ".join(filter(None, (_delivers(pair), _judged(pair, others), _switches_threads(pair)))) or _judged(pair, sent):
            lines.append(setting + said)
        lines += filter(None, (_full(pair), _published(pair)))
    if not lines:
        return "This result can't answer the question: it has no two cases with a common number."
    own = [messages.modelled_time(result.modelled)] if result.modelled else []
    # Cases that differ in an option alone have the same endpoints.
    contained = result.cases[result.cases["access"].isin(CONTAINERS)][["switch", "access"]].drop_duplicates()
    if named := ", ".join(f"{vocabulary.switch(case.switch).words} over {case.access}" for case in contained.itertuples()):
        own.append(f"The endpoints were containers, no virtual machines: {named}.")
    return "\n\n".join([*lines, *comparison.notes(result, own)])


def _delivers(pair: Pair) -> str:
    """Who delivers more, a sentence for each traffic."""
    base, other = pair.names()
    rates = told("{1} against {0}", *pair.both(**RECEIVED), show=lambda one: units.si(one.median, "packets/s"))
    # In an emulator's time a rate says nothing.
    note = "".join(rates) if pair.result.modelled else ""
    said = []
    for where, words in (
        (RECEIVED, lambda ratio: f"delivers {comparison.as_many(ratio, 'packets of a UDP flood', base, note)}"),
        ({**FORWARD, "metric": "packet_rate_received"}, lambda ratio: f"brings back {comparison.as_many(ratio, 'packets', base)}"),
        ({**TCP, "metric": "goodput"}, lambda ratio: f"has {comparison.of(ratio, f'the TCP goodput of {base}')}"),
    ):
        if measured(ratio := pair.ratio(**where)):
            said.append(f"{other} {words(ratio)}{'' if ratio.decided else '; the difference is not significant'}.")
    if said and pair.result.modelled:
        said[0] = f"On {pair.result.modelled} as modelled, {said[0]}"
    return " ".join(said)


def _switches_threads(pair: Pair) -> str:
    said = []
    for where, per in ((FLOOD, "per packet of the flood"), (TCP, "per megabit of TCP")):
        ratio = pair.ratio(**where, metric=f"context_switches_per_{vocabulary.data(where['traffic']).per}")
        if measured(ratio):
            things = per if said else f"context switches {per}"
            said.append(comparison.as_many(ratio, things) + ("" if ratio.decided else ", which is not significant"))
    return f"It makes {' and '.join(said)}." if said else ""


def _judged(pair: Pair, sent: Iterable[tuple[str, str]]) -> str:
    """By what each of these traffics and loads is judged, a sentence for each."""
    base, other = pair.names()
    said = []
    for traffic, load in sent:
        headline = vocabulary.judged_by(traffic)
        ratio = pair.ratio(traffic=traffic, load=load, metric=headline.metric) if headline else stats.NOTHING
        # Of two zeros, say where nothing came back, there is no ratio.
        if measured(ratio) and math.isfinite(ratio.median):
            compared = comparison.of(ratio, f"the *{headline.words}* of {base}")
            sure = "" if ratio.decided else "; the difference is not significant"
            said.append(f"In {style.traffic_name(traffic, load)}, {other} has {compared}{sure}.")
    return " ".join(said)


def _full(pair: Pair) -> str:
    """What limits each path in the flood: the CPUs that have no time left. Empty where time is not modelled."""
    said = []
    for case, name in pair.named:
        if cpus := utilisation(pair.result, case, **FLOOD):
            parts = [f"CPU {one.number} ({one.role}) {share(one.full)}" for one in cpus if one.full.median >= HARDLY]
            said.append(f"with {name} {', '.join(parts)}")
    return f"Share of the flood's time that each CPU works: {'; '.join(said)}." if said else ""


def _published(pair: Pair) -> str:
    """What others measured of the same two, where time is modelled: a number of an emulator is set beside nobody's."""
    ways = pair.result.cases.loc[[pair.base, pair.other], ["switch", "access", "topology"]].itertuples(index=False, name=None)
    if not pair.result.modelled or list(ways) != MAIN_PAIR:
        return ""
    return messages.published_beside([f"{one.figure} ({one.target})" for one in published.every() if one.id in BESIDE])


@dataclass(frozen=True)
class Cpu:
    """A CPU of one case, under one traffic."""

    number: int
    role: str
    full: stats.Estimate
    """The part of the time in which it worked, 0 to 1; a sender that spins works all the time."""


def utilisation(result: Result, case_id: str, **where: object) -> list[Cpu]:
    """How full each CPU of a case was in modelled time, the fullest first: the part of a window in which it worked, as the model counted
    its cycles; polls that found nothing are no work. None where time was not modelled, or was idle."""
    frequency = (result.manifest.get("facts", {}).get("clock") or {}).get("frequency_hz")
    rows = select(result.own_numbers, case_id=case_id, name=["cycles", f"{model.EMPTY}_cycles"], source="model", **where)
    rows = rows[rows["cpu"].notna() & rows["value"].notna()]
    if not frequency or rows.empty:
        return []
    signed = rows.assign(part=np.where(rows["name"] == "cycles", rows["value"], -rows["value"]), per=rows["enabled_s"] * frequency)
    windows = signed.groupby(["run_id", "window", "cpu"], as_index=False).agg(part=("part", "sum"), per=("per", "max"))
    roles = result.cpu_roles(case_id)
    found = [Cpu(int(cpu), roles.get(int(cpu), ""), stats.estimate(samples(one))) for cpu, one in windows.groupby("cpu")]
    return sorted(found, key=lambda one: -one.full.median)


def _sizes(pair: Pair) -> Iterator[str]:
    """The frames in which TCP reaches the receiver."""
    base, other = pair.names()
    if mean := pair.values("mean frame at the receiver", "bytes", **TCP, metric="frame_bytes_received"):
        yield from mean
        yield f"so {other} moves {comparison.as_many(pair.ratio(**TCP, metric='packets_per_megabyte'), 'packets', base)} for the same data"


def _offload(pair: Pair, ratio: stats.Estimate) -> str:
    """Is TCP carried in super-packets (segmentation offload) or in MTU-sized packets?"""
    packets = pair.ratio(**TCP, metric="packets_per_megabyte")
    if comparison.alike(packets):
        return "Both carry TCP in packets of about the same size, so segmentation offload makes no difference between them."
    if not packets.decided:
        return ""
    whole, cut = pair.names() if packets.median > 1 else reversed(pair.names())
    size = max(one.median for one in pair.both(**TCP, metric="frame_bytes_received"))
    offload = "a frame larger than the MTU is a segmentation-offload super-packet that nobody had to cut. " if size > LARGEST_FRAME else ""
    text = (
        f"{whole} passes TCP in larger packets than {cut}: {offload}{cut} pays the cost per packet, in the switch and in both endpoints, "
        "more often for the same data."
    )
    if ratio.decided and (ratio.median < 1) != (packets.median > 1):
        return text + " It is faster in spite of that: its cost per packet must be lower by more."
    return text


def _limits(pair: Pair, _: stats.Estimate) -> str:
    """Was the CPU that moves packets the limit: busy with packets throughout the flood, or waiting for them?"""
    said = []
    for case, name in pair.named:
        cpu = pair.cpu(case)
        busy, idle = pair.of(case, **FLOOD, metric="pmd_busy"), pair.of(case, **FLOOD, metric="cpu_idle", cpu=cpu)
        if measured(busy):
            text, full = f"{name}'s poll-mode thread found packets in {share(busy)} of its cycles", busy.median > comparison.NEAR_ALL
        else:
            text, full = (
                f"The CPU that moves packets for {name} (cpu{cpu}) was idle {share(idle)} of the time",
                idle.median < comparison.NEAR_NONE,
            )
        if full:
            said.append(f"{text}: it had no time left.")
        elif measured(busy) or measured(idle):
            said.append(f"{text}: it is not the {'' if measured(busy) else 'only '}limit.{_endpoints(pair, case)}")
    return " ".join(said)


def _endpoints(pair: Pair, case: str) -> str:
    """How much of the endpoints' CPUs was left under the flood."""
    roles = pair.result.cpu_roles(case)
    cpus = [cpu for cpu, role in roles.items() if role == "guest"]
    # On a host with too few CPUs the endpoints run where everything else does.
    whose = "the guests' CPUs" if cpus else "the CPU that the endpoints share with the host"
    cpus = cpus or [cpu for cpu, role in roles.items() if role == "host-other"]
    said = [text for cpu in cpus for text in told(f"cpu{cpu} {{}}", pair.of(case, **FLOOD, metric="cpu_idle", cpu=cpu))]
    return f" Idle on {whose}: {', '.join(said)} (a sender that floods uses all of its own)." if said else ""


def _delivered(pair: Pair) -> list[str]:
    offered = told(" at {}", pair.of(pair.other, **EQUAL, metric="offered_rate"), show=lambda one: units.si(one.median, "packets/s"))
    words = f"share of the packets sent{''.join(offered)} that was delivered"
    return pair.values(words, "fraction", **EQUAL, metric="received_fraction")


def _searched(pair: Pair) -> Iterator[str]:
    """The partial-drop rate; what a packet costs at the no-drop rate, where the two are at different rates; and what is lost above it."""
    yield from pair.line("partial-drop rate", "packets/s", **PDR, metric="search_rate")
    yield from pair.line("context switches per packet, each at its own no-drop rate", **NDR, metric="context_switches_per_packet")
    for case, name in pair.named:
        lost = {words: pair.of(case, **NDR, metric=f"search_upper_{metric}") for metric, words in BEYOND.items()}
        lost = {words: value for words, value in lost.items() if measured(value)}
        worst = max(lost, key=lambda words: lost[words].median, default="")
        if worst and lost[worst].median > 0:
            part = f"{worst} ({share(lost[worst])} of what was due)"
            yield f"at the lowest rate that is too high for {name}, the largest part of what is missing was {part}"


BEYOND = {
    "unsent": "not sent: the sender could not keep the pace, or its queue to the switch was full",
    "lost_before_switch": "lost before the switch",
    "lost_in_switch": "lost in the switch",
    "lost_after_switch": "lost after the switch",
}
"""What becomes of packets at the lowest rate that is too high."""


def _unfound(pair: Pair) -> str:
    """Searches that found no rate: it may be below the lowest tried, or above the highest, and the median of the others leaves it out."""
    counts = {name: metrics.happened(pair.result, case_id=case, **NDR, metric="search_ended") for case, name in pair.named}
    return "; ".join(f"over {name} {found} of {tried} searches found a rate" for name, (found, tried) in counts.items() if found < tried)


def _makers(where: Mapping[str, str], per: str, pair: Pair) -> Iterator[str]:
    """Context switches per unit of data, and which role makes most of them in each case."""
    yield from pair.line(f"per {per}", **where, metric=f"context_switches_per_{per}")
    for case, name in pair.named:
        table = SOFTWARE.summary(pair.result, ["context_switches_per_second"], case_id=case, cpu=-1, **where)
        host_is_endpoint = pair.result.cases.loc[case, "topology"] == "vm2host"
        table = table[~table["role"].isin(["all", "path"] if host_is_endpoint else ["all", "path", "host-other"])]
        made = table.set_index("role")["median"]
        if made.empty or made.sum() == 0:
            yield f"in {name} nobody makes any"
        else:
            yield f"in {name}, {made.idxmax()} threads make {100 * made.max() / made.sum():.0f} % of them"


def _sleepers(where: Mapping[str, str], pair: Pair, ratio: stats.Estimate) -> str:
    """Sleeping workers are shown by voluntary switches of the vhost role that the other case does not have."""
    base, other = pair.both(**where, metric="context_switches_voluntary_per_second", role="vhost")
    if not ratio.decided or not measured(base) or base.median <= 0 or (measured(other) and other.median >= base.median):
        return ""
    names = pair.names()
    return (
        f"{names[0]}'s vhost threads sleep when a queue is empty and are woken for new frames: {plain(base)} voluntary switches per second "
        f"(in {names[1]}: {plain(other) if measured(other) else 'no such thread'})."
    )


def never_sleeps(where: Mapping[str, str], pair: Pair) -> Finding | None:
    """The poll-mode thread keeps its CPU whether packets come or not."""
    cpu = pair.cpu(pair.other, "switch")
    idle, asleep = pair.of(pair.other, **where, metric="pmd_idle"), pair.of(pair.other, **where, metric="cpu_idle", cpu=cpu)
    if not measured(idle, asleep):
        return None
    turns = pair.of(pair.other, **where, metric="pmd_iterations_per_second")
    sleeps = pair.of(pair.other, **where, metric="context_switches_voluntary_per_second", role="switch")
    evidence = (
        f"{style.traffic_name(**where)}: cpu{cpu} was idle {share(asleep)} of the time",
        f"{share(idle)} of the poll-mode thread's cycles found no packet",
        *told("it went round its ports {} times per second", turns, show=plain),
        *told("all threads of ovs-vswitchd together gave up a CPU {} times per second", sleeps, show=plain),
    )
    if asleep.median > comparison.NEAR_NONE:
        return Finding("The poll-mode thread's CPU does go idle here.", evidence)
    reason = (
        "it asks each port for packets in a loop instead of waiting for an interrupt; that saves the wake-up and costs a whole CPU at any "
        "load. Its CPU use therefore says nothing about load: its busy share does."
    )
    return Finding("OVS-DPDK's poll-mode thread never sleeps.", evidence, reason)


def where_kernel_pays(where: Mapping[str, str], pair: Pair) -> Finding | None:
    """Kernel OVS: the datapath runs in whoever hands it a packet, not in the daemon."""
    case = pair.result.cases.loc[pair.base]
    daemon, workers = (pair.of(pair.base, **where, metric="running", role=role) for role in ("switch", "vhost"))
    if case["switch"] != "kernel-ovs" or not measured(daemon, workers):
        return None
    cpu = pair.cpu(pair.base, "vhost")
    states = [pair.of(pair.base, **where, metric=f"cpu_{state}", cpu=cpu) for state in ("kernel", "softirq")]
    name = f"{style.traffic_name(**where)}, {case['access']}"
    evidence = (
        *told(f"{name}: ovs-vswitchd used {{}} of a CPU, the vhost threads {{}}", daemon, workers),
        *told(f"cpu{cpu} spent {{}} of its time in the kernel and {{}} in softirqs", *states),
    )
    if daemon.median > workers.median / 10:
        return Finding("Kernel OVS's daemon is itself a part of the cost here.", evidence)
    reason = (
        "the kernel datapath forwards a known flow in the context of the thread that hands in the packet; the daemon is asked for unknown "
        "flows only."
    )
    return Finding("The kernel datapath's cost is paid by the vhost threads, not by OVS's daemon.", evidence, reason)


def local_port(where: Mapping[str, str], pair: Pair) -> Finding | None:
    """vm2host (T2): OVS-DPDK's local port is a tap that the main thread, not the poll-mode thread, reads and writes."""
    case, switched = pair.result.cases.loc[pair.other], {"metric": "context_switches_per_second", "role": "switch"}
    switches, quiet = (pair.of(pair.other, **traffic, **switched) for traffic in (where, PING))
    if (case["topology"], case["switch"]) != ("vm2host", "ovs-dpdk") or not measured(switches):
        return None
    ratio, running = pair.ratio(**where, **switched), pair.of(pair.other, **where, metric="running", role="switch")
    evidence = (
        f"{style.traffic_name(**where)}: ovs-vswitchd's threads were switched {plain(switches)} times per second",
        *told(f"that is {{}} the switches of {pair.names()[0]}'s daemon", ratio, show=comparison.times),
        *told("with paced ping it was {} times per second", quiet, show=plain),
        *told("they ran for {} of one CPU's time, about 100 % of which is the poll-mode thread", running),
    )
    if not ratio.decided or ratio.median < 2:
        return Finding("The daemon's threads are not switched clearly more often: the local port's thread does not show here.", evidence)
    reason = (
        "the bridge's local port is a tap of the host's kernel: the poll-mode thread writes each frame to it by a system call, and frames "
        "from the host (TCP's acknowledgements among them) are read by the daemon's main thread, which is no poll-mode thread and sleeps "
        "between them."
    )
    return Finding("To the host, OVS-DPDK leaves its poll-mode path.", evidence, reason)


LOST = {
    "before": "the sender's interface took the packets and the switch never counted them, so the ring or queue between them was full: "
    "whoever empties it was slower than the sender.",
    "in": "counted in and not out, so dropped there or for want of room at the output (with vhost-user that is the receiver's ring, which "
    "the switch itself fills).",
    "after": "counted out and not received, so the receiver did not empty its ring fast enough.",
}
"""Where packets were lost, seen from the switch, and what that means."""


def losses(pair: Pair) -> Finding | None:
    """Which hop loses the flood's packets, in each of the two cases."""
    evidence, reasons = [], {}
    for (case, name), where in ((named, where) for named in pair.named for where in (FLOOD, NDR, PDR, EQUAL)):
        total = pair.of(case, **where, metric="loss_total")
        hops = {hop: pair.of(case, **where, metric=f"loss_{hop}_switch") for hop in LOST}
        if not measured(total, *hops.values()):
            continue
        text = f"{name}, {style.LOAD_NAMES[where['load']]}: {share(total)} of the packets sent"
        if total.median < 0.001:
            evidence.append(f"{text}, nothing to explain")
            continue
        worst = max(hops, key=lambda hop: hops[hop].median)
        evidence.append(f"{text} in total, most of it {worst} the switch ({share(hops[worst])})")
        reasons[worst] = f"Lost {worst} the switch: {LOST[worst]}"
    return Finding("Where the flood loses packets.", tuple(evidence), " ".join(reasons.values())) if evidence else None


def _wake_ups(pair: Pair, ratio: stats.Estimate) -> str:
    base, other = pair.both(**REPLIES)
    if measured(base, other) and ratio.decided and (base.median - other.median) * (1 - ratio.median) > 0:
        return "the slower one also switches threads more often for each reply, as if wake-ups add delay."
    return ""


def access_cost(pair: Pair) -> Finding | None:
    """One switch, two accesses: user-space copying (virtio-net) against the kernel's vhost workers."""
    cases = pair.result.cases
    if cases.loc[pair.base, "switch"] != cases.loc[pair.other, "switch"] or cases.loc[pair.base, "access"] != "virtio-net":
        return None
    user = [pair.of(case, **FLOOD, metric="cpu_user", cpu=pair.cpu(case, "vhost")) for case in (pair.base, pair.other)]
    switches = pair.ratio(**FLOOD, metric="context_switches_per_packet")
    if not measured(*user, switches):
        return None
    base, other = pair.names()
    evidence = (
        f"user-mode time on the packet-moving CPU: {base} {share(user[0])}, {other} {share(user[1])}",
        f"context switches per packet, {other} against {base}: {comparison.times(switches)}",
    )
    if user[0].median <= user[1].median:
        return Finding(f"{base} does not show more user-mode time than {other} here.", evidence)
    reason = (
        f"with {base}, QEMU's main loop in user space moves each frame between guest and tap by system calls; with {other} a kernel worker "
        "does it without leaving the kernel."
    )
    return Finding(f"{base} pays for its way through user space.", evidence, reason)


LOOKS: tuple[comparison.Look, ...] = (
    Comparison(
        RECEIVED,
        topic="Packets of a UDP flood at saturation",
        claim="{other} delivers {way} packets of a UDP flood than {base}.",
        shown="received",
        unit="packets/s",
        reason=_limits,
    ),
    Comparison(
        {**TCP, "metric": "goodput"},
        topic="TCP",
        claim="TCP is {way} over {other} than over {base}.",
        ways=("faster", "slower"),
        shown="goodput",
        unit="bit/s",
        evidence=_sizes,
        reason=_offload,
    ),
    losses,
    Comparison(
        {**NDR, "metric": "search_rate"},
        topic="No-drop rate",
        claim="The no-drop rate is {way} over {other} than over {base}.",
        ways=("higher", "lower"),
        shown="no-drop rate",
        unit="packets/s",
        evidence=_searched,
        doubt=_unfound,
    ),
    Comparison(
        {**EQUAL, "metric": "context_switches_per_packet"},
        topic="Context switches per packet at the same offered rate",
        claim="At the same offered rate, {other} makes {way} context switches per packet than {base}.",
        shown="context switches per packet",
        evidence=_delivered,
    ),
    comparison.first(
        *(
            Comparison(
                {**where, "metric": "context_switches_per_second"},
                topic="Context switches per second",
                claim="{other} makes {way} context switches per second than {base}.",
                shown=f"{style.traffic_name(**where)}, per second",
                evidence=partial(_makers, where, per),
                reason=partial(_sleepers, where),
            )
            for where, per in ((FLOOD, "packet"), (TCP, "megabit"))
        )
    ),
    comparison.first(*(partial(never_sleeps, where) for where in (PING, EQUAL, FLOOD, TCP))),
    comparison.first(*(partial(where_kernel_pays, where) for where in (FLOOD, TCP))),
    access_cost,
    comparison.first(*(partial(local_port, where) for where in (TCP, FLOOD))),
    Comparison(
        {**PING, "metric": "rtt_p50"},
        topic="Median latency",
        claim="A paced round trip is {way} over {other} than over {base}.",
        ways=("slower", "quicker"),
        shown="median",
        unit="seconds",
        evidence=lambda pair: [
            *pair.line("99th percentile", "seconds", **PING, metric="rtt_p99"),
            *pair.values("context switches per reply", **REPLIES),
        ],
        reason=_wake_ups,
    ),
)
findings = partial(comparison.findings, looks=LOOKS)
"""Every finding of every pair of cases, in the order in which a reader asks for them; as a numbered list:"""
markdown = partial(comparison.explained, looks=LOOKS)
