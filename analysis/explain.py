# SPDX-License-Identifier: GPL-2.0-or-later
"""The explanation of two switches, or two ways to reach one, in words: the answer, and the findings behind it.

Findings of the usual form are the `Comparison`s below; functions look at mechanisms: what a poll-mode thread, the kernel's datapath or the
bridge's local port do here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from analysis import comparison, messages, metrics, published, stats, style, utilisation, vocabulary
from analysis.comparison import (
    EQUAL,
    FLOOD,
    FORWARD,
    NDR,
    PDR,
    PING,
    TCP,
    Comparison,
    Finding,
    Pair,
    as_many,
    measured,
    not_significant,
    numbered,
    of,
    pairs,
    sentence,
    share,
    times,
    undecided,
)
from analysis.load import Result
from analysis.sources import SOFTWARE
from terms import units

NEAR_ALL = 0.95
NEAR_NONE = 0.05
"""Shares of a CPU above and below which words like "never sleeps" or "is the bottleneck" are allowed."""

SAME = (0.8, 1.25)
"""An interval of a ratio that lies within is called "about the same"."""
LARGEST_FRAME = 1600
"""Bytes: a mean above it can't come from frames of a 1500-byte MTU."""

CONTAINERS = ("veth", "virtio-user")
"""Accesses of containers."""

MAIN_PAIR = [("kernel-ovs", "vhost-net", "vm2vm"), ("ovs-dpdk", "vhost-user", "vm2vm")]
BESIDE = ("T1-throughput", "T1-context-switches", "T3-vhost-user-over-vhost-net")
"""The published figures of just that pair, by their ids."""
HARDLY = 0.1
"""CPUs that work less of the time limit nothing, and are not named."""


# -- the answer -------------------------------------------------------------------------------------------------


def answer(result: Result) -> str:
    """For each pair of cases who delivers more, and who makes how many context switches; then what limits it, and what was published."""
    lines = []
    for pair in pairs(result):
        setting = f"**{pair.setting}**: " if pair.setting else ""
        if told := " ".join(filter(None, (_delivers(pair), _switches_threads(pair)))):
            lines.append(setting + told)
        lines += filter(None, (_full(pair), _published(pair)))
    if not lines:
        return "This result can't answer the question: it has no two cases with a common number."
    if result.emulated:
        lines.append("*Measured in the emulated lab: the rates are the emulator's, no result about hardware.*")
    if result.modelled:
        lines.append(f"*{messages.modelled_time(result.modelled)}*")
    lines += [f"*{sentence(text)}.*" for text in (*_containers(result), *result.manifest.get("left_out", []))]
    return "\n\n".join(lines)


def _containers(result: Result) -> list[str]:
    """A sentence where endpoints were no virtual machines, whatever the question asked for."""
    cases = result.cases[result.cases["access"].isin(CONTAINERS)]
    # Cases that differ in an option alone have the same endpoints.
    named = ", ".join(dict.fromkeys(f"{vocabulary.switch(case.switch).words} over {case.access}" for case in cases.itertuples()))
    return [f"the endpoints were containers, no virtual machines: {named}"] if named else []


def _delivers(pair: Pair) -> str:
    """Who delivers more, a sentence for each traffic."""
    base, other = pair.names()
    said = []
    for where, metric, words in (
        (FLOOD, "packet_rate_received", lambda one: f"{other} delivers {as_many(one, 'packets of a UDP flood', base, _rates(pair))}"),
        (FORWARD, "packet_rate_received", lambda one: f"{other} brings back {as_many(one, 'packets', base)}"),
        (TCP, "goodput", lambda one: f"{other} has {of(one, f'the TCP goodput of {base}')}"),
    ):
        ratio = pair.ratio(**where, metric=metric)
        if measured(ratio):
            said.append(f"{words(ratio)}{'' if ratio.decided else '; the difference is not significant'}.")
    if said and pair.result.modelled:
        said[0] = f"On {pair.result.modelled} as modelled, {said[0]}"
    return " ".join(said)


def _rates(pair: Pair) -> str:
    """The rates themselves, where they are a processor's and not an emulator's."""
    base, other = pair.both(**FLOOD, metric="packet_rate_received")
    if not pair.result.modelled or not measured(base, other):
        return ""
    return f"{units.si(other.median, 'packets/s')} against {units.si(base.median, 'packets/s')}"


def _full(pair: Pair) -> str:
    """What limits each path in the flood: the CPUs that have no time left. Empty where time is not modelled."""
    said = []
    for case, name in zip((pair.base, pair.other), pair.names(), strict=True):
        cpus = utilisation.of(pair.result, case, **FLOOD)
        if cpus:
            parts = [f"CPU {one.number} ({one.role}) {share(one.full)}" for one in cpus if one.full.median >= HARDLY]
            said.append(f"with {name} {', '.join(parts)}")
    return f"Share of the flood's time that each CPU works: {'; '.join(said)}." if said else ""


def _published(pair: Pair) -> str:
    """What others measured of the same two, where time is modelled: a number of an emulator is set beside nobody's."""
    if not pair.result.modelled:
        return ""
    cases = [pair.result.cases.loc[case] for case in (pair.base, pair.other)]
    ways = [(case["switch"], case["access"], case["topology"]) for case in cases]
    figures = [f"{one.figure} ({one.target})" for one in published.every() if one.id in BESIDE] if ways == MAIN_PAIR else []
    return messages.published_beside(figures) if figures else ""


def _switches_threads(pair: Pair) -> str:
    said = []
    for where, things in ((FLOOD, "context switches per packet of the flood"), (TCP, "context switches per megabit of TCP")):
        ratio = pair.ratio(**where, metric=f"context_switches_per_{vocabulary.data(where['traffic']).per}")
        if measured(ratio):
            said.append(as_many(ratio, things if not said else things.removeprefix("context switches ")))
            said[-1] += "" if ratio.decided else ", which is not significant"
    return f"It makes {' and '.join(said)}." if said else ""


# -- the findings -----------------------------------------------------------------------------------------------


def findings(result: Result) -> list[Finding]:
    """Every finding of every pair of cases, in the order in which a reader asks for them."""
    return comparison.findings(result, LOOKS)


def markdown(result: Result) -> str:
    """The findings as a numbered list."""
    return numbered(findings(result), "No finding: this result has no two cases with a common number.")


def _sizes(pair: Pair) -> Iterator[str]:
    """The frames in which TCP reaches the receiver."""
    if measured(*pair.both(**TCP, metric="frame_bytes_received")):
        base, other = pair.names()
        yield f"mean frame at the receiver: {pair.text('bytes', **TCP, metric='frame_bytes_received')}"
        yield f"so {other} moves {as_many(pair.ratio(**TCP, metric='packets_per_megabyte'), 'packets', base)} for the same data"


def _offload(pair: Pair, ratio: stats.Estimate) -> str:
    """Is TCP carried in super-packets (segmentation offload) or in MTU-sized packets?"""
    base, other = pair.names()
    packets = pair.ratio(**TCP, metric="packets_per_megabyte")
    if packets.low is None or packets.high is None:
        return ""
    if SAME[0] < packets.low and packets.high < SAME[1]:
        return "Both carry TCP in packets of about the same size, so segmentation offload makes no difference between them."
    if not packets.decided:
        return ""
    cut, whole = (other, base) if packets.median > 1 else (base, other)
    size = max(one.median for one in pair.both(**TCP, metric="frame_bytes_received"))
    offload = "a frame larger than the MTU is a segmentation-offload super-packet that nobody had to cut. "
    text = (
        f"{whole} passes TCP in larger packets than {cut}: {offload if size > LARGEST_FRAME else ''}{cut} pays the "
        f"cost per packet, in the switch and in both endpoints, more often for the same data."
    )
    if ratio.decided and (ratio.median < 1) != (packets.median > 1):
        return text + " It is faster in spite of that: its cost per packet must be lower by more."
    return text


def _limits(pair: Pair, _: stats.Estimate) -> str:
    """Was the CPU that moves packets the limit?"""
    return " ".join(filter(None, (_limit(pair, case, name) for case, name in zip((pair.base, pair.other), pair.names(), strict=True))))


def _limit(pair: Pair, case: str, name: str) -> str:
    """Whether the packet-moving CPU of a case was busy with packets throughout the flood, or waited for them."""
    busy = pair.of(case, **FLOOD, metric="pmd_busy")
    if measured(busy):
        text = f"{name}'s poll-mode thread found packets in {share(busy)} of its cycles"
        if busy.median > NEAR_ALL:
            return f"{text}: it had no time left."
        return f"{text}: it is not the limit.{_endpoints(pair, case)}"
    mover = packet_cpu(pair, case)
    idle = pair.of(case, **FLOOD, metric="cpu_idle", cpu=mover) if mover is not None else stats.NOTHING
    if not measured(idle):
        return ""
    text = f"The CPU that moves packets for {name} (cpu{mover}) was idle {share(idle)} of the time"
    if idle.median < NEAR_NONE:
        return f"{text}: it had no time left."
    return f"{text}: it is not the only limit.{_endpoints(pair, case)}"


def _endpoints(pair: Pair, case: str) -> str:
    """How much of the endpoints' CPUs was left under the flood."""
    roles = _cpu_roles(pair, case)
    cpus = [cpu for cpu, role in roles.items() if role == "guest"]
    # On a host with too few CPUs the endpoints run where everything else does.
    whose = "the guests' CPUs" if cpus else "the CPU that the endpoints share with the host"
    cpus = cpus or [cpu for cpu, role in roles.items() if role == "host-other"]
    idle = {cpu: pair.of(case, **FLOOD, metric="cpu_idle", cpu=cpu) for cpu in cpus}
    said = ", ".join(f"cpu{cpu} {share(value)}" for cpu, value in idle.items() if measured(value))
    return f" Idle on {whose}: {said} (a sender that floods uses all of its own)." if said else ""


def _delivered(pair: Pair) -> Iterator[str]:
    received, offered = pair.both(**EQUAL, metric="received_fraction"), pair.of(pair.other, **EQUAL, metric="offered_rate")
    if measured(*received):
        rate = f" at {units.si(offered.median, 'packets/s')}" if measured(offered) else ""
        yield f"share of the packets sent{rate} that was delivered: {pair.text('fraction', **EQUAL, metric='received_fraction')}"


def own_limit(pair: Pair) -> Finding | None:
    """The no-drop rate of each, as a search found it; and what a packet costs there, where the two are at different rates."""
    ratio = pair.ratio(**NDR, metric="search_rate")
    if not measured(ratio):
        return None
    base, other = pair.names()
    evidence = [
        *pair.line("no-drop rate", "packets/s", **NDR, metric="search_rate"),
        *pair.line("partial-drop rate", "packets/s", **PDR, metric="search_rate"),
        *pair.line("context switches per packet, each at its own no-drop rate", **NDR, metric="context_switches_per_packet"),
        *(text for case, name in ((pair.base, base), (pair.other, other)) if (text := _beyond(pair, case, name))),
    ]
    if why := _unfound(pair) or undecided(ratio):
        return Finding(not_significant("No-drop rate", base, other, why), tuple(evidence))
    return Finding(f"The no-drop rate is {'higher' if ratio.median > 1 else 'lower'} over {other} than over {base}.", tuple(evidence))


def _unfound(pair: Pair) -> str:
    """Searches that found no rate: it may be below the lowest tried, or above the highest, and the median of the others leaves it out."""
    named = zip(pair.names(), (pair.base, pair.other), strict=True)
    counts = {name: metrics.searches_ended(pair.result, case, "ndr") for name, case in named}
    return "; ".join(f"over {name} {found} of {tried} searches found a rate" for name, (found, tried) in counts.items() if found < tried)


BEYOND = {
    "search_upper_unsent": "not sent: the sender could not keep the pace, or its queue to the switch was full",
    "search_upper_lost_before_switch": "lost before the switch",
    "search_upper_lost_in_switch": "lost in the switch",
    "search_upper_lost_after_switch": "lost after the switch",
}
"""What becomes of packets at the lowest rate that is too high."""


def _beyond(pair: Pair, case: str, name: str) -> str:
    shares = {words: pair.of(case, **NDR, metric=metric) for metric, words in BEYOND.items()}
    known = {words: value for words, value in shares.items() if measured(value)}
    worst = max(known, key=lambda words: known[words].median, default="")
    if not worst or known[worst].median <= 0:
        return ""
    part = f"{worst} ({share(known[worst])} of what was due)"
    return f"at the lowest rate that is too high for {name}, the largest part of what is missing was {part}"


def _makers(where: Mapping[str, str], per: str) -> Callable[[Pair], Iterator[str]]:
    """Per unit of data, and which role makes most of them in each case."""

    def lines(pair: Pair) -> Iterator[str]:
        yield from pair.line(f"per {per}", **where, metric=f"context_switches_per_{per}")
        yield from (_who(pair, case, name, where) for case, name in zip((pair.base, pair.other), pair.names(), strict=True))

    return lines


def _who(pair: Pair, case: str, name: str, where: dict[str, str]) -> str:
    role, part = _largest(pair, case, where)
    return f"in {name}, {role} threads make {100 * part:.0f} % of them" if role else f"in {name} nobody makes any"


def _why_switching(where: Mapping[str, str]) -> Callable[[Pair, stats.Estimate], str]:
    """Sleeping workers are shown by voluntary switches of the vhost role that the other case does not have."""

    def reason(pair: Pair, ratio: stats.Estimate) -> str:
        base, other = pair.both(**where, metric="context_switches_voluntary_per_second", role="vhost")
        names = pair.names()
        if not ratio.decided or not measured(base) or base.median <= 0 or (measured(other) and other.median >= base.median):
            return ""
        left = f"{units.si(other.median, '')}" if measured(other) else "no such thread"
        return (
            f"{names[0]}'s vhost threads sleep when a queue is empty and are woken for new frames: "
            f"{units.si(base.median, '')} voluntary switches per second (in {names[1]}: {left})."
        )

    return reason


def never_sleeps(pair: Pair) -> Finding | None:
    """The poll-mode thread keeps its CPU whether packets come or not."""
    for where in (PING, EQUAL, FLOOD, TCP):
        idle = pair.of(pair.other, **where, metric="pmd_idle")
        cpu = _cpu(pair, pair.other, ("switch",))
        asleep = pair.of(pair.other, **where, metric="cpu_idle", cpu=cpu) if cpu is not None else stats.NOTHING
        if not measured(idle, asleep):
            continue
        traffic = style.traffic_name(where["traffic"], where["load"])
        turns = pair.of(pair.other, **where, metric="pmd_iterations_per_second")
        sleeps = pair.of(pair.other, **where, metric="context_switches_voluntary_per_second", role="switch")
        evidence = [
            f"{traffic}: cpu{cpu} was idle {share(asleep)} of the time",
            f"{share(idle)} of the poll-mode thread's cycles found no packet",
        ]
        if measured(turns):
            evidence.append(f"it went round its ports {units.si(turns.median, '')} times per second")
        if measured(sleeps):
            evidence.append(f"all threads of ovs-vswitchd together gave up a CPU {units.si(sleeps.median, '')} times per second")
        if asleep.median > NEAR_NONE:
            return Finding("The poll-mode thread's CPU does go idle here.", tuple(evidence))
        reason = (
            "it asks each port for packets in a loop instead of waiting for an interrupt; that saves the wake-up and "
            "costs a whole CPU at any load. Its CPU use therefore says nothing about load: its busy share does."
        )
        return Finding("OVS-DPDK's poll-mode thread never sleeps.", tuple(evidence), reason)
    return None


def where_kernel_pays(pair: Pair) -> Finding | None:
    """Kernel OVS: the datapath runs in whoever hands it a packet, not in the daemon."""
    if pair.result.cases.loc[pair.base, "switch"] != "kernel-ovs":
        return None
    access = pair.result.cases.loc[pair.base, "access"]
    for where in (FLOOD, TCP):
        daemon = pair.of(pair.base, **where, metric="running", role="switch")
        workers = pair.of(pair.base, **where, metric="running", role="vhost")
        if not measured(daemon, workers):
            continue
        cpu = _cpu(pair, pair.base, ("vhost",))
        kernel, soft = (pair.of(pair.base, **where, metric=f"cpu_{state}", cpu=cpu) for state in ("kernel", "softirq"))
        evidence = [
            f"{style.traffic_name(where['traffic'], where['load'])}, {access}: "
            f"ovs-vswitchd used {share(daemon)} of a CPU, the vhost threads {share(workers)}"
        ]
        if measured(kernel, soft):
            evidence.append(f"cpu{cpu} spent {share(kernel)} of its time in the kernel and {share(soft)} in softirqs")
        if daemon.median > workers.median / 10:
            return Finding("Kernel OVS's daemon is itself a part of the cost here.", tuple(evidence))
        reason = (
            "the kernel datapath forwards a known flow in the context of the thread that hands in the packet; the "
            "daemon is asked for unknown flows only."
        )
        return Finding("The kernel datapath's cost is paid by the vhost threads, not by OVS's daemon.", tuple(evidence), reason)
    return None


def local_port(pair: Pair) -> Finding | None:
    """vm2host (T2): OVS-DPDK's local port is a tap that the main thread, not the poll-mode thread, reads and writes."""
    if pair.result.cases.loc[pair.other, "topology"] != "vm2host" or pair.result.cases.loc[pair.other, "switch"] != "ovs-dpdk":
        return None
    for where in (TCP, FLOOD):
        switches = pair.of(pair.other, **where, metric="context_switches_per_second", role="switch")
        quiet = pair.of(pair.other, **PING, metric="context_switches_per_second", role="switch")
        running = pair.of(pair.other, **where, metric="running", role="switch")
        if not measured(switches):
            continue
        ratio = pair.ratio(**where, metric="context_switches_per_second", role="switch")
        traffic = style.traffic_name(where["traffic"], where["load"])
        evidence = [f"{traffic}: ovs-vswitchd's threads were switched {units.si(switches.median, '')} times per second"]
        if measured(ratio):
            evidence.append(f"that is {times(ratio)} the switches of {pair.names()[0]}'s daemon")
        if measured(quiet):
            evidence.append(f"with paced ping it was {units.si(quiet.median, '')} times per second")
        if measured(running):
            evidence.append(f"they ran for {share(running)} of one CPU's time, about 100 % of which is the poll-mode thread")
        if not ratio.decided or ratio.median < 2:
            claim = "The daemon's threads are not switched clearly more often: the local port's thread does not show here."
            return Finding(claim, tuple(evidence))
        reason = (
            "the bridge's local port is a tap of the host's kernel: the poll-mode thread writes each frame to it by a "
            "system call, and frames from the host (TCP's acknowledgements among them) are read by the daemon's main "
            "thread, which is no poll-mode thread and sleeps between them."
        )
        return Finding("To the host, OVS-DPDK leaves its poll-mode path.", tuple(evidence), reason)
    return None


def losses(pair: Pair) -> Finding | None:
    """Which hop loses the flood's packets, in each of the two cases."""
    said = [line for case, name in zip((pair.base, pair.other), pair.names(), strict=True) for line in _lost(pair, case, name)]
    if not said:
        return None
    reasons = list(dict.fromkeys(reason for _, reason in said if reason))
    return Finding("Where the flood loses packets.", tuple(text for text, _ in said), " ".join(reasons))


LOST_WHERE = {
    "loss_before_switch": (
        "before the switch",
        "Lost before the switch: the sender's interface took the packets and the switch never counted them, so the "
        "ring or queue between them was full: whoever empties it was slower than the sender.",
    ),
    "loss_in_switch": (
        "in the switch",
        "Lost in the switch: counted in and not out, so dropped there or for want of room at the output (with "
        "vhost-user that is the receiver's ring, which the switch itself fills).",
    ),
    "loss_after_switch": (
        "after the switch",
        "Lost after the switch: counted out and not received, so the receiver did not empty its ring fast enough.",
    ),
}


def _lost(pair: Pair, case: str, name: str) -> list[tuple[str, str]]:
    lines = []
    for where in (FLOOD, NDR, PDR, EQUAL):
        total = pair.of(case, **where, metric="loss_total")
        hops = {hop: pair.of(case, **where, metric=hop) for hop in LOST_WHERE}
        if not measured(total, *hops.values()):
            continue
        load = style.LOAD_NAMES[where["load"]]
        if total.median < 0.001:
            lines.append((f"{name}, {load}: {share(total)} of the packets sent, nothing to explain", ""))
            continue
        worst = max(hops, key=lambda hop: hops[hop].median)
        place, reason = LOST_WHERE[worst]
        text = f"{name}, {load}: {share(total)} of the packets sent in total, most of it {place} ({share(hops[worst])})"
        lines.append((text, reason))
    return lines


def _per_reply(pair: Pair) -> Iterator[str]:
    yield from pair.line("99th percentile", "seconds", **PING, metric="rtt_p99")
    if measured(*pair.both(**PING, metric="context_switches_per_reply")):
        yield f"context switches per reply: {pair.text(**PING, metric='context_switches_per_reply')}"


def _wake_ups(pair: Pair, ratio: stats.Estimate) -> str:
    base, other = pair.both(**PING, metric="context_switches_per_reply")
    if measured(base, other) and ratio.decided and (base.median - other.median) * (1 - ratio.median) > 0:
        return "the slower one also switches threads more often for each reply, as if wake-ups add delay."
    return ""


def access_cost(pair: Pair) -> Finding | None:
    """One switch, two accesses: user-space copying (virtio-net) against the kernel's vhost workers."""
    cases = pair.result.cases
    if cases.loc[pair.base, "switch"] != cases.loc[pair.other, "switch"] or cases.loc[pair.base, "access"] != "virtio-net":
        return None
    base, other = pair.names()
    cpus = _cpu(pair, pair.base, ("vhost",)), _cpu(pair, pair.other, ("vhost",))
    if None in cpus:
        return None
    user = [pair.of(c, **FLOOD, metric="cpu_user", cpu=cpu) for c, cpu in zip((pair.base, pair.other), cpus, strict=True)]
    switches = pair.ratio(**FLOOD, metric="context_switches_per_packet")
    if not measured(*user, switches):
        return None
    evidence = (
        f"user-mode time on the packet-moving CPU: {base} {share(user[0])}, {other} {share(user[1])}",
        f"context switches per packet, {other} against {base}: {times(switches)}",
    )
    if user[0].median <= user[1].median:
        return Finding(f"{base} does not show more user-mode time than {other} here.", evidence)
    reason = (
        f"with {base}, QEMU's main loop in user space moves each frame between guest and tap by system calls; with "
        f"{other} a kernel worker does it without leaving the kernel."
    )
    return Finding(f"{base} pays for its way through user space.", evidence, reason)


FLOODED = Comparison(
    where=FLOOD,
    metric="packet_rate_received",
    unit="packets/s",
    topic="Packets of a UDP flood at saturation",
    claim="{other} delivers {way} packets of a UDP flood than {base}.",
    ways=("more", "fewer"),
    shown="received",
    reason=_limits,
)
STREAMED = Comparison(
    where=TCP,
    metric="goodput",
    unit="bit/s",
    topic="TCP",
    claim="TCP is {way} over {other} than over {base}.",
    ways=("faster", "slower"),
    shown="goodput",
    evidence=_sizes,
    reason=_offload,
)
AT_EQUAL_RATE = Comparison(
    where=EQUAL,
    metric="context_switches_per_packet",
    unit="",
    topic="Context switches per packet at the same offered rate",
    claim="At the same offered rate, {other} makes {way} context switches per packet than {base}.",
    ways=("more", "fewer"),
    shown="context switches per packet",
    evidence=_delivered,
)
SWITCHED = [
    Comparison(
        where=where,
        metric="context_switches_per_second",
        unit="",
        topic="Context switches per second",
        claim="{other} makes {way} context switches per second than {base}.",
        ways=("more", "fewer"),
        shown=f"{style.traffic_name(where['traffic'], where['load'])}, per second",
        evidence=_makers(where, per),
        reason=_why_switching(where),
    )
    for where, per in ((FLOOD, "packet"), (TCP, "megabit"))
]
ROUND_TRIP = Comparison(
    where=PING,
    metric="rtt_p50",
    unit="seconds",
    topic="Median latency",
    claim="A paced round trip is {way} over {other} than over {base}.",
    ways=("slower", "quicker"),
    shown="median",
    evidence=_per_reply,
    reason=_wake_ups,
)
LOOKS: tuple[Callable[[Pair], Finding | None], ...] = (
    lambda pair: comparison.find(pair, FLOODED),
    lambda pair: comparison.find(pair, STREAMED),
    losses,
    own_limit,
    lambda pair: comparison.find(pair, AT_EQUAL_RATE),
    lambda pair: comparison.first(pair, SWITCHED),
    never_sleeps,
    where_kernel_pays,
    access_cost,
    local_port,
    lambda pair: comparison.find(pair, ROUND_TRIP),
)


# -- helpers ----------------------------------------------------------------------------------------------------


def packet_cpu(pair: Pair, case: str) -> int | None:
    """The CPU that moves packets in a case, whatever the switch."""
    return _cpu(pair, case, ("vhost", "switch", "softirq"))


def _cpu(pair: Pair, case: str, roles: tuple[str, ...]) -> int | None:
    """The first CPU that is for one of these roles in a case."""
    return next((cpu for cpu, role in _cpu_roles(pair, case).items() if role in roles), None)


def _cpu_roles(pair: Pair, case: str) -> dict[int, str]:
    """What each CPU was for, by the manifest."""
    runs = [run for run in pair.result.manifest.get("runs", []) if run["case_id"] == case and run.get("cpu_roles")]
    return {int(cpu): role for cpu, role in runs[0]["cpu_roles"].items()} if runs else {}


def _largest(pair: Pair, case: str, where: dict[str, str]) -> tuple[str, float]:
    """The role with the largest part of a case's context switches, and that part (0 to 1)."""
    table = SOFTWARE.summary(pair.result, ["context_switches_per_second"], case_id=case, cpu=-1, **where)
    host_is_endpoint = pair.result.cases.loc[case, "topology"] == "vm2host"
    table = table[~table["role"].isin(["all", "path"] if host_is_endpoint else ["all", "path", "host-other"])]
    table = table.set_index("role")["median"]
    return ("", 0.0) if table.empty or table.sum() == 0 else (str(table.idxmax()), float(table.max() / table.sum()))
