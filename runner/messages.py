# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors and warnings of the runner: the value seen, and the next move. One function a message."""

import traceback
from collections.abc import Iterable
from pathlib import Path

from vsprof.terms.errors import BadInput, RunFailed, VsprofError
from vsprof.terms.units import duration

# --- General ---------------------------------------------------------------------------------------------------------


def no_own_windows() -> str:
    return "it counts in windows of its own alone, and in modelled time there are none: all collectors count in the same ones"


def unknown_experiment(name: str, known: Iterable[str]) -> BadInput:
    return BadInput(f"no experiment {name!r}: use one of {', '.join(known)}, or the path of a YAML file")


def unknown_run(run_id: str, known: list[str]) -> BadInput:
    return BadInput(f"no run {run_id!r} in this result: it has {known[0]} to {known[-1]}" if known else f"no run {run_id!r}: it has none")


def no_snakemake() -> BadInput:
    return BadInput("a sweep is done by Snakemake, which is not installed: `make sweep-ready`, or `pip install 'vsprof[sweep]'`")


def snakemake_failed(status: int, log: Path) -> RunFailed:
    return RunFailed(f"Snakemake ended with status {status}, and not because a run failed: see {log}")


def nothing_in_common(left_out: list[str]) -> BadInput:
    return BadInput(f"no case can be run on all of these servers: {'; '.join(left_out)}; name one that can (--server)")


def not_everywhere(case: str, servers: list[str]) -> str:
    return f"{case} left out: {', '.join(servers)} can't run it as the other servers do"


def jobs_forgotten(folder: Path) -> RunFailed:
    return RunFailed(
        "Slurm has none of this sweep's jobs in its queue, but Snakemake still waits for some: a controller that crashed has forgotten"
        f" what it was given last. What was done is kept; `vsprof sweep --resume {folder.name}` does the rest"
    )


def not_with_these_endpoints(options: list[str], access: str, endpoint: str) -> str:
    return f"endpoints over {access}{'' if endpoint == 'auto' else f' with endpoint {endpoint}'} have no {', '.join(options)}"


def can_not_boot(why: str) -> RunFailed:
    return RunFailed(f"the host can't run this case any more: {why}")


def dry_and_resumed() -> BadInput:
    return BadInput("--dry-run says what a new campaign would run: leave --resume out, or look into the result's manifest.json")


def sweep_predicted(runs: int, at_once: int, machines: list[str], seconds: float | None, cpus: int) -> str:
    """``cpus``: that each run takes, which a machine of its own has anyway."""
    where = f" on {', '.join(machines)}" if machines else ""
    # Hours of CPUs are what a cluster accounts for.
    cost = f" ({seconds * min(runs, at_once) * cpus / 3600:.1f} CPU hours)" if seconds and not machines else ""
    return f"{runs} runs{where}, at most {at_once} at once: {_takes(seconds)}{cost}"


def sweep_goes_on(done: int, runs: int, left: float | None, logs: Path) -> str:
    time = f", about {duration(left)} left" if left else ""
    return f"{done} of {runs} runs done{time}; what each says: {logs}/*.log"


def _takes(seconds: float | None) -> str:
    return f"about {duration(seconds)}, by earlier results" if seconds else "no earlier result of this experiment says how long that takes"


def would_run(testbed: str, traffic: list[str], collectors: list[str], cases: list[str], repetitions: int, seconds: float | None) -> str:
    runs = f"{repetitions * len(cases)} runs of these cases, {repetitions} of each: {_takes(seconds)}"
    said = (f"testbed: {testbed}", f"traffic: {', '.join(traffic)}", f"collectors: {', '.join(collectors)}", runs)
    return "\n".join([*said, *(f"  {case}" for case in cases)])


def bad_yaml(path: Path, why: str) -> BadInput:
    return BadInput(f"{path} is not YAML that describes an experiment: {why}")


def case_twice(case_ids: list[str]) -> BadInput:
    return BadInput(f"the varied values give {', '.join(case_ids)} twice: `auto` may stand for a value that is listed too")


def bad_experiment(path: Path | str, reasons: list[str]) -> BadInput:
    return BadInput(f"{path} can't be used:\n" + "\n".join(f"  - {r}" for r in reasons) + "\nsee docs/experiments.md for every key")


def bad_traffic(kind: str, reasons: list[str]) -> BadInput:
    return BadInput(f"traffic {kind} can't be used:\n" + "\n".join(f"  - {r}" for r in reasons))


def traffic_twice(labels: list[str]) -> BadInput:
    return BadInput(f"traffic names {', '.join(labels)} twice: one kind can be sent once with each load")


def fixed_and_varied(names: list[str]) -> BadInput:
    return BadInput(f"{', '.join(names)} is both fixed and varied: keep one")


def missing_factors(names: list[str]) -> BadInput:
    return BadInput(f"neither fixed nor varied: {', '.join(names)}: give each one value in fixed, or several in vary")


def no_case_left() -> BadInput:
    return BadInput("except leaves no case to run: remove one of its entries")


def nothing_offered(testbed: str, reasons: list[str]) -> BadInput:
    listed = "\n".join(f"  - {reason}" for reason in reasons)
    return BadInput(f"the testbed {testbed} can run no case of this experiment (the testbed lab can):\n{listed}")


def access_not_of_switch(access: str, switch: str, offered: Iterable[str]) -> BadInput:
    return BadInput(f"{switch} has no access {access!r}: it offers {', '.join(offered)}; choose another switch, or list the pair in except")


def out_of_range(name: str, value: object, low: int, high: int, note: str = "") -> BadInput:
    return BadInput(f"{name} is {value!r}, need a whole number from {low} to {high}{note}")


def bad_vary(seen: str) -> BadInput:
    return BadInput(f"--vary {seen!r}: give a name and its values, such as cpu.l2.latency=x0.5,auto,x2")


def bad_collector_option(text: str) -> BadInput:
    return BadInput(f"--collector-option {text!r}: need COLLECTOR.OPTION=VALUE, such as perf_record.frequency=199")


def can_not_write(path: Path, why: OSError) -> VsprofError:
    return VsprofError(f"can't write {path}: {why.strerror or why}; what was measured before is kept: free some space, then `make resume`")


def can_not_read(path: Path, why: Exception) -> str:
    return f"{path} can't be read: {why}"


def not_as_kept(path: Path) -> str:
    return f"{path} was changed since it was written: its checksum differs"


def not_parsed(run_id: str, why: Exception, where: traceback.FrameSummary) -> RunFailed:
    return RunFailed(
        f"what run {run_id} recorded can't be parsed: {type(why).__name__}: {why} ({where.filename}, line {where.lineno}); fix the"
        " collector or the traffic; then `vsprof parse` reads finished runs again, and `make resume` measures failed ones again"
    )


def failed_and_repeated(run_id: str, case_id: str, why: object) -> str:
    return f"run {run_id} ({case_id}) failed and was repeated: {why}"


def done_again(run_id: str, why: str) -> str:
    return f"run {run_id} was done, and is repeated: {why}"


def no_result(name: str, known: list[str]) -> BadInput:
    listed = f"the newest are: {', '.join(known[-5:])}" if known else "there is none yet: `make profile-vm2vm` makes one"
    return BadInput(f"no result {name!r} (a folder with a manifest.json); {listed}")


def nothing_recorded(folder: Path) -> BadInput:
    return BadInput(
        f"{folder} has no folder raw/, where what each run recorded would be: it can be shown, reported and compared as it is, but not"
        " measured further or parsed again; begin a new campaign instead"
    )


def bad_manifest(path: Path, why: Exception) -> BadInput:
    return BadInput(f"{path} is damaged ({why}): restore it, or run the experiment again")


def collector_unavailable(name: str, why: str) -> BadInput:
    return BadInput(f"collector {name} can't work here: {why}; leave it out of `collectors`, or use auto")


def not_a_number(name: str, text: str) -> BadInput:
    return BadInput(f"{name} is {text!r}, need a whole number")


def empty_list(what: str, text: str) -> BadInput:
    return BadInput(f"{what} is {text!r}, need at least one")


def built_at_first_run(time: str) -> str:
    return f"made by the first `make profile-vm2vm`, in {time}"


def kvm_not_tried() -> str:
    return "run an experiment once (that builds a guest kernel), then `make doctor` again"


def no_kvm() -> str:
    return "guests can't run natively here; the lab needs no KVM of this host"


def no_pmu() -> str:
    return "no hardware counters here (a virtual machine without a virtual PMU?); the lab needs none"


def no_module(name: str) -> str:
    return f"`modprobe {name}` as root, if this kernel has it; the lab has its own kernel"


def no_hugepages() -> str:
    return "a kernel with CONFIG_HUGETLBFS; the lab has its own"


def few_cpus(found: int) -> str:
    return f"found {found}, a native switch needs 2: one moves frames, one does all else"


def rebuild_lab() -> str:
    return "`build/venv/bin/vsprof clean --cache`, and run the experiment again"


def no_jupyter(python: Path) -> BadInput:
    return BadInput(f"Jupyter is not installed beside vsprof: run `{python} -m pip install jupyterlab`, or in a clone `make notebook`")


# --- The event catalogue ---------------------------------------------------------------------------------------------

PAGE = "docs/adding-a-pmu-event.md"


def counted_entries(events: int, metrics: int) -> str:
    return f"{events} event{'' if events == 1 else 's'}, {metrics} metric{'' if metrics == 1 else 's'}"


def name_them(collector: str, name: str) -> str:
    return f"to count them, name them in an experiment: collector_options: {{{collector}: {{events: [{name}]}}}}"


def unknown_processor(cpu_id: str) -> str:
    return (
        f"the catalogue has no events for this processor ({cpu_id}): perf's generic names stand in; what they count is vendor-defined,"
        f" so never compare them between vendors. To add its events, see {PAGE}"
    )


def other_processor() -> str:
    return "not probed: this is not the processor of this machine"


def needs_uncountable(names: Iterable[str]) -> str:
    return f"can't be counted here: {', '.join(names)}"


# --- Servers ---------------------------------------------------------------------------------------------------------


def not_of_this_testbed(option: str, testbed: str, owner: str) -> BadInput:
    return BadInput(f"{option} belongs to the testbed {owner}, and {testbed!r} was asked for: leave out TESTBED, or {option}")


def not_done(what: str, reasons: Iterable[str], log: Path) -> VsprofError:
    return VsprofError(f"{what} failed; fix it and call again, what is done stays done:\n{_list(reasons)}\nthe whole log is {log}")


def task_failed(name: str, task: str, why: str) -> str:
    return f"{name}: {task}: {why.strip()[-800:]}"


def ansible_failed(status: int, words: str) -> str:
    return f"Ansible ended with exit status {status}: {words.strip()[-800:] or 'it printed nothing'}"


def _list(reasons: Iterable[str]) -> str:
    return "\n".join(f"  - {reason}" for reason in reasons)


# --- This machine ----------------------------------------------------------------------------------------------------


def tuned_by_run(wanted: str) -> str:
    return f"better {wanted} for measuring: TUNE=1 (`--tune`) sets it for the time of a run and puts it back"


def boot_with(words: str, housekeeping: int) -> str:
    """What isolates the CPUs of one pair of endpoints and a switch on one CPU."""
    return (
        f"boot with `{words}` on the kernel's command line, if this host is for measuring alone; "
        f"for cases with more pairs or switch_cpus name all CPUs but {housekeeping}"
    )


def left_out(switch: str, why: str) -> str:
    return f"{switch} left out: {why}"


def stands_in(switch: str) -> str:
    return f"{switch} replaces it, under its own name: results of one do not hold for the other"


def no_guests(why: str) -> str:
    return f"no virtual machine boots here ({why})"


def guests_emulated(why: str) -> str:
    return f"KVM can't boot a guest here ({why}), so QEMU emulates the virtual machines' code (TCG), and their speed is meaningless"


def lab_chosen(why: str) -> str:
    return f"testbed: lab, because this host can't run both kinds of Open vSwitch: {why}"


def native_preferred() -> str:
    return "testbed: native, as the experiment prefers; TESTBED=lab for the emulated host"


def lab_in_its_place(why: str) -> str:
    return f"testbed: lab, though the experiment prefers native: {why}"


def native_chosen() -> str:
    return "testbed: native, because this host can run both kinds of Open vSwitch"


# --- NUMA nodes ------------------------------------------------------------------------------------------------------


def nodes_not_of_this_testbed(nodes: int, testbed: str) -> BadInput:
    return BadInput(
        f"nodes {nodes}: only the lab's NUMA nodes can be chosen, not those of the testbed {testbed}: use TESTBED=lab, or leave nodes out"
    )


def one_pair_on_nodes(nodes: int) -> BadInput:
    return BadInput(
        f"nodes {nodes} with several `pairs` or `switch_cpus`: a lab of {nodes} nodes has one pair and one CPU "
        "between them: use `pairs: 1` and `switch_cpus: 1`, or nodes 1"
    )


def too_few_cpus(nodes: int, cpus: int) -> BadInput:
    return BadInput(
        f"nodes {nodes} with {cpus} CPUs: each node would have one, and the switch needs one for itself on the endpoints' node:"
        " leave out --cpus"
    )


def only_virtual_machines(access: str, known: Iterable[str]) -> BadInput:
    return BadInput(
        f"two NUMA nodes, and endpoints over {access}, whose memory vsprof puts on none of them: use access {' or '.join(known)}"
    )


def option_needs_nodes(option: str) -> BadInput:
    return BadInput(f"{option} chooses between two NUMA nodes, and the experiment asks for one: set nodes: 2 (or --nodes 2)")


def hugepages_on_nodes(options: list[str]) -> BadInput:
    return BadInput(f"{', '.join(options)}: 4K on two NUMA nodes: the kernel alone chooses where such a page is. Use 2M, or nodes: 1")


def processor_is_real(factor: str) -> str:
    return f"{factor} is of a modelled processor: only the lab has one, with clock: modelled"


def lab_chosen_for_nodes(nodes: int) -> str:
    return f"testbed: lab, the only one that can have {nodes} NUMA nodes"


def lab_chosen_for_processor() -> str:
    return "testbed: lab, the only one that can model another processor"


def lab_chosen_for_kernel() -> str:
    return "testbed: lab, the only one that can boot another kernel"


def lab_chosen_for_cards() -> str:
    return "testbed: lab, the only one with a wire between two network cards"


# --- Options ---------------------------------------------------------------------------------------------------------


def of_no_case(option: str, owners: Iterable[str]) -> BadInput:
    return BadInput(f"{option} is an option of no case here: compare one that has it ({', '.join(owners)}), or leave the option out")


def of_no_traffic(option: str, kind: str) -> BadInput:
    return BadInput(f"{option} is for traffic {kind}, and none is here: add {kind} to traffic, or leave the option out")


def factor_of_no_traffic(factor: str, kinds: Iterable[str], readers: Iterable[str]) -> BadInput:
    return BadInput(
        f"{factor} is varied, and no traffic here uses it ({', '.join(kinds)}): its cases would all be equal;"
        f" give it one value in fixed, or add {' or '.join(readers)}"
    )


def changed_and_set(option: str) -> BadInput:
    return BadInput(f"{option} is in changes, and fixed or varied as well: a change is one from the default; take it out of fixed and vary")


def takes_no_cards(switch: str, topology: str, others: Iterable[str]) -> BadInput:
    return BadInput(f"{topology} takes a switch that can have a network card as a port, and {switch} can't: use {' or '.join(others)}")


def cards_need_hugepages(topology: str) -> BadInput:
    return BadInput(
        f"mbuf_pages: 4K in {topology}: its network cards read frames by their physical addresses, which DPDK knows of hugepages alone. "
        "Leave mbuf_pages out, or use 2M"
    )


def takes_no_devices(switch: str, topology: str, others: Iterable[str]) -> BadInput:
    return BadInput(f"{topology} takes a switch whose ports can be devices of DPDK, and {switch} has none such: use {' or '.join(others)}")


# --- Keys of an experiment -------------------------------------------------------------------------------------------


def no_unchanged_first() -> str:
    return "changes begins with what the others are changed from: write {} first"


def no_list_of_testbeds(name: str, value: object) -> str:
    return f"{name} of a traffic is a list: [{value}]"


def nothing_varied(name: str) -> str:
    return f"vary.{name} is empty: give at least one value"


def varied_twice(name: str, values: Iterable[object]) -> str:
    return f"vary.{name} names a value twice: {list(values)}"
