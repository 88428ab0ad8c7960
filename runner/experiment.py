# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment: one YAML file, one question; and the cases it expands to.

Everything that can be wrong with an experiment is found here, before anything is started.
"""

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from vsprof.collectors.base import Apart, Clock
from vsprof.runner import messages
from vsprof.terms import messages as terms_messages
from vsprof.terms import places, plugins
from vsprof.terms.errors import BadInput
from vsprof.terms.flows import MOST as MOST_FLOWS
from vsprof.terms.placement import PAIR, Duties
from vsprof.terms.schema import FCS_BYTES
from vsprof.testbeds import base as testbeds
from vsprof.testbeds import pages
from vsprof.testbeds.base import MODELLED
from vsprof.workloads.endpoints import vm
from vsprof.workloads.traffic.base import LONGEST_MODELLED_S, SHORTEST_MODELLED_S, Options

SMALLEST_FRAME, LARGEST_FRAME = 64, 1518
FACTORS = ("topology", "switch", "access", "frame_bytes", "flows")
"""What every case has. Beside these, the options of switches, endpoints and the host can be fixed or varied."""
CHANGEABLE: Mapping[str, Any] = {"frame_bytes": SMALLEST_FRAME, "flows": 1}
"""Factors that ``changes`` can change, too, and what they are where nothing is said."""
AUTO = "auto"
SHORT = {"cpu": "cpu.profile"}
"""What can be written for a factor. Tables have a column called cpu: the number of one."""
ONLY_ON = "testbeds"
"""The key of an entry of ``traffic`` that names the only testbeds on which it is sent."""
TESTBEDS = plugins.find("vsprof.testbeds", "TESTBED")
SWITCHES = plugins.find("vsprof.switches", "SWITCH", hyphens=True)
TOPOLOGIES = plugins.find("vsprof.workloads.topologies", "TOPOLOGY")
TRAFFIC = plugins.find("vsprof.workloads.traffic", "TRAFFIC")
COLLECTORS = plugins.find("vsprof.collectors", "COLLECTOR")
PROCESSOR = next(name for name, one in COLLECTORS.items() if issubclass(one, Clock))
"""The collector that is the lab's processor where time is modelled: of it, too, cases may differ."""
WINDOWS_ON = {name: {"count": 12, "seconds": 0.5} for name in ("native", "remote")}
"""Defaults of windows by testbed. On a real processor windows cost little, and its counters take turns: perf_stat counts one group of
events in each."""


class Windows(BaseModel):
    """How long to wait, and how often and how long to measure; ``own_…``: in the windows of a collector that has its own;
    ``modelled_…``: where time is modelled, of which a second takes minutes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    warmup_seconds: float = Field(1, ge=0, le=600)
    count: int = Field(1, ge=1, le=1000)
    seconds: float = Field(2, ge=0.5, le=3600)
    own_count: int = Field(2, ge=0, le=1000)
    own_seconds: float = Field(1, ge=0.1, le=3600)
    modelled_seconds: float = Field(0.03, ge=SHORTEST_MODELLED_S, le=LONGEST_MODELLED_S)
    modelled_warmup_seconds: float = Field(0.01, ge=0, le=10)


@dataclass(frozen=True)
class Case:
    """One combination of the varied values, complete with the fixed ones."""

    topology: str
    switch: str
    access: str
    frame_bytes: int
    flows: int
    options: Mapping[str, str] = field(default_factory=dict)
    """Those of the switch, of its endpoints, of the host and of the processor that are fixed or varied; the others have their defaults."""

    @property
    def case_id(self) -> str:
        return self.without({})

    def without(self, usual: Mapping[str, str]) -> str:
        """Its name without options that have their ``usual`` values, for a screen: one with all of a changed processor has 700
        characters."""
        options = "".join(f"_{name}-{value}" for name, value in sorted(self.options.items()) if usual.get(name) != value)
        return f"{self.topology}_{self.switch}_{self.access}_{self.frame_bytes}B_{self.flows}f{options}"

    @property
    def values(self) -> dict[str, Any]:
        """All of it by name: the factors, then the options."""
        return {**{name: getattr(self, name) for name in FACTORS}, **self.options}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The case whose ``values`` these are."""
        options = {name: value for name, value in values.items() if name not in FACTORS}
        return cls(**{name: values[name] for name in FACTORS}, options=options)


@dataclass(frozen=True)
class TrafficItem:
    """One entry of ``traffic``: its kind and its settings, checked."""

    kind: str
    settings: Options

    @property
    def label(self) -> str:
        return f"{self.kind}-{self.settings.load}"


class Experiment(BaseModel):
    """The YAML file as given; see docs/experiments.md."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1)
    notebook: str
    fixed: dict[str, Any] = {}
    vary: dict[str, list[Any]] = {}
    changes: list[dict[str, Any]] = [{}]
    instead_of: dict[str, str] = {}
    exclude: list[dict[str, Any]] = Field([], alias="except")
    traffic: list[dict[str, Any]] = Field(min_length=1)
    windows: Windows = Windows()
    repetitions: int = Field(3, ge=1, le=1000)
    collectors: list[str] = ["auto"]
    collector_options: dict[str, dict[str, Any]] = {}
    testbeds: dict[str, dict[str, Any]] = {}
    prefers: Literal["native"] | None = None
    nodes: Literal[1, 2] = 1
    """NUMA nodes of the testbed."""
    turns: bool = True
    """On this very host: whether the cases of a repetition are alive at once, and have their windows in turn."""
    clock: Literal["modelled", "emulated"] = "modelled"
    """Whose time passes while windows last, in the lab: the modelled processor's, or the emulator's."""

    @field_validator("fixed", "vary", "changes", "exclude", mode="before")
    @classmethod
    def _on_and_off(cls, given: Any) -> Any:
        return _words(given)

    @field_validator("changes")
    @classmethod
    def _nothing_first(cls, changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not changes or changes[0]:
            raise ValueError(messages.no_unchanged_first())
        return changes

    @field_validator("traffic")
    @classmethod
    def _named_testbeds(cls, traffic: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for entry in traffic:
            if not isinstance(named := entry.get(ONLY_ON, []), list):
                raise ValueError(messages.no_list_of_testbeds(ONLY_ON, named))
        return traffic

    @field_validator("vary")
    @classmethod
    def _not_empty(cls, vary: dict[str, list[Any]]) -> dict[str, list[Any]]:
        for name, values in vary.items():
            if not values:
                raise ValueError(messages.nothing_varied(name))
            if len(set(map(str, values))) != len(values):
                raise ValueError(messages.varied_twice(name, values))
        return vary


def load(name: str) -> tuple[str, Experiment]:
    """Read an experiment by its name in experiments/, or by a file's path; return its name and it.

    Raises ``BadInput`` that names the file and the key.
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else _known().get(name, Path(name))
    if not path.is_file():
        raise messages.unknown_experiment(name, names())
    try:
        document = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise messages.bad_yaml(path, " ".join(str(error).split())) from error
    if not isinstance(document, dict):
        raise messages.bad_yaml(path, f"found {type(document).__name__}, need keys and values")
    return path.stem, parse(document, path)


def parse(document: Mapping[str, Any], path: Path | str) -> Experiment:
    """Check an experiment's form. Raises ``BadInput`` that lists every key that is wrong."""
    try:
        return Experiment.model_validate(document)
    except ValidationError as error:
        raise messages.bad_experiment(path, _reasons(error)) from error


def on(experiment: Experiment, testbed: str) -> Experiment:
    """The experiment as it is on a testbed: with what ``testbeds`` says of it in place of the same keys. Raises ``BadInput``."""
    for name in experiment.testbeds:
        plugins.one("testbed in testbeds", name, TESTBEDS)
    whole = experiment.model_dump(mode="json", by_alias=True)
    given = experiment.windows.model_fields_set if "windows" in experiment.model_fields_set else set()
    whole["windows"].update({name: value for name, value in WINDOWS_ON.get(testbed, {}).items() if name not in given})
    for key, value in whole.pop("testbeds").get(testbed, {}).items():
        whole[key] = {**whole[key], **value} if isinstance(value, dict) and isinstance(whole.get(key), dict) else value
    whole["traffic"] = [
        {key: value for key, value in entry.items() if key != ONLY_ON}
        for entry in whole["traffic"]
        if testbed in entry.get(ONLY_ON, [testbed])
    ]
    return parse(whole, f"testbeds.{testbed}")


def names() -> list[str]:
    """All experiments: the project's, and the user's own."""
    return sorted(_known())


def _known() -> dict[str, Path]:
    """Their files by name; the user's own of a name comes before the project's."""
    return {path.stem: path for folder in reversed([*places.folders("experiments")]) for path in folder.glob("*.yaml")}


def combinations(experiment: Experiment) -> list[dict[str, Any]]:
    """Every combination of the varied values but the excluded ones, complete with the fixed ones, each once with every one of the changes.
    Raises ``BadInput``."""
    for name in (*experiment.fixed, *experiment.vary):
        _check_name("variable", name)
    if twice := experiment.fixed.keys() & experiment.vary.keys():
        raise messages.fixed_and_varied(sorted(twice))
    complete = {"access": AUTO, **CHANGEABLE, **experiment.fixed}
    if missing := [name for name in FACTORS if name not in complete and name not in experiment.vary]:
        raise messages.missing_factors(missing)
    complete.update(_unchanged(experiment))
    varied = (dict(zip(experiment.vary, values, strict=True)) for values in itertools.product(*experiment.vary.values()))
    found = [{**complete, **values, **change} for values in varied for change in experiment.changes]
    found = [{name: value if name in FACTORS else str(value) for name, value in one.items()} for one in found]
    wanted = [c for c in found if not any(_matches(c, e) for e in experiment.exclude)]
    if not wanted:
        raise messages.no_case_left()
    return [{**one, **_settled(one, experiment)} for one in wanted]


def of_processor(values: Mapping[str, Any]) -> dict[str, str]:
    """Those of a case's values that the modelled processor has."""
    return {name: values[name] for name in values if name in COLLECTORS[PROCESSOR].factors()}


def _settled(values: Mapping[str, Any], experiment: Experiment) -> dict[str, str]:
    """The processor's values of a combination, each as the number that it will be. Raises ``BadInput``."""
    given = {name: None if value == AUTO else value for name, value in of_processor(values).items()}
    return COLLECTORS[PROCESSOR].settled(given, experiment.collector_options.get(PROCESSOR, {}))


def _unchanged(experiment: Experiment) -> dict[str, str]:
    """Every option or size that is changed somewhere, with its default, so that each case says what it has. Raises ``BadInput``."""
    known = {*CHANGEABLE, *(name for options in _options().values() for name in options), *COLLECTORS[PROCESSOR].factors()}
    changed = {name: CHANGEABLE.get(name, AUTO) for change in experiment.changes for name in change}
    for name in changed:
        if name not in known:
            raise terms_messages.unknown_value("option in changes", name, sorted(known))
        if name in experiment.fixed or name in experiment.vary:
            raise messages.changed_and_set(name)
    return changed


def cases(experiment: Experiment) -> list[Case]:
    """All cases, as a testbed has them that can run everything. Raises ``BadInput`` on any that can't be run anywhere."""
    for name, other in experiment.instead_of.items():
        plugins.one("switch in instead_of", name, SWITCHES)
        plugins.one("switch in instead_of", other, SWITCHES)
    found: dict[str, Case] = {}
    factors: dict[str, dict[str, Any]] = {}
    for values in combinations(experiment):
        one = case(values)
        found[one.case_id] = one
        # Combinations that differ in an option that the case does not have are one case; any others must not be.
        given = {name: values[name] for name in FACTORS}
        if factors.setdefault(one.case_id, given) != given:
            raise messages.case_twice([one.case_id])
    known = {option for one in found.values() for option in one.options}
    # What is the same for all cases may matter for the containers alone that stand in for virtual machines.
    known |= experiment.fixed.keys() & _options_elsewhere(experiment)
    for option in {**experiment.fixed, **experiment.vary, **_unchanged(experiment)}.keys() - set(FACTORS):
        if option not in known:
            raise messages.of_no_case(option, [name for name, values in _options().items() if option in values])
    for one in found.values():
        _check_nodes(one, experiment.nodes)
    return list(found.values())


def _options_elsewhere(experiment: Experiment) -> set[str]:
    """The options that cases have where ``auto`` is not the first access: on a testbed that does not offer that one."""
    found: set[str] = set()
    for values in combinations(experiment):
        for access in accesses(values) if values["access"] == AUTO else ():
            # One that can't be is left out there.
            with contextlib.suppress(BadInput):
                found.update(case({**values, "access": access}).options)
    return found


def _check_nodes(one: Case, nodes: int) -> None:
    """What chooses between nodes needs some; and where there are some, the endpoints' memory must be on one."""
    if nodes == 1:
        for option in one.options.keys() & SWITCHES[one.switch].node_options:
            raise messages.option_needs_nodes(option)
    elif small := [name for name, value in one.options.items() if name in (pages.GUEST, pages.MBUFS) and value == pages.SMALL]:
        # Such a page is on the node of whoever touches it first, which nobody here controls or looks at.
        raise messages.hugepages_on_nodes(small)
    elif duties(one.values) != PAIR:
        raise messages.one_pair_on_nodes(nodes)
    elif one.access not in vm.ACCESSES:
        raise messages.only_virtual_machines(one.access, vm.ACCESSES)


def traffic_items(experiment: Experiment) -> list[TrafficItem]:
    """The traffic list, each entry checked by its kind. Raises ``BadInput``."""
    items = []
    for entry in experiment.traffic:
        settings = dict(entry)
        for name in settings.pop(ONLY_ON, []):
            plugins.one("testbed of a traffic", name, TESTBEDS)
        kind = str(settings.pop("kind", ""))
        traffic = plugins.one("traffic", kind, TRAFFIC)
        try:
            items.append(TrafficItem(kind, traffic.options(**settings)))
        except ValidationError as error:
            raise messages.bad_traffic(kind, _reasons(error)) from error
    for kind, traffic in TRAFFIC.items():
        for option in traffic.reads if kind not in {item.kind for item in items} else ():
            if option in {**experiment.fixed, **experiment.vary, **_unchanged(experiment)}:
                raise messages.of_no_traffic(option, kind)
    _check_factors(experiment, {item.kind for item in items})
    labels = [item.label for item in items]
    if twice := {label for label in labels if labels.count(label) > 1}:
        raise messages.traffic_twice(sorted(twice))
    return items


def usual(cases: Iterable[Case]) -> dict[str, str]:
    """By option, the value that more than half of the cases with that option have."""
    given: dict[str, Counter[str]] = {}
    for one in cases:
        for name, value in one.options.items():
            given.setdefault(name, Counter())[value] += 1
    common = {name: counts.most_common(1)[0] for name, counts in given.items()}
    return {name: value for name, (value, count) in common.items() if 2 * count > given[name].total()}


def _check_factors(experiment: Experiment, kinds: set[str]) -> None:
    """What only traffic looks at makes no cases where none does."""
    for factor in ("frame_bytes", "flows"):
        readers = [kind for kind, traffic in TRAFFIC.items() if factor in traffic.factors]
        varied = len(experiment.vary.get(factor, [])) > 1 or any(factor in change for change in experiment.changes)
        if varied and not kinds & set(readers):
            raise messages.factor_of_no_traffic(factor, sorted(kinds), readers)


def collectors(experiment: Experiment) -> tuple[list[str], frozenset[str]]:
    """Names of the collectors, and which of them were named outright (one of those that can't work stops the campaign).

    ``auto`` is every collector that is ``automatic``; what this host does not offer is left out with a finding in the manifest.
    Without own windows (``own_count: 0``) a collector that counts in nothing else is not among them; see also ``with_clock``.
    """
    named = [name for name in experiment.collectors if name != "auto"]
    for name in named:
        plugins.one("collector", name, COLLECTORS)
    automatic = [name for name in COLLECTORS if COLLECTORS[name].automatic] if "auto" in experiment.collectors else []
    wanted = sorted({*automatic, *named}) if automatic else named
    return [name for name in wanted if experiment.windows.own_count or not issubclass(COLLECTORS[name], Apart)], frozenset(named)


def with_clock(collectors: list[str], clock: str) -> list[str]:
    """The collectors, with one that drives the clock where time is modelled, named or not: without it there is no time."""
    return collectors if clock != MODELLED or PROCESSOR in collectors else [*collectors, PROCESSOR]


def check_collector_options(experiment: Experiment) -> None:
    """Raise ``BadInput`` on options of no collector, on unknown ones, and on values that won't do."""
    for name, given in experiment.collector_options.items():
        collector = plugins.one("collector in collector_options", name, COLLECTORS)
        for option in given:
            if option not in collector.options:
                raise terms_messages.unknown_value(
                    f"option of the collector {name}", option, collector.options or ["none: it has no options"]
                )
        collector.check_options(given)


def check_notebook(experiment: Experiment) -> None:
    """Raise ``BadInput`` if the experiment's notebook does not exist."""
    known = sorted(path.stem for folder in places.folders("notebooks") for path in folder.glob("*.py"))
    if experiment.notebook not in known:
        raise terms_messages.unknown_value("notebook", experiment.notebook, known)


def only_in_lab(experiment: Experiment) -> str | None:
    """What of it the lab alone has, in a sentence; None where other testbeds may do. Raises ``BadInput``."""
    if experiment.nodes > 1:
        return messages.lab_chosen_for_nodes(experiment.nodes)
    wanted = combinations(experiment)
    if any(of_processor(values) for values in wanted):
        return messages.lab_chosen_for_processor()
    if any(testbeds.OPTIONS.keys() & values.keys() for values in wanted):
        return messages.lab_chosen_for_kernel()
    named = {str(values.get("topology")) for values in wanted}
    return messages.lab_chosen_for_cards() if any(TOPOLOGIES[name].needs_cards for name in named & TOPOLOGIES.keys()) else None


def _matches(combination: Mapping[str, Any], pattern: Mapping[str, Any]) -> bool:
    known: dict[str, Any] = {"switch": SWITCHES, "topology": TOPOLOGIES, "access": {*_accesses(), AUTO}}
    for options in _options().values():
        known.update({name: {*known.get(name, ()), *values} for name, values in options.items()})
    pattern = {name: value if name in FACTORS else str(value) for name, value in pattern.items()}
    for name, value in pattern.items():
        _check_name("variable in except", name)
        # A misspelt name would match nothing, and leave nothing out, without a word.
        if name in known and (not isinstance(value, str) or value not in known[name]):
            raise terms_messages.unknown_value(f"{name} in except", value, sorted(known[name]))
    return all(combination.get(name) == value for name, value in pattern.items())


def case(values: Mapping[str, Any]) -> Case:
    """The case of one combination; ``auto`` is the switch's first access, and an option's default. Raises ``BadInput``."""
    switch = plugins.one("switch", values["switch"], SWITCHES)
    topology = plugins.one("topology", values["topology"], TOPOLOGIES)
    if topology.needs_devices and not switch.takes_devices:
        raise messages.takes_no_devices(values["switch"], values["topology"], [name for name, one in SWITCHES.items() if one.takes_devices])
    if topology.needs_cards and not switch.takes_cards:
        raise messages.takes_no_cards(values["switch"], values["topology"], [name for name, one in SWITCHES.items() if one.takes_cards])
    offered = accesses(values)
    access = offered[0] if values["access"] == AUTO else values["access"]
    if access not in _accesses():
        raise terms_messages.unknown_value("access", access, [*_accesses(), AUTO])
    if access not in offered:
        raise messages.access_not_of_switch(access, f"{values['switch']} in {values['topology']}", offered)
    frame = _whole("frame_bytes", values["frame_bytes"], SMALLEST_FRAME, LARGEST_FRAME)
    flows = _whole("flows", values["flows"], 1, MOST_FLOWS)
    useless = {*(() if topology.ends_in_host else switch.host_options), *(() if topology.needs_cards else switch.card_options)}
    useless |= switch.table_options if topology.needs_cards or topology.needs_devices else set()
    known = {**testbeds.OPTIONS, **switch.options, **topology.options_of(access, values)}
    known = {name: values for name, values in known.items() if name not in useless}
    options = {name: known[name][0] if value == AUTO else value for name, value in values.items() if name in known}
    for name, value in options.items():
        if value not in known[name]:
            raise terms_messages.unknown_value(f"{name} of {values['switch']} over {access}", value, known[name])
    if topology.needs_cards and options.get(pages.MBUFS) == pages.SMALL:
        raise messages.cards_need_hugepages(values["topology"])
    switch.check_options({**options, "access": access})
    topology.check_options(options)
    return Case(values["topology"], values["switch"], access, frame, flows, {**options, **of_processor(values)})


def duties(values: Mapping[str, Any]) -> Duties:
    """The CPUs that a case with these ``values`` needs, each for itself where the host has so many."""
    switch, topology = SWITCHES[str(values["switch"])], TOPOLOGIES[str(values["topology"])]
    options = {name: str(value) for name, value in values.items() if value != AUTO}
    # What a switch, or a way to it, does not have is no option of its case.
    known = {*switch.options, *topology.options_of(str(values["access"]), options)}
    options = {name: value for name, value in options.items() if name in known}
    return Duties(switch.movers(options), topology.ends(options))


def accesses(values: Mapping[str, Any]) -> list[str]:
    """How the switch of a combination can reach the endpoints of its topology; its own order."""
    return [access for access in SWITCHES[values["switch"]].accesses if access in TOPOLOGIES[values["topology"]].accesses]


def _options() -> dict[str, Mapping[str, tuple[str, ...]]]:
    """The options of the host, of each switch, and of the endpoints of each access, by who has them."""
    endpoints = {
        f"{topology} over {access}{f' with endpoint {endpoint}' if endpoint else ''}": one.options_of(access, {"endpoint": endpoint})
        for topology, one in TOPOLOGIES.items()
        for access in one.accesses
        for endpoint in (one.endpoints if access in vm.ACCESSES else [""])
    }
    return {"the host": testbeds.OPTIONS, **{name: one.options for name, one in SWITCHES.items()}, **endpoints}


def _check_name(kind: str, name: str) -> None:
    options = sorted({option for values in _options().values() for option in values})
    processor = COLLECTORS[PROCESSOR].factors()
    if name not in (*FACTORS, *options, *processor):
        raise terms_messages.unknown_value(kind, name, processor if name.startswith("cpu.") else (*FACTORS, *options, *SHORT, "cpu.…"))


def _words(given: Any) -> Any:
    """What was given, with the words on and off, which YAML reads as yes and no, for options' values."""
    if isinstance(given, dict):
        return {SHORT.get(name, name): value if name in FACTORS else _words(value) for name, value in given.items()}
    if isinstance(given, list):
        return [_words(value) for value in given]
    return ("on" if given else "off") if isinstance(given, bool) else given


def _accesses() -> list[str]:
    return sorted({access for switch in SWITCHES.values() for access in switch.accesses})


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        note = f" (with the {FCS_BYTES}-byte FCS)" if name == "frame_bytes" else ""
        raise messages.out_of_range(name, value, low, high, note)
    return value


def _reasons(error: ValidationError) -> list[str]:
    # Where several keys do not go together, pydantic names none; and it says of what we raise that it is a ValueError.
    return [
        f"{'.'.join(map(str, one['loc'])) or 'its keys together'}: {one['msg'].removeprefix('Value error, ')} (found {one['input']!r})"
        for one in error.errors()
    ]
