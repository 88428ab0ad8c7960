# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors and warnings of the analysis: the value seen, and the next move. One `Message` or function each; one that has no value in it
is a constant."""

import difflib
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from vsprof.terms import units
from vsprof.terms.errors import BadInput, Message, VsprofError

# --- Results and reports ---------------------------------------------------------------------------------------------

ORDER_NOT_KNOWN = (
    "The cases did not run interleaved, or the result does not say when: a slow change of the machine can look like one of a case."
)
ONCE = "*One repetition has no interval: differences between cases may be chance.*"
NOT_SIGNIFICANT = "not significant"
NO_INTERVAL = "no verdict: one repetition has no interval"
NO_RATIO = "no ratio: one of the two is zero"
BOTH_ZERO = "both are zero"
"""Verdicts of `vsprof compare` beside "more" and "less"."""
OTHER_CAMPAIGNS = (
    "The two were measured in different campaigns: a machine that changed in between looks like a difference, whatever the interval."
)
SENDER_WAITS = (
    "A flood's sender, pktgen, spins while its queue is full. That waiting is in the model's numbers of the guests, most of all where "
    "the path is slowest: look at the parts of the switch and of vhost, too."
)
GUESTS_POLL = (
    "A guest with DPDK polls all the time, unless its program sleeps (`guest_rx`). Polls that find nothing, or no room, are in the model's "
    "numbers of the guests, most of all where the path is slowest: look at the parts of the switch and of vhost, too."
)
EMPTY_TABLE = "its table is empty; see whether run.metrics (docs/api.md) has the metrics that it asks for, and for that CPU"
NO_MODEL_NUMBERS = "no window of this result was counted by the model (its collector `uarch_model` was not part of the experiment)"
NO_HARDWARE_NUMBERS = "no PMU counted in this result (its collector `perf_stat` was not part of the experiment, or could not work)"
VENDOR_DEFINED = (
    "The processor is not in the event catalogue: perf's generic names were used instead. What they count is vendor-defined; never compare "
    "it between vendors."
)
THREADS = "the poll-mode threads"
no_neighbours = Message("no two cases differ in the {factor} alone: vary `{factor}` in the experiment")
NOTHING_SATURATED = "no traffic at saturation was counted by the collector `uarch_model`"
no_result = Message(
    "{path} is no result: {missing} is missing; name a folder under results/ (results/reference is one), or run an experiment first",
    BadInput,
)
unreadable_result = Message("{path} can't be read ({why}); it may be cut short: run the experiment again", BadInput)
missing_columns = Message("{path} lacks the columns {columns}: it was not written by vsprof run", BadInput)
no_finished_run = Message(
    "{path} holds no finished run ({failed} failed): see raw/ and errors in manifest.json, then run it again", BadInput
)
bad_query = Message(
    "the query can't be answered: {why}\nThe tables are {tables}; `DESCRIBE measurements` lists a table's columns", BadInput
)
mark_unfilled = Message("{page}: <!--= {mark} --> can't be filled: {why}; see analysis/pages.py, or name another result", BadInput)
no_notebook = Message("no notebook {path}: name one of notebooks/*.py in the experiment's `notebook:`", BadInput)
notebook_stopped = Message("{notebook.name}: its Python process ended before the notebook did ({error}); is memory short?", VsprofError)
outside_reference = Message(
    "{notebook.name}: the report would load {reference} from elsewhere; embed it, a report stands alone", VsprofError
)
failed_run = Message("Run {run_id} failed and is kept out of every number: {why}")
left_out_testbeds = Message("Numbers of testbed {others} are left out: they never share an axis with those of {kept}.")
partial_result = Message("The campaign is not complete: {done} of {wanted} runs finished. `vsprof run --resume` continues it.")
not_taken = Message("`{name}` asks to be drawn by the figure `{figure}`, which does not draw it: use {others: or }.")
two_groups = Message(
    "{count} of {of} windows lie apart from the others, around {ratio:.2g} times their value (in {runs}): the median is that of the "
    "larger group, and its interval may not include the other"
)
always_before = Message(
    "In all {repetitions} repetitions {pairs:; }: what a case leaves behind for the next can look like a difference between them."
)
drifts = Message("it drifts, by {percent:+.0f} % of its median from run {first} to {last}: its interval does not show this")
scaled_metrics = Message(
    "Hardware metrics whose events were counted in different windows: {names}. Each event is divided by the data of its own windows first, "
    "so that what differs between windows is in them. So it is in every sum over modes that have windows of their own."
)
no_such_case = Message("`{word}` is no result's folder, and no case of {path.name}: name one of {known}, or two folders", BadInput)
no_profile = Message(
    "{name} has no counts by call stack or by function: the collectors uarch_model and perf_record make them (COLLECTORS=auto,perf_record)",
    BadInput,
)
not_profiled = Message("nothing was counted by call stack or by function of the {what} {word!r}: name one of {known}", BadInput)
several_profiles = Message("this file has one profile, and {labels:; } each have one: name one by --switch", BadInput)
nothing_against = Message("nothing to compare {name} with: no other profile has the same event, collector, traffic and load", BadInput)
not_written = Message("{path} can't be written: {why}", BadInput)
figure_not_written = Message(
    "can't draw into {path}: {why}; name a file that ends in .png, .svg or .pdf, in a folder that is there", BadInput
)
no_like_cases = Message(
    "nothing to compare: no case of {one:; } has the same other values (frame size, flows, topology, …) as one of {other:; }", BadInput
)
other_testbeds = Message(
    "one result is of testbed {one}, the other of {other}: an emulator's numbers never share a ratio with a processor's; compare two of "
    "the same testbed",
    BadInput,
)
cycles_not_told = Message("Cycles, {name}: the difference is not significant.")
polling_left_in = Message(
    "Idle polling is left in the model's numbers of {cases:; }: empty polls were not counted by themselves. They show the cost of polling "
    "at this load, not of a packet."
)
not_counted_by_pmu = Message("the events of `{name}` were not asked for, or can't be counted on this processor")
preflight_found = Message("Preflight of the hardware counters: {text}.")
no_functions = Message(
    "this result has no counts by function: `vsprof parse {name}` makes them where raw/ has what the collector `uarch_model` recorded, "
    "which an earlier vsprof did not"
)
not_shown = Message("Not shown: {what}. Why: {reasons:; }.")
published_beside = Message("Published, on other machines and in other settings: {figures:; }.")
modelled_time = Message("All rates and times are predictions by the model of {processor}. None was measured on that processor.")


def wrong_schema(path: Path, seen: object, known: int) -> BadInput:
    newer = isinstance(seen, int) and seen > known
    move = "use the vsprof that wrote it, or a newer one" if newer else "run the experiment again with this vsprof"
    return BadInput(f"{path} has schema version {seen}, this vsprof reads version {known}: {move}")


def notebook_failed(notebook: Path, cell: int, source: str, error: str) -> VsprofError:
    first = source.strip().splitlines()[0] if source.strip() else "(empty)"
    return VsprofError(f"{notebook.name}: cell {cell} (`{first}`) failed: {error}; fix it, then `make report RUN=…`")


def observed(shares: Mapping[str, float]) -> str:
    listed = ", ".join(f"{100 * share:.0f} % ({switch})" for switch, share in shares.items())
    return (
        f"vsprof's own probes were read for a large share of the windows' time: {listed}. What runs beside them on the housekeeping CPU, "
        "such as a switch's threads that do not poll, may have waited for them; longer windows or fewer collectors make it less."
    )


def not_one_case(wanted: str, known: list[str], several: bool) -> BadInput:
    return BadInput(f"{'more than one case is' if several else 'no case is'} {wanted}: one of {', '.join(known)}")


def compared(metrics: int, told: int, untold: int) -> str:
    chance = round(0.05 * metrics)
    text = f"{told} of {metrics} metrics differ significantly, {untold} do not."
    return text + f" (With 95 % intervals about {chance} of {metrics} would seem to differ by chance alone.)" if told else text


def cycles_differ(name: str, ratio: float, parts: Sequence[str]) -> str:
    made = f"; its largest significant parts are {', '.join(parts)}" if parts else "; no single part of it is significant"
    return f"Cycles, {name}: {ratio:.3g} times as many{made}."


def estimated_by_model(profile: str, *, drives_clock: bool) -> str:
    text = f"All numbers of the modelled processor, CPI and cycles above all, are estimated (model: {profile})."
    if drives_clock:
        return f"{text} Rates, times and latencies depend on them, because its cycles are the clock."
    return (
        f"{text} They are counted in windows of the model's own, while the host is slowed down, "
        "and are never compared with software counters."
    )


def cpus_of(role: str, cpus: Sequence[str]) -> str:
    return f"the CPU{'s' if len(cpus) > 1 else ''} of role {role} ({', '.join(cpus)})"


def more_cycles_than_there_are(where: str, who: str, each: float, per: str, rate: float, needed: float, had: float) -> str:
    return (
        f"{where}: {units.significant(each)} cycles per {per} of {who}, times {units.significant(rate)} {per}s a second, are "
        f"{units.significant(needed / 1e9)} GHz, and there are {units.significant(had / 1e9)} GHz. Cycles and rate count different "
        f"{per}s: one of the two counts may have each {per} twice, or only half of them. Do not use numbers per {per} of this case."
    )


def cpus_moved(near: float, far: float, by_case: Mapping[str, tuple[int, int]]) -> str:
    return (
        f"The hypervisor moved this machine's CPUs: a line of the cache took {units.si(near, 'seconds')} between the switch's and the"
        f" endpoints', and {units.si(far, 'seconds')} in some windows: {_of_windows(by_case)}. Every switch is slower there, and a median"
        " over windows of both kinds is of neither. `line_transfer_seconds` tells them apart."
    )


def cpus_slowed(usual: float, slowed: float, by_case: Mapping[str, tuple[int, int]]) -> str:
    return (
        f"A neighbour slowed the switch's CPU: the calibration loop took {units.si(usual, 'seconds')}, and {units.si(slowed, 'seconds')} in"
        f" some windows: {_of_windows(by_case)}. What was measured there is of a part of the core."
    )


def _of_windows(by_case: Mapping[str, tuple[int, int]]) -> str:
    """`3 of 18 windows of OVS-DPDK; 0 of 18 windows of vhost-switch`: cases without any are told, too, for they are what is compared."""
    return "; ".join(f"{some} of {all_of} windows of {case}" for case, (some, all_of) in by_case.items())


def untrusted_windows(count: int, reasons: Iterable[str]) -> str:
    return f"{count} window{'s' if count > 1 else ''} of the model left out: {'; '.join(reasons)}."


def events_left_empty(names: Sequence[str], why: str) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return f"Hardware events left empty: {shown}: {why}."


def too_few_repetitions(n: int) -> str:
    """The median's order-statistic interval: Gibbons and Chakraborti, Nonparametric Statistical Inference, 5.2."""
    if n == 1:
        return "n=1: no interval, one repetition does not show the spread."
    return (
        f"n={n}: the interval is about the range of the {n} repetitions. Such a range holds the true median in "
        f"{1 - 2 ** (1 - n):.0%} of campaigns, not in 95 %; from six repetitions on a 95 % interval exists (REPEAT=6)."
    )


def never_counted(names: Sequence[str]) -> str:
    named = ", ".join(f"`{name}`" for name in names)
    return f"{named} {'is' if len(names) == 1 else 'are'} not in this result (the collector or the traffic was not part of the experiment)"


# --- Timelines -------------------------------------------------------------------------------------------------------

NO_FLOOD = "nothing was sent at saturation"
NO_CHANGES = "the experiment has no `changes`, or nothing was sent at saturation"
NOTHING_GROWS = "no switch has two cases that differ in a number of `changes`, or nothing was sent at saturation"
NO_TIMELINE = "no timeline was recorded: in modelled time the lab's processor model records one, on a real host the collector timeline"
no_timeline = Message(
    "{path} has no timeline: it was measured by an earlier vsprof, with timeline_ms: 0, or where no collector writes one. Those who do: "
    "the lab's processor model; on a real host the collector timeline, named in --collectors",
    BadInput,
)
no_timeline_of_run = Message("no timeline of a run {run_id!r}: there are those of {known}", BadInput)
timeline_cut = Message("CPU {cpu} ends early: {why}")
can_not_write_timeline = Message("can't write the timeline {path}: {fault.strerror}", BadInput)

# --- Validation ------------------------------------------------------------------------------------------------------

BAD_INTERVAL = "an interval needs low and high, and its median between them"
no_validation = Message("{path} is not there: `make {target}` writes build/bench/{path.name}; one is kept in docs/reference", BadInput)
unreadable = Message("{path} can't be read ({why}): name a validation.json, or the folder that has one", BadInput)
not_run = Message("the part `{part}` was not run (`make {target}` runs all parts)")
empty = Message("the part `{part}` ended without a number")


def bad_validation(path: Path, key: str, why: str, seen: object, more: int, target: str) -> BadInput:
    others = f" (and {more} more like it)" if more else ""
    return BadInput(
        f"{path} is no validation: {key or 'the whole'}: {why} (found {reprlib.repr(seen)}){others}; `make {target}` writes it again"
    )


# --- The gate of `vsprof compare` -------------------------------------------------------------------------------------

LOST = "no finished run in the second result"
LOST_NUMBER = "not in the second result"
RULES_WANTED = "need a list, a rule a line, such as `- throughput<0.95`"
NO_RULE = "it is empty"
NO_OPERATOR = "it has neither < nor >"
no_rule = Message(
    "{place} {text!r} is no rule: {why}. A rule is a metric, < or >, and a ratio above 0: 'throughput<0.95', "
    "'udp_flood:context_switches_per_packet>1.2', 'model_cpi@switch>1.1'",
    BadInput,
)
wrong_operator = Message("{seen!r} is not an operator: use < or >")
wrong_subject = Message(
    "{seen!r} is not a metric: write METRIC, METRIC@ROLE, TRAFFIC:METRIC or TRAFFIC/LOAD:METRIC, in letters, digits and _"
)
wrong_bound = Message("{seen!r} is not a ratio: use a number above 0, such as 0.95")
no_rules_asked = Message("no rules for {path}: it needs --fail-on or --rules", BadInput)
unreadable_rules = Message("the rules in {path} can't be read: {why}", BadInput)
_KINDS = {type(None): "nothing", dict: "a mapping", list: "a list", str: "a text", bool: "yes or no", int: "a number", float: "a number"}


def no_list_of_rules(path: Path, seen: object) -> BadInput:
    found = "nothing in it" if seen is None else "no rule in its list" if seen == [] else _shown(seen)
    return BadInput(f"{path} has {found}; {RULES_WANTED}")


def rule_is_no_text(place: str, seen: object) -> BadInput:
    return BadInput(f"{place} is {_shown(seen)}; {RULES_WANTED}")


def bad_yaml(path: Path, error: Exception) -> BadInput:
    """PyYAML's own text is five lines, of which three show its parser."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return BadInput(f"{path}{where}: no YAML ({problem or error}); {RULES_WANTED}")


def nothing_to_judge(place: str, rule: str, what: str, seen: str, known: Sequence[str]) -> BadInput:
    """`what` of the rule is not among what both sides have: traffic, load, metric or role. Metrics are too many to list."""
    near = difflib.get_close_matches(seen, known, n=5)
    there = (f"near it: {', '.join(near)}; " if near else "") if what == "metric" else f"use {' or '.join(known)}; "
    return BadInput(
        f"{place} {rule!r}: there is no {what} {seen!r} that both sides have; {there}"
        "`vsprof compare … --all` shows every metric, with its traffic and role"
    )


def _shown(seen: object) -> str:
    kind = _KINDS.get(type(seen), f"a {type(seen).__name__}")
    return kind if seen is None else f"{kind}: {reprlib.repr(seen)}"
