# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings of an experiment that the command line can change: the options, and what each does to the experiment."""

import argparse
from typing import Any

import yaml

from vsprof.runner import experiment as experiments
from vsprof.runner import messages, names
from vsprof.runner.experiment import Experiment
from vsprof.testbeds.base import MODELLED
from vsprof.workloads.traffic.base import LONGEST_MODELLED_S

FLOOD = "udp_flood"
"""The traffic that can be sent with several loads."""


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options to ``vsprof run``. Lists are separated by commas or spaces."""
    names.complete(command.add_argument("--switches", help="compare these switches instead of the experiment's"), "switches", several=True)
    command.add_argument("--frame-size", dest="frames", help="frame sizes in bytes, with FCS: 64 to 1518")
    command.add_argument("--num-flows", dest="flows", help="numbers of UDP flows")
    command.add_argument("--loads", help="loads of the UDP flood: saturation, equal (where the experiment gives a rate), ndr, pdr")
    command.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="vary a factor or an option: cpu=skylake-sp,zen4 or cpu.l2.latency=x0.5,auto,x2; several times for several",
    )
    command.add_argument("--repeat", type=int, help="repetitions of each case")
    command.add_argument("--windows", type=int, help="windows of each traffic")
    command.add_argument("--own-windows", type=int, help="windows of each traffic for a collector that needs its own; 0: none")
    command.add_argument("--duration", type=float, help="length of a window in seconds; in the lab, of modelled time")
    processor = command.add_argument(
        "--cpu-profile", metavar="CPU", help="the processor that the lab's model is to be, by name or path of a profile"
    )
    names.complete(processor, "profiles")
    names.complete(command.add_argument("--collectors", help="collectors by name, or auto"), "collectors", several=True)
    command.add_argument(
        "--collector-option",
        action="append",
        default=[],
        metavar="COLLECTOR.OPTION=VALUE",
        help="an option of a collector, as in YAML: perf_record.events=[l1d_misses,llc_misses]; several times for several",
    )
    command.add_argument("--nodes", type=int, help="NUMA nodes of the emulated host: 1 or 2")


def apply(experiment: Experiment, asked: argparse.Namespace, clock: str | None) -> Experiment:
    """Return ``experiment`` changed as asked. Raises ``BadInput`` on values that are no numbers or out of range.

    ``clock``: whose time passes in windows; None while the testbed is not known.
    """
    changed = experiment.model_dump(mode="json", by_alias=True)
    if asked.switches is not None:
        _vary(changed, "switch", _split("switches", asked.switches))
        _drop_options_of_others(changed)
    if asked.frames is not None:
        _vary(changed, "frame_bytes", [_whole("frame size", text) for text in _split("frame sizes", asked.frames)])
    if asked.flows is not None:
        _vary(changed, "flows", [_whole("number of flows", text) for text in _split("numbers of flows", asked.flows)])
    for text in asked.vary:
        _vary(changed, *_named_values(text))
    if asked.loads is not None:
        _flood_at(changed, _split("loads", asked.loads))
    if asked.collectors is not None:
        changed["collectors"] = _split("collectors", asked.collectors)
    if asked.cpu_profile is not None:
        changed["collector_options"].setdefault("uarch_model", {})["cpu"] = asked.cpu_profile
    for text in asked.collector_option:
        collector, option, value = _collector_option(text)
        changed["collector_options"].setdefault(collector, {})[option] = value
    if asked.repeat is not None:
        changed["repetitions"] = asked.repeat
    if asked.nodes is not None:
        changed["nodes"] = asked.nodes
    windows = {"count": asked.windows, "own_count": asked.own_windows}
    if asked.duration is not None:
        windows[_length(clock, asked.duration)] = asked.duration
        for item in changed["traffic"]:
            item.pop("modelled_seconds", None)
    changed["windows"].update({name: value for name, value in windows.items() if value is not None})
    # Checked as the file itself was: an option can ask for nothing that the YAML could not.
    return experiments.parse(changed, "the command line")


def _collector_option(text: str) -> tuple[str, str, Any]:
    name, given, value = text.partition("=")
    collector, _, option = name.partition(".")
    if not (given and collector and option):
        raise messages.bad_collector_option(text)
    try:
        return collector, option, yaml.safe_load(value)
    except yaml.YAMLError:
        raise messages.bad_collector_option(text) from None


def _named_values(text: str) -> tuple[str, list[Any]]:
    name, given, values = text.partition("=")
    if not (name and given):
        raise messages.bad_vary(text)
    try:
        return name, [yaml.safe_load(word) for word in _split(name, values)]
    except yaml.YAMLError:
        raise messages.bad_vary(text) from None


def _length(clock: str | None, seconds: float) -> str:
    """The key for a window's length of ``seconds``. While nobody knows whose they are, what no testbed takes is refused."""
    modelled = clock == MODELLED or (clock is None and seconds <= LONGEST_MODELLED_S)
    return "modelled_seconds" if modelled else "seconds"


def _drop_options_of_others(changed: dict[str, Any]) -> None:
    """What an experiment says of switches that are not compared now."""
    of = {name: set(switch.options) for name, switch in experiments.SWITCHES.items()}
    kept = {option for name in changed["vary"]["switch"] for option in of.get(name, ())}
    for option in set().union(*of.values()) - kept:
        for values in (changed["fixed"], changed["vary"], *changed["changes"]):
            values.pop(option, None)
    # What is left of two changes may be the same.
    changed["changes"] = [one for place, one in enumerate(changed["changes"]) if one not in changed["changes"][:place]]


def _flood_at(changed: dict[str, Any], loads: list[str]) -> None:
    """Send floods of these loads and no other: as the experiment describes them, else with their defaults."""
    given = {item.get("load", "saturation"): item for item in changed["traffic"] if item.get("kind") == FLOOD}
    others = [item for item in changed["traffic"] if item.get("kind") != FLOOD]
    changed["traffic"] = [*others, *(given.get(load, {"kind": FLOOD, "load": load}) for load in dict.fromkeys(loads))]


def _vary(changed: dict[str, Any], name: str, values: list[Any]) -> None:
    changed["fixed"].pop(name, None)
    changed["vary"][name] = list(dict.fromkeys(values))


def _split(what: str, text: str) -> list[str]:
    if words := text.replace(",", " ").split():
        return words
    raise messages.empty_list(what, text)


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise messages.not_a_number(name, text) from None
