# SPDX-License-Identifier: GPL-2.0-or-later
"""The script of a window, run for real by bash: every probe at both ends, stamped, in the same order."""

import contextlib
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from vsprof.collectors import ovs
from vsprof.collectors.base import Collector, Marks, Reader
from vsprof.collectors.ovs import Asker
from vsprof.runner import window
from vsprof.runner.window import Probe
from vsprof.terms import errors
from vsprof.testbeds.ssh import Shell
from vsprof.workloads.endpoints.base import Counters
from vsprof.workloads.traffic.base import Sample

PROBES = {"first": Probe("echo first begins", "echo first ends", "touch prepared"), "ports": Probe("echo in", "echo out")}


def test_all_begin_then_the_window_passes_then_all_end_in_the_same_order():
    lines = window.script(PROBES, 2.5).splitlines()
    order = [
        next(i for i, line in enumerate(lines) if word in line)
        for word in ("first.began", "ports.began", "sleep 2.5", "first.ended", "ports.ended")
    ]
    assert order == sorted(order)
    assert lines.index("touch prepared") < order[0]


def test_every_probe_is_stamped_just_before_it_reads():
    lines = window.script(PROBES, 1).splitlines()
    for name in PROBES:
        for stamp, end in (("began", "begin"), ("ended", "end")):
            at = lines.index(f"echo $EPOCHREALTIME > {name}.{stamp}")
            assert lines[at + 2] == f"}} > {name}.{end}"


class Machine:
    """This machine: its bash, and its files."""

    clock = "modelled"

    def __init__(self, log: Path | None = None):
        self.log = log

    def push(self, content, path):
        Path(path).write_text(content)

    def pull(self, path, to):
        shutil.copytree(path, Path(to) / Path(path).name, dirs_exist_ok=True)

    @contextlib.contextmanager
    def shell(self):
        shell = Shell(["bash"])
        try:
            yield shell
        finally:
            shell.close()

    @contextlib.contextmanager
    def guests_held(self):
        self._note("guests stand still")
        yield
        self._note("guests go on")

    def _note(self, word: str) -> None:
        if self.log:
            with self.log.open("a") as log:
                log.write(f"{word}\n")


class Counting:
    """A traffic, and a clock, that note when they were asked."""

    def __init__(self, log: Path, asks: bool = True):
        self.log, self.asks = log, asks

    def note(self, word: str) -> None:
        with self.log.open("a") as log:
            log.write(f"{word}\n")

    @contextlib.contextmanager
    def modelled_time(self):
        self.note("time begins")
        try:
            yield
        finally:
            self.note("time ends")

    def warm_up(self, least, most):
        self.note(f"warm up {least} to {most}")

    def patience(self, seconds):
        return lambda: False

    def read_window(self):
        self.note("what was counted")
        return "what the model counted"

    def marks(self):
        return Marks(*(f"echo {word} >> {self.log}" for word in ("ready", "probes", "opened", "closed")))

    def hold(self):
        self.note("hold")

    def go_on(self):
        self.note("go on")

    def asks_endpoints(self):
        return self.asks

    def sample(self):
        self.note("sample")
        return Sample(Counters(1.0, 1, 1, 1, 1), Counters(1.0, 1, 1, 1, 1))


def test_in_modelled_time_are_only_the_probes_and_the_marks_touch_the_window(tmp_path, monkeypatch):
    monkeypatch.setattr(window, "FOLDER", str(tmp_path / "w"))
    log = tmp_path / "log"
    both = Counting(log)
    # What its preparation began, its end finds: it is one shell.
    probe = Probe(f"echo begin >> {log}", f"echo end >> {log}", f"echo prepare >> {log}; mine=5", f"echo finish $mine >> {log}")
    monkeypatch.setattr(window, "probes", lambda traffic, collectors: {"p": probe})
    window.measure_modelled(Machine(log), both, {}, both, 0.1, 0.0, tmp_path / "kept", tmp_path / "own" / "c.end")
    assert log.read_text().splitlines() == [
        "guests stand still", "prepare", "ready", "guests go on", "hold", "time begins", "go on", "warm up 0.0 to 0.0", "sample", "probes", "begin", "opened", "closed", "end", "sample", "time ends",
        "guests stand still", "finish 5", "what was counted", "guests go on",
    ]  # fmt: skip
    assert window.recorded_samples(tmp_path / "kept") == (both.sample(), both.sample())
    assert (tmp_path / "kept" / "errors.txt").read_text() == ""
    assert (tmp_path / "own" / "c.end").read_text() == "what the model counted"
    assert window.recorded_seconds(tmp_path / "kept", "p") >= 0.1


def test_in_modelled_time_what_asks_the_switch_is_outside_of_all_others(tmp_path, monkeypatch):
    monkeypatch.setattr(window, "FOLDER", str(tmp_path / "w"))
    log = tmp_path / "log"
    both = Counting(log)

    found = {
        name: Probe(f"echo {name} begins >> {log}", f"echo {name} ends >> {log}", nesting=nesting)
        for name, nesting in {"asks": 0, "both": 1, "counts": 2, "late": 0, window.PORTS: 0}.items()
    }
    monkeypatch.setattr(window, "probes", lambda traffic, collectors: found)
    window.measure_modelled(Machine(), both, {}, both, 0.01, 0.0, tmp_path / "kept", tmp_path / "own" / "c.end")
    order = ["asks", "late", "ports", "both", "counts"]
    said = log.read_text().splitlines()
    assert [line for line in said if line.endswith(("begins", "ends", "opened", "closed"))] == [
        "time begins", *(f"{name} begins" for name in order), "opened", "closed", *(f"{name} ends" for name in order[::-1]), "time ends",
    ]  # fmt: skip


def test_endpoints_that_are_not_asked_have_no_samples(tmp_path, monkeypatch):
    monkeypatch.setattr(window, "FOLDER", str(tmp_path / "w"))
    both = Counting(tmp_path / "log", asks=False)
    monkeypatch.setattr(window, "probes", lambda traffic, collectors: {})
    window.measure_modelled(Machine(), both, {}, both, 0.1, 0.0, tmp_path / "kept", tmp_path / "own" / "c.end")
    assert "sample" not in both.log.read_text()
    assert window.recorded_samples(tmp_path / "kept") is None


def test_modelled_time_ends_when_a_probe_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(window, "FOLDER", str(tmp_path / "w"))
    log = tmp_path / "log"
    both = Counting(log)
    monkeypatch.setattr(window, "probes", lambda traffic, collectors: {"p": Probe("exit 3", "true")})
    with pytest.raises(errors.RunFailed):
        window.measure_modelled(Machine(), both, {}, both, 0.1, 0.0, tmp_path / "kept", tmp_path / "own" / "c.end")
    assert log.read_text().splitlines()[-1] == "time ends"


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """The script really run, for a tenth of a second; returns its folder, in which ``took`` is how long all of it took."""
    monkeypatch.setattr(window, "FOLDER", str(tmp_path / "w"))
    began = time.time()
    subprocess.run(["bash", "-c", window.script(PROBES, 0.1)], check=True, timeout=10)
    (tmp_path / "w" / "took").write_text(str(time.time() - began))
    return tmp_path / "w"


def test_what_each_probe_printed_is_kept(measured):
    assert (measured / "first.begin").read_text() == "first begins\n"
    assert (measured / "first.end").read_text() == "first ends\n"
    assert (measured / "prepared").exists()


def test_a_probe_is_timed_by_its_own_stamps(measured):
    assert 0.1 <= window.recorded_seconds(measured, "ports") < float((measured / "took").read_text())


def test_a_multi_line_command_is_one_probe(tmp_path, monkeypatch):
    monkeypatch.setattr(window, "FOLDER", str(tmp_path / "w"))
    probe = Probe("echo a\necho b", "true; echo c # a comment", "")
    subprocess.run(["bash", "-c", window.script({"p": probe}, 0)], check=True, timeout=10)
    assert (tmp_path / "w" / "p.begin").read_text() == "a\nb\n"
    assert (tmp_path / "w" / "p.end").read_text() == "c\n"


def test_a_collector_may_have_nothing_to_do_at_an_end(tmp_path, monkeypatch):
    """Or the shell would take the whole script for broken, where only what was begun before had been done."""
    monkeypatch.setattr(window, "FOLDER", str(tmp_path / "w"))
    subprocess.run(["bash", "-c", window.script({"p": Probe("", "", finish="echo c")}, 0)], check=True, timeout=10)
    assert (tmp_path / "w" / "p.begin").read_text() == ""
    assert (tmp_path / "w" / "p.end").read_text() == "c\n"


class HereHost:
    """Runs the script on this machine."""

    def push(self, content, path):
        Path(path).write_text(content)

    def run(self, command, timeout):
        subprocess.run(command, shell=True, check=True, timeout=timeout)

    def pull(self, path, to):
        shutil.copytree(path, to / Path(path).name)


class Counts(Collector):
    """Prints a word at each end, and one behind the window."""

    def begin(self):
        return "echo begins"

    def end(self):
        return "echo ends"

    def finish(self):
        return "echo finishes"

    @classmethod
    def numbers(cls, recorded):
        return []


class Reads(Reader):
    """Reads a line of a file of its own, and one that others read, too."""

    def __init__(self, folder: Path, own: str):
        super().__init__(None)
        self.files = {f"{folder}/{own}": "^mine", f"{folder}/both": "^ours"}

    @classmethod
    def numbers(cls, recorded):
        return []


@pytest.fixture
def traffic():
    counters = Counters(1.0, 0, 0, 0, 0)
    switch = SimpleNamespace(port_counters=lambda: "true")
    return SimpleNamespace(topology=SimpleNamespace(switch=switch), asks_endpoints=lambda: True, sample=lambda: Sample(counters, counters))


def test_what_one_program_reads_for_several_is_kept_as_if_each_had_read_it(tmp_path, monkeypatch, traffic):
    monkeypatch.setattr(window, "FOLDER", str(tmp_path / "w"))
    for name in ("one", "two", "both"):
        (tmp_path / name).write_text("ours 3\nmine 1\n")
    readers = {name: Reads(tmp_path, name) for name in ("one", "two")}
    window.measure(HereHost(), traffic, {**readers, "other": Counts(None)}, 0.1, tmp_path / "kept")
    kept = {path.name for path in (tmp_path / "kept").iterdir()}
    assert kept == {"errors.txt", "samples.json"} | {
        f"{name}.{end}" for name in ("one", "two", "other", "ports") for end in ("began", "begin", "ended", "end")
    }
    for name in ("one", "two"):
        for end in ("begin", "end"):
            lines = (tmp_path / "kept" / f"{name}.{end}").read_text().splitlines()
            assert sorted(lines) == sorted([f"{tmp_path}/{name}:mine 1", f"{tmp_path}/both:ours 3"])
        assert window.recorded_seconds(tmp_path / "kept", name) >= 0.1


class Asks(Asker):
    """Asks the daemon two things."""

    asks = ("one", "--- two", "two")

    @classmethod
    def numbers(cls, recorded):
        return []


class ReadsAndAsks(Reads, Asks):
    """Gets what is read, and what is answered behind it."""


def test_what_one_program_asks_for_several_is_kept_as_if_each_had_asked(tmp_path, monkeypatch, traffic):
    monkeypatch.setattr(window, "FOLDER", str(tmp_path / "w"))
    # The daemon answers with the question.
    monkeypatch.setattr(ovs, "asking", lambda *questions: "printf '%s\\n' " + shlex.join(questions))
    (tmp_path / "one").write_text("mine 1\n")
    collectors = {"asks": Asks(None), "both": ReadsAndAsks(tmp_path, "one")}
    window.measure(HereHost(), traffic, collectors, 0.1, tmp_path / "kept")
    kept = {path.name for path in (tmp_path / "kept").iterdir()}
    assert kept == {"errors.txt", "samples.json"} | {
        f"{name}.{end}" for name in ("asks", "both", "ports") for end in ("began", "begin", "ended", "end")
    }
    for end in ("begin", "end"):
        assert (tmp_path / "kept" / f"asks.{end}").read_text() == "one\n--- two\ntwo\n"
        assert (tmp_path / "kept" / f"both.{end}").read_text() == f"{tmp_path}/one:mine 1\none\n--- two\ntwo\n"
    assert window.recorded_seconds(tmp_path / "kept", "both") >= 0.1


def test_what_finishes_prints_behind_what_ended(tmp_path, monkeypatch, traffic):
    monkeypatch.setattr(window, "FOLDER", str(tmp_path / "w"))
    window.measure(HereHost(), traffic, {"one": Counts(None), "two": Counts(None)}, 0.1, tmp_path / "kept")
    for name in ("one", "two"):
        assert (tmp_path / "kept" / f"{name}.end").read_text() == "ends\nfinishes\n"
        assert (tmp_path / "kept" / f"{name}.begin").read_text() == "begins\n"


def test_ports_are_read_nearest_to_the_ends():
    class Stub:
        def __getattr__(self, _):
            return self

        def __call__(self):
            return "true"

    assert list(window.probes(Stub(), {"a": Stub(), "b": Stub()}))[-1] == window.PORTS
