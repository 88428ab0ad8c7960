# SPDX-License-Identifier: GPL-2.0-or-later
"""The manual page: what argparse knows of the commands, and beside it exit statuses, variables, files and examples. Numbers and names are
those of the code that uses them; a test holds the list of variables against the code, and parses the examples."""

import argparse
from collections.abc import Mapping
from importlib import metadata

from argparse_manpage.manpage import Manpage

from vsprof.analysis import gate
from vsprof.runner import cli, entry, results
from vsprof.switches import vhost_switch
from vsprof.terms import errors, places
from vsprof.workloads.endpoints.own_programs import FRAME_FLOOD, FRAME_PROBE

EXIT_STATUS = {
    0: "done",
    errors.VsprofError.exit_status: "a run or the report failed; or a rule of compare",
    errors.BadInput.exit_status: "bad input, and nothing was written",
    gate.STATUS[gate.UNTOLD]: "compare: the data can't tell whether a rule holds",
    entry.OWN_ERROR: "an error in vsprof itself, with a traceback",
    cli.INTERRUPTED: "interrupted; finished runs are kept",
}
ENVIRONMENT = {
    places.RESULTS_NAMED: "the folder of results, as --results; default: results/ in the clone, or in the working folder once installed",
    places.PLUGINS: "folders of your own plug-ins, separated by colons, as --plugins; default: vsprof.d in the working folder",
    places.EVENTS_NAMED: "the folder of your own event files; default: ~/.config/vsprof/events",
    places.CACHE_NAMED: "the folder of the lab's images and snapshots; default: ~/.cache/vsprof",
    places.MIRROR_NAMED: "the Debian mirror for the lab's image, as mmdebstrap accepts it; default: mmdebstrap's own",
    vhost_switch.MINE: "another build of vhost-switch, for measuring it",
    FRAME_PROBE.variable: "another build of frame-probe",
    FRAME_FLOOD.variable: "another build of frame-flood",
    "XDG_CACHE_HOME": "in place of ~/.cache",
    "XDG_CONFIG_HOME": "in place of ~/.config",
}
FILES = {
    "results/<time>-<experiment>/": "one result",
    f".../{results.MANIFEST}": "what was run, where and when, and how each run ended",
    f".../{results.MEASUREMENTS}": "every number",
    f".../{results.FUNCTIONS}, .../{results.STACKS}, .../{results.TIMELINE}": "counts by function, by call stack; what happened when",
    f".../{results.RAW}/": "what was printed, by run: vsprof parse reads it again",
    ".../report.html": "the report",
    f"results/{results.LATEST}": "the newest complete result",
    "vsprof.d/": "your own plug-ins: experiments/, collectors/, switches/, workloads/traffic/, notebooks/, events/, profiles/",
    "~/.config/vsprof/events/": "your own event files, by processor: where vsprof events import writes",
    "~/.cache/vsprof/": "the lab's images and snapshots; vsprof clean --cache removes them",
}
EXAMPLES = {
    "vsprof run vm2vm --repeat 6": "measure kernel OVS and OVS-DPDK between two virtual machines, and write the report",
    "vsprof run --resume": "go on with the newest campaign where it stopped",
    "vsprof show": "print the newest result's summary",
    "vsprof compare kernel-ovs ovs-dpdk": "every metric's ratio of two switches, with its interval",
    "vsprof compare before after --fail-on 'throughput<0.95'": "fail a build whose switch became slower than before",
    "vsprof query 'SELECT switch, median(value) FROM measurements GROUP BY switch'": "ask a result's tables in SQL",
    "vsprof stacks --event l1d_misses --svg flames.svg": "draw a flame graph of cache misses",
}


def page(parser: argparse.ArgumentParser) -> str:
    """In roff, as `man -l -` reads it."""
    title = {"project_name": "vsprof", "manual_title": "vsprof", "version": metadata.version("vsprof")}
    made = Manpage(parser, format="single-commands-section", _data=title)
    statuses = {str(number): text for number, text in EXIT_STATUS.items()}
    for heading, listed in (("exit status", statuses), ("environment", ENVIRONMENT), ("files", FILES), ("examples", EXAMPLES)):
        made.add_section(heading, "=", _listed(listed))
    return str(made)


def _listed(texts: Mapping[str, str]) -> str:
    # Paths are long words: lines are neither filled up to the margin nor hyphenated.
    return ".ad l\n.nh\n" + "\n".join(f".TP\n\\fB{_plain(word)}\\fR\n{_plain(text)}" for word, text in texts.items())


def _plain(text: str) -> str:
    """What roff would take as its own is shown as it is: a hyphen that can be copied, a quotation mark, a dot that begins a line."""
    shown = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("~", "\\(ti")
    return f"\\&{shown}" if shown.startswith(".") else shown
