# SPDX-License-Identifier: GPL-2.0-or-later
"""The words, places and colours of switches and traffics: as the manifests of the results say that were loaded.

Names of plug-ins mean the same in every result, so what one manifest says holds for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from terms.vocabulary import Data, Headline, SwitchWords, TrafficWords, Vocabulary

LOADS = ("saturation", "ndr", "pdr", "equal", "paced", "none")
"""The order in which traffics are shown, before their own ranks."""
_PACKETS = Data("packet", "packet received", "packet_rate_received")
_BEFORE = Vocabulary(
    {
        "linux-bridge": SwitchWords("Linux bridge", 10, 0),
        "kernel-ovs": SwitchWords("kernel OVS", 20, 1),
        "ovs-userspace": SwitchWords("OVS in userspace", 30, 4),
        "ovs-afxdp": SwitchWords("OVS over AF_XDP", 40, 5),
        "ovs-dpdk": SwitchWords("OVS-DPDK", 50, 2),
        "vhost-switch": SwitchWords("vhost-switch", 60, 3),
    },
    {
        "tcp_stream": TrafficWords(
            "TCP stream",
            10,
            Data("megabit", "megabit of goodput", "goodput", scale=1e-6, modelled="model_tcp_bytes", modelled_scale=8e-6),
            (
                Headline("goodput", "goodput", ("saturation",)),
                Headline("context_switches_per_megabit", "context switches per megabit", ("saturation",)),
            ),
        ),
        "udp_flood": TrafficWords(
            "UDP flood",
            20,
            _PACKETS,
            (
                Headline("packet_rate_received", "received", ("saturation",)),
                Headline("search_rate", "found by search", ("ndr", "pdr")),
                Headline("loss_total", "lost", ("saturation", "equal")),
                Headline("loss_total", "lost when sent for long", ("ndr", "pdr")),
                Headline("context_switches_per_second", "context switches per second", ("saturation",)),
                Headline("context_switches_per_packet", "context switches per packet", ("saturation", "ndr")),
                Headline("pmd_busy", "poll-mode thread busy", ("saturation",)),
            ),
        ),
        "forward": TrafficWords(
            "forwarding",
            30,
            Data("packet", "packet sent back", "packet_rate_received"),
            (
                Headline("packet_rate_received", "sent back", ("saturation",)),
                Headline("pmd_busy", "poll-mode thread busy", ("saturation",)),
            ),
        ),
        "ping_paced": TrafficWords(
            "paced ping",
            40,
            Data("reply", "reply", "replies", rate=False, modelled="model_icmp_messages", modelled_scale=0.5),
            (
                Headline("rtt_p50", "round trip, median"),
                Headline("rtt_p99", "round trip, 99th percentile"),
            ),
        ),
        "paced_frames": TrafficWords(
            "paced frames",
            50,
            _PACKETS,
            (
                Headline("latency_mean", "one way, mean"),
                Headline("latency_p99", "one way, 99th percentile"),
                Headline("latency_max", "one way, longest"),
                Headline("frames_lost", "lost"),
            ),
        ),
        "reconnect": TrafficWords(
            "restart of the switch",
            60,
            None,
            (
                Headline("came_back", "came back"),
                Headline("outage", "longest time without a frame"),
                Headline("outage_packets_lost", "packets lost"),
                Headline("switch_away", "of which the switch itself was away"),
            ),
        ),
        "idle": TrafficWords("idle", 70),
    },
)
"""Of results whose manifests have no vocabulary: vsprof wrote none before 2026-11-25. Nothing is added here: plug-ins say it themselves."""
_switches: dict[str, SwitchWords] = dict(_BEFORE.switches)
_traffics: dict[str, TrafficWords] = dict(_BEFORE.traffics)


def learn(manifest: Mapping[str, Any]) -> None:
    """Take in what a result's manifest says."""
    if (given := manifest.get("vocabulary")) is not None:
        said = Vocabulary.from_json(given)
        _switches.update(said.switches)
        _traffics.update(said.traffics)


def switch(name: str) -> SwitchWords:
    return _switches.get(name) or SwitchWords(name)


def is_switch(name: str) -> bool:
    return name in _switches


def colour_slot(name: str, slots: int) -> int:
    """Its slot in a palette of so many colours; a switch that asks for none gets the first that no other has asked for."""
    if (asked := switch(name).colour) is not None:
        return asked % slots
    taken = {one.colour for one in _switches.values()}
    free = [slot for slot in range(slots) if slot not in taken] or list(range(slots))
    homeless = sorted(one for one, words in {name: switch(name), **_switches}.items() if words.colour is None)
    return free[homeless.index(name) % len(free)]


def traffic(name: str) -> TrafficWords:
    return _traffics.get(name) or TrafficWords(name)


def data(name: str) -> Data | None:
    """What a traffic's counts are divided by; None where there is no such thing."""
    return traffic(name).data


def per_data() -> dict[str, str]:
    """The word for it in metrics, by traffic."""
    return {name: words.data.per for name, words in _traffics.items() if words.data}


def place(pair: tuple[str, str]) -> tuple[int, int, str]:
    """What to sort (traffic, load) pairs by."""
    name, load = pair
    return LOADS.index(load) if load in LOADS else len(LOADS), traffic(name).rank, name


def headlines(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str, str, str]]:
    """(traffic, load, metric, words) of what a reader asks for first, of these (traffic, load) pairs."""
    return [
        (name, load, one.metric, one.words) for name, load in pairs for one in traffic(name).headlines if not one.loads or load in one.loads
    ]
