# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line. Each sub-command is one function here, which calls the package that does it.

Exit status: 0 done, 1 something failed (a run, a report, a rule of `compare`), 2 bad input, 3 `compare` can't tell, 130 interrupted.
"""

import argparse
import contextlib
import json
import os
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from vsprof.collectors.events import importer
from vsprof.runner import (
    campaign,
    clean,
    doctor,
    events,
    interruption,
    messages,
    names,
    notebook,
    overrides,
    parse,
    results,
    servers,
    sweep,
    words,
)
from vsprof.runner import experiment as experiments
from vsprof.runner.experiment import Experiment
from vsprof.runner.progress import Progress
from vsprof.runner.results import Results
from vsprof.terms import errors, units
from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds.emulator import parcel
from vsprof.testbeds.emulator.machine import ACCELERATORS
from vsprof.testbeds.lab import CLOCKS

INTERRUPTED = 130
JSON = "print what a script reads, to standard output"
STDOUT = Path("-")


def main(arguments: list[str] | None = None) -> int:
    """Entry point of ``vsprof``; returns the exit status."""
    # A service manager's SIGTERM and a closed terminal's SIGHUP get the same orderly end as Ctrl-C. Under nohup the latter is ignored.
    interruption.heed()
    asked = _parser().parse_args(arguments)
    try:
        return int(asked.do(asked))
    except errors.VsprofError as error:
        _tell(f"vsprof: {error}")
        return error.exit_status
    except KeyboardInterrupt:
        _tell(f"vsprof: interrupted; {asked.interrupted}")
        return INTERRUPTED


def _tell(text: str) -> None:
    # The terminal may be what is gone.
    with contextlib.suppress(OSError):
        print(words.here(text), file=sys.stderr, flush=True)


def _run(asked: argparse.Namespace) -> int:
    if asked.dry_run:
        return _say_what_would_run(asked)
    with Progress(verbose=asked.verbose, quiet=asked.quiet) as progress:
        if asked.resume is not None:
            store = campaign.resume(Results.open(asked.resume or results.newest()), progress)
        else:
            store = campaign.start(_asked_for(asked, progress), progress, asked.seed)
        if asked.report:
            progress.say("writing the report")
            _write_report(store)
    return _told(asked, store, "make resume")


def _say_what_would_run(asked: argparse.Namespace) -> int:
    if asked.resume is not None:
        raise messages.dry_and_resumed()
    with Progress(verbose=asked.verbose, quiet=asked.quiet) as progress:
        wanted = _asked_for(asked, progress)
    runs = len(wanted.cases) * wanted.experiment.repetitions
    usual = experiments.usual(wanted.cases)
    found = {
        "testbed": wanted.testbed,
        "cases": [one.case_id for one in wanted.cases],
        "traffic": [one.label for one in wanted.traffics],
        "collectors": wanted.setting.collectors,
        "repetitions": wanted.experiment.repetitions,
        "seconds": sweep.predicted(wanted.name, wanted.testbed, runs, 1),
    }
    shown = {**found, "cases": [one.without(usual) for one in wanted.cases]}
    _print(asked, {**found, "runs": runs}, messages.would_run(**shown))
    return 0


def _sweep(asked: argparse.Namespace) -> int:
    # Before a testbed is started, and a result begun.
    sweep.check()
    with Progress(verbose=asked.verbose, quiet=asked.quiet) as progress:
        if asked.image:
            parcel.load(asked.image, progress.say)
        if asked.resume is not None:
            store = Results.open(asked.resume or results.newest())
            sweep.reopen(store, progress)
        else:
            wanted = _asked_for(asked, progress)
            _, store = campaign.begin(wanted, progress, asked.seed, servers=sweep.servers(wanted.testbed, wanted.host_options))
        machines = sweep.machines(store, asked.executor)
        jobs = asked.jobs or sweep.default_jobs(asked.executor, machines)
        at_once = min(jobs, len(machines) or jobs)
        runs = len([run for run in store.manifest["runs"] if run["status"] != "done"])
        takes = sweep.predicted(store.manifest["name"], store.manifest["testbed"], runs, at_once)
        progress.say(messages.sweep_predicted(runs, at_once, machines, takes, sweep.CPUS))
        sweep.run(store, progress, asked.executor, jobs, shlex.split(asked.snakemake), asked.image)
        if asked.report:
            progress.say("writing the report")
            _write_report(store)
    return _told(asked, store, f"vsprof sweep --resume {store.folder.name}")


def _job(asked: argparse.Namespace) -> int:
    with Progress(verbose=True) as progress:
        if asked.image:
            parcel.load(asked.image, progress.say)
        done = sweep.do_job(asked.result, asked.run_id, progress)
    _print(asked, {"run_id": asked.run_id, "done": done}, "")
    return 0 if done else 1


def _asked_for(asked: argparse.Namespace, progress: Progress) -> campaign.Campaign:
    """The campaign that the command line asks for, on the testbed that it will have. Raises ``BadInput``."""
    if asked.experiment is None:
        raise messages.unknown_experiment("", experiments.names())
    name, experiment = experiments.load(asked.experiment)
    checked = _checked(name, experiment, asked, asked.testbed)
    # What is wrong with the input was found before anything takes time, such as to find out what this host can run.
    wanted = checked.experiment
    testbed = campaign.chosen(asked.testbed, checked.host_options, progress, wanted.prefers, experiments.only_in_lab(wanted))
    return _checked(name, experiment, asked, testbed)


def _told(asked: argparse.Namespace, store: Results, again: str) -> int:
    """Print where the result is, and which runs failed; the exit status."""
    failed = [run["run_id"] for run in store.manifest["runs"] if run["status"] != "done"]
    report = store.folder / "report.html" if asked.report else None
    made = {"result": str(store.folder), "report": report and str(report)}
    _print(asked, {**made, "failed_runs": failed}, "\n".join(f"{name}: {path}" for name, path in made.items() if path))
    if failed:
        _tell(f"vsprof: {len(failed)} of {len(store.manifest['runs'])} runs failed: {', '.join(failed)}; `{again}` tries them again")
    return 1 if failed else 0


def _host_options(asked: argparse.Namespace) -> dict[str, Any]:
    """What was asked of one testbed alone; an inventory's path whole, for a result is resumed from anywhere."""
    given = {
        "inventory": asked.inventory and str(asked.inventory.absolute()),
        "server": asked.server,
        "accel": asked.accel,
        "clock": asked.clock,
        "tune": asked.tune,
    }
    return {name: value for name, value in given.items() if value}


def _report(asked: argparse.Namespace) -> int:
    store = Results.open(asked.result)
    _write_report(store)
    path = str(store.folder / "report.html")
    _print(asked, {"report": path}, path)
    return 0


def _notebook(asked: argparse.Namespace) -> int:
    store = Results.open(asked.result)
    if not (store.folder / notebook.REPORT).is_file():
        _write_report(store)
    own = notebook.copy(store.folder)
    _print(asked, {"notebook": str(own)}, str(own))
    if not asked.no_browser:
        notebook.show(own)
    return 0


def _write_report(store: Results) -> None:
    # Imported when used: notebooks take a second to import, and most commands need none.
    from vsprof.analysis import report  # noqa: PLC0415

    # Of a campaign that goes on, it would be of half the numbers, and in the way of the runner's own.
    with store.alone():
        report.build(store.folder, store.manifest["experiment"]["notebook"])


def _checked(name: str, experiment: Experiment, asked: argparse.Namespace, testbed: str) -> campaign.Campaign:
    """The experiment as it is on the testbed, changed by the command line, whose word is the last."""
    here, options = experiments.on(experiment, testbed), _host_options(asked)
    changed = overrides.apply(here, asked, campaign.clock(here, testbed, options))
    return campaign.Campaign.check(name, changed, testbed, asked.cpus, options)


def _parse(asked: argparse.Namespace) -> int:
    store = Results.open(asked.result)
    written: set[tuple[str, str, str]] = set()
    with store.alone():
        store.check_raw()
        with store.joined():
            for record in (one for one in store.manifest["runs"] if one["status"] == "done"):
                tables = parse.tables_of_run(store.run_folder(record["run_id"]))
                store.keep(record["run_id"], *tables)
                written |= {(row["collector"], row["unit"], row["name"]) for row in tables[0]}
    for text in units.unknown(written):
        _tell(f"vsprof: {text}")
    path = str(store.folder / results.MEASUREMENTS)
    _print(asked, {"measurements": path}, path)
    return 0


def _show(asked: argparse.Namespace) -> int:
    from vsprof.analysis import load, show  # noqa: PLC0415

    result = load.load(Results.open(asked.result).folder)
    if asked.json:
        print(json.dumps(show.summary(result), indent=1))
    else:
        print(show.text(result))
    return 0


def _timeline(asked: argparse.Namespace) -> int:
    from vsprof.analysis import load, timeline  # noqa: PLC0415

    result = load.load(Results.open(asked.result).folder)
    path = asked.out or result.path / timeline.NAME
    said = timeline.write(result, path, asked.run_id)
    _print(asked, {"timeline": str(path), "parts": said}, f"{timeline.text(said)}\n{path}")
    return 0


def _query(asked: argparse.Namespace) -> int:
    from vsprof.analysis import load, query  # noqa: PLC0415

    found = query.query(load.load(Results.open(asked.within).folder), asked.sql)
    if asked.out:
        query.write(found, asked.out)
        _print(asked, {"out": str(asked.out), "rows": found.num_rows}, str(asked.out))
    else:
        _print(asked, query.rows(found) if asked.json else None, "" if asked.json else query.text(found))
    return 0


def _compare(asked: argparse.Namespace) -> int:
    from vsprof.analysis import compare, compare_text, gate, load  # noqa: PLC0415

    # What is wrong with a rule is said before results are read, which takes seconds.
    files = {gate.junit: asked.junit, gate.markdown: asked.markdown}
    rules = gate.rules(asked.fail_on, asked.rules, [path for path in files.values() if path])
    words = (asked.a, asked.b)
    if any(results.find(word) for word in words):
        # A result compares with a result alone: a word that names none says so.
        both = [load.load(Results.open(word).folder) for word in words]
        found, lost = compare.of_results(*both), compare.lost(*both)
    else:
        found, lost = compare.of_cases(load.load(Results.open(asked.within).folder), *words), {}
    judged = gate.judge(found, rules, lost)
    if asked.figure:
        compare_text.draw(found, asked.figure)
    for shown, path in files.items():
        if path:
            compare_text.write(path, shown(judged))
    compared = [compare_text.to_json(one) for one in found] if asked.json else []
    for one in found if not asked.json and (asked.all or not rules) else ():
        compare_text.show(one, everything=asked.all)
    gated = {"comparisons": compared, "gate": {"outcome": gate.worst(judged), "rules": [one.to_json() for one in judged]}}
    _print(asked, gated if rules else compared, gate.text(judged) if rules else "")
    return gate.STATUS[gate.worst(judged)]


def _stacks(asked: argparse.Namespace) -> int:
    from vsprof.analysis import compare_text, export, load  # noqa: PLC0415

    result = load.load(Results.open(asked.result).folder)
    found: export.Chosen = export.chosen(result, asked.switch, asked.event, asked.traffic)
    if asked.against:
        there = results.find(asked.against)
        other, case = (load.load(there), asked.switch) if there else (result, asked.against)
        found = export.difference(export.single(found), export.chosen(other, case, asked.event, asked.traffic))
    files = {name: getattr(asked, name) for name in export.FORMATS if getattr(asked, name)}
    for name, path in files.items():
        text = export.FORMATS[name](found)
        _out(text.rstrip()) if path == STDOUT else compare_text.write(path, text)
    if not asked.json and not files:
        export.show(export.parts_of(found))
    made = {name: str(path) for name, path in files.items() if path != STDOUT}
    _print(asked, {"profiles": [export.to_json(one) for one in export.parts_of(found)], "files": made}, "\n".join(made.values()))
    return 0


def _doctor(asked: argparse.Namespace) -> int:
    checks = doctor.examine(with_lab=asked.lab)
    print(json.dumps([check.to_json() for check in checks], indent=1) if asked.json else words.here(doctor.render(checks)))
    return 0


def _events(asked: argparse.Namespace) -> int:
    listing = events.examine(asked.events, asked.microarchitecture)
    _print(asked, listing.to_json(), events.render(listing))
    return 0


def _import_events(asked: argparse.Namespace) -> int:
    done = importer.bring_in(asked.files, asked.microarchitecture, asked.only, asked.to, asked.force)
    _print(asked, done.to_json(), events.render_import(done))
    return 0


def _list(asked: argparse.Namespace) -> int:
    rows, wrong = [], {}
    for name in experiments.names():
        try:
            _, experiment = experiments.load(name)
            rows.append({"name": name, "question": experiment.question, "cases": _cases_anywhere(name, experiment)})
        except errors.BadInput as error:
            wrong[name] = error
    if asked.json:
        print(json.dumps(rows, indent=1))
    else:
        for row in rows:
            print(f"{row['name']:16} {row['cases']} cases  {row['question']}")
    # After those that can be used: one wrong file hides no other.
    for name, error in wrong.items():
        print(f"vsprof: experiments/{name}.yaml: {error}", file=sys.stderr)
    return errors.BadInput.exit_status if wrong else 0


def _cases_anywhere(name: str, experiment: Experiment) -> int:
    """How many cases it has. Raises ``BadInput`` on what a run on any testbed would refuse, as the file has it."""
    named = [*experiment.testbeds, *(one for entry in experiment.traffic for one in entry.get(experiments.ONLY_ON, []))]
    checked = [campaign.Campaign.check(name, experiments.on(experiment, one), one) for one in dict.fromkeys([campaign.AUTO, *named])]
    return len(checked[0].cases)


def _host(asked: argparse.Namespace) -> int:
    with Progress() as progress:
        outcome = servers.play(asked.playbook, asked.inventory, progress.say, asked.check)
    _print(asked, {"changes": outcome.changes, "said": outcome.said}, servers.render(asked.playbook, outcome, asked.check))
    return 0


def _clean(asked: argparse.Namespace) -> int:
    if asked.server and not asked.inventory:
        raise testbeds_messages.no_inventory()
    removed, ended = [], {}
    # Told as it is done: what comes later may fail.
    for one in clean.clean(cache=asked.cache):
        removed.append(str(one))
        if not asked.json:
            print(f"removed {one}")
    for name, ends in clean.clean_servers(asked.inventory, asked.server) if asked.inventory else ():
        ended[name] = list(ends)
        if not asked.json:
            print(f"{name}: ended {', '.join(ends)}" if ends else f"{name}: nothing was left")
    _print(asked, {"removed": removed, "ended": ended}, "")
    return 0


def _image(asked: argparse.Namespace) -> int:
    with Progress() as progress:
        if asked.what == "save":
            file = parcel.save(asked.path, progress.say)
            found, said = {"file": str(file)}, str(file)
        else:
            new = parcel.load(asked.path, progress.say)
            found, said = {"loaded": new}, "the lab's image is there" if new else "the lab's image was there already"
    _print(asked, found, said)
    return 0


def _completion(asked: argparse.Namespace) -> int:
    import shtab  # noqa: PLC0415

    _out(shtab.complete(_parser(), asked.shell))
    return 0


def _names(asked: argparse.Namespace) -> int:
    found = names.of(asked.kind)
    _print(asked, found, "\n".join(found))
    return 0


def _man(_: argparse.Namespace) -> int:
    from vsprof.runner import manual  # noqa: PLC0415

    _out(manual.page(_parser()))
    return 0


def _print(asked: argparse.Namespace, found: Any, text: str) -> None:
    """For scripts, or for people; nothing where there is nothing to say."""
    if asked.json or text:
        _out(json.dumps(found, indent=1) if asked.json else text)


def _out(text: str) -> None:
    """What is long, for a reader such as `head`, which may have what it wanted before all is written. It changes no exit status."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vsprof", description="Why is one virtual switch faster than another, on this CPU, for this traffic?"
    )
    parser.add_argument("--plugins", metavar="DIR", action="append", help="a folder of your own plug-ins (default: ./vsprof.d)")
    parser.add_argument("--results", metavar="DIR", help="where results are, and go (default: $VSPROF_RESULTS, or results/)")
    parser.add_argument("--version", action="version", version=f"vsprof {metadata.version('vsprof')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_measuring(commands)
    _add_reading(commands)
    _add_looking(commands)
    _add_servers(commands)
    tidy = _command(commands, "clean", _clean, "remove what a killed run left; with --cache the lab's image and snapshots too")
    tidy.add_argument("--cache", action="store_true")
    tidy.add_argument("--inventory", type=Path, metavar="PATH", help="also end what killed runs left on these servers")
    tidy.add_argument("--server", metavar="NAME", help="which one, where the inventory lists several")
    tidy.add_argument("--json", action="store_true", help=JSON)
    carried = _command(commands, "image", _image, "write the lab's image as one file, or take it from one")
    carried.add_argument("what", choices=["save", "load"])
    carried.add_argument("path", type=Path, help="save: the folder to write it to; load: the file")
    carried.add_argument("--json", action="store_true", help=JSON)
    shell = _command(commands, "completion", _completion, "print what completes this command in a shell, for its start-up file")
    shell.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    known = _command(commands, "names", _names, "print the names that a shell completes")
    known.add_argument("kind", choices=list(names.KINDS), metavar="KIND", help="one of: " + ", ".join(names.KINDS))
    known.add_argument("--json", action="store_true", help=JSON)
    _command(commands, "man", _man, "print the manual page: `vsprof man | man -l -`")
    return parser


def _add_measuring(commands: Any) -> None:
    run = _command(commands, "run", _run, "run an experiment, and write its report")
    _add_campaign(run)
    run.add_argument("--dry-run", action="store_true", help="check the experiment, say what would be run and for how long, and run nothing")
    many = _command(commands, "sweep", _sweep, "run an experiment by Snakemake, each run a job of its own: here, or on a cluster")
    _add_campaign(many)
    many.add_argument("--executor", choices=list(sweep.EXECUTORS), default=sweep.EXECUTORS[0], help="who runs the jobs (default: local)")
    many.add_argument("--image", type=Path, metavar="FILE", help="the lab's image for nodes that have none: see `vsprof image save`")
    many.add_argument("--jobs", type=int, metavar="N", help="how many at once (default: one for each 2 CPUs and 8 GiB; on a cluster 100)")
    many.add_argument(
        "--snakemake", default="", metavar="OPTIONS", help="more options for Snakemake: '--default-resources slurm_account=x'"
    )
    job = _command(commands, "job", _job, "do one run of a result: what the jobs of a sweep call")
    names.complete(job.add_argument("result", type=Path), "results")
    job.add_argument("run_id", metavar="RUN", help="such as r002")
    job.add_argument("--image", type=Path, metavar="FILE", help="the lab's image, where it may be missing: see `vsprof image`")
    job.add_argument("--json", action="store_true", help=JSON)


def _add_campaign(run: argparse.ArgumentParser) -> None:
    names.complete(run.add_argument("experiment", nargs="?", help="a name in experiments/, or the path of a YAML file"), "experiments")
    testbed = run.add_argument("--testbed", default=campaign.AUTO, help="auto (default) or one of: " + ", ".join(experiments.TESTBEDS))
    names.complete(testbed, "testbeds")
    run.add_argument("--cpus", type=int, help="CPUs of the emulated host: 2, 4, 6, 8 or 16 (default: what the cases need, at least 4)")
    run.add_argument("--tune", action="store_true", help="native: write the settings that doctor advises for the time of each run")
    run.add_argument("--inventory", type=Path, help="measure on a server of this Ansible inventory (testbed remote)")
    run.add_argument("--server", metavar="NAME", help="which one, where the inventory lists several")
    run.add_argument("--accel", choices=list(ACCELERATORS), help="what the lab runs on: emulation (tcg), or this machine's KVM")
    run.add_argument(
        "--clock", choices=list(CLOCKS), help="whose time passes in the lab's windows: the modelled processor's (default) or the emulator's"
    )
    run.add_argument("--seed", type=int, help="seed of the random order (default: a new one, kept in the manifest)")
    again = run.add_argument("--resume", nargs="?", const="", metavar="RESULT", help="go on with a broken campaign (default: the newest)")
    names.complete(again, "results")
    talk = run.add_mutually_exclusive_group()
    talk.add_argument("--verbose", action="store_true", help="print every step, and now and then what each CPU does")
    talk.add_argument("--quiet", action="store_true", help="print only what failed, and where the result is")
    run.add_argument("--json", action="store_true", help=JSON)
    run.add_argument("--no-report", dest="report", action="store_false", help="measure only")
    overrides.add_options(run)


def _add_reading(commands: Any) -> None:
    report = _command(commands, "report", _report, "rebuild a result's report from what is stored")
    _add_result(report)
    report.add_argument("--json", action="store_true", help=JSON)

    own = _command(commands, "notebook", _notebook, "open a copy of a result's notebook in Jupyter, to go on from")
    _add_result(own)
    own.add_argument("--no-browser", action="store_true", help="make the copy only, and print where it is")
    own.add_argument("--json", action="store_true", help=JSON)

    show = _command(commands, "show", _show, "print a result's summary")
    _add_result(show)
    show.add_argument("--json", action="store_true")

    when = _command(commands, "timeline", _timeline, "write what happened when on each CPU as a trace that Perfetto opens")
    _add_result(when)
    when.add_argument("--run-id", metavar="RUN", help="of this run alone, such as r002 (default: the first one of each case)")
    when.add_argument("--out", type=Path, metavar="FILE", help="where to write (default: timeline.pftrace in the result)")
    when.add_argument("--json", action="store_true", help=JSON)

    question = _command(commands, "query", _query, "ask a result's tables in SQL (DuckDB's)")
    question.add_argument("sql", help="such as 'SELECT name, median(value) FROM measurements GROUP BY name'")
    _add_within(question, "of which result (default: latest)")
    question.add_argument("--out", type=Path, metavar="FILE", help="write the rows as CSV, or as Parquet if it ends so")
    question.add_argument("--json", action="store_true", help=JSON)

    two = _command(commands, "compare", _compare, "print every metric's ratio of two switches, or of two results, and what makes it")
    for side, text in (
        ("a", "a switch, an access or a case's label in the result; or a result's folder"),
        ("b", "the other one: a ratio above 1 means more with it"),
    ):
        names.complete(two.add_argument(side, help=text), "cases")
    _add_within(two, "the result that holds both (default: latest)")
    two.add_argument("--all", action="store_true", help="every metric of every role, not the packet path's differences alone")
    two.add_argument("--figure", type=Path, metavar="FILE", help="also draw the ratios into a PNG, SVG or PDF file")
    two.add_argument("--json", action="store_true")
    two.add_argument(
        "--fail-on", action="append", default=[], metavar="RULE", help="exit with 1 if so, with 3 if nobody can tell: 'throughput<0.95'"
    )
    two.add_argument("--rules", type=Path, metavar="FILE", help="more rules: a YAML file with a list of them")
    two.add_argument("--junit", type=Path, metavar="FILE", help="write what the rules came to as JUnit's XML")
    two.add_argument("--markdown", type=Path, metavar="FILE", help="the same as a table for a pull request")

    stacks = _command(commands, "stacks", _stacks, "list what was counted by call stack or function, and write it for other programs")
    _add_result(stacks)
    for option, kind, metavar, text in (
        ("--switch", "cases", "CASE", "of this switch, access or case's label alone"),
        ("--event", "events", "NAME", "of this event alone, such as l1d_misses (default in a file of one: the first)"),
        ("--traffic", "traffics", "NAME", "while this traffic was sent (default: the flood, at saturation)"),
        ("--against", "cases", "CASE", "the difference to another switch, access or label, or to another result"),
    ):
        names.complete(stacks.add_argument(option, metavar=metavar, help=text), kind)
    stacks.add_argument("--folded", type=Path, metavar="FILE", help="write folded stacks, a line each (-: to standard output)")
    stacks.add_argument("--speedscope", type=Path, metavar="FILE", help="write speedscope's JSON, with all that was chosen")
    stacks.add_argument("--svg", type=Path, metavar="FILE", help="draw a flame graph to zoom into")
    stacks.add_argument("--json", action="store_true", help=JSON)

    again = _command(commands, "parse", _parse, "recompute a result's measurements from raw/")
    _add_result(again)
    again.add_argument("--json", action="store_true", help=JSON)


def _add_result(command: argparse.ArgumentParser) -> None:
    text = "a folder, or a name below results/ (default: latest)"
    names.complete(command.add_argument("result", nargs="?", default=results.LATEST, help=text), "results")


def _add_within(command: argparse.ArgumentParser, text: str) -> None:
    names.complete(command.add_argument("--in", dest="within", default=results.LATEST, metavar="RESULT", help=text), "results")


def _add_looking(commands: Any) -> None:
    health = _command(commands, "doctor", _doctor, "say what this host can measure, and what to do about the rest")
    health.add_argument("--json", action="store_true")
    health.add_argument("--lab", action="store_true", help="also resume the emulated lab host and look inside")

    counting = _command(commands, "events", _events, "list the PMU events and metrics that this host can count, and why not the others")
    counting.add_argument("--json", action="store_true")
    counting.add_argument("--events", type=Path, action="append", default=[], metavar="PATH", help="a JSON file of your own, or a folder")
    text = "list the events of another processor, such as zen5; tries nothing"
    names.complete(counting.add_argument("--microarchitecture", metavar="NAME", help=text), "processors")

    vendors = _command(
        counting.add_subparsers(metavar="COMMAND"),
        "import",
        _import_events,
        "write events and metrics of perf's, Intel's or Arm's JSON files as files of your own",
    )
    vendors.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a vendor's JSON file, or a folder of such")
    # What `events` itself has, too: a default here would take the place of what was given before the word `import`.
    vendors.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=JSON)
    vendors.add_argument(
        "--microarchitecture",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="whose events they are, such as zen5 (default: as the files or their paths say)",
    )
    vendors.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="PATTERN", help="names to take, such as 'L2_RQSTS.*'; default: all"
    )
    vendors.add_argument("--to", type=Path, metavar="FOLDER", help="where to write, in place of ~/.config/vsprof/events: vsprof.d/events")
    vendors.add_argument("--force", action="store_true", help="replace files of the same name")

    listing = _command(commands, "list", _list, "list the experiments")
    listing.add_argument("--json", action="store_true")


def _add_servers(commands: Any) -> None:
    for name, text in (
        (servers.PREPARE, "prepare the servers of an inventory for measuring, over SSH"),
        (servers.TAKE_BACK, "take back what `host` did to the servers of an inventory"),
    ):
        there = _command(commands, name, _host, text)
        there.add_argument("--inventory", type=Path, metavar="PATH", help="a file in Ansible's form")
        there.add_argument("--json", action="store_true", help=JSON)
        there.set_defaults(playbook=name, check=False, interrupted=f"what is done stays done: call `make {name}` again")
    # The last one: only what was done can be taken back.
    there.add_argument("--check", action="store_true", help="say what would be taken back, and change nothing")


def _command(commands: Any, name: str, do: Any, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    command.set_defaults(do=do, interrupted="finished runs are kept: `make resume` goes on")
    return command


if __name__ == "__main__":
    sys.exit(main())
