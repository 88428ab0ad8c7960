# SPDX-License-Identifier: GPL-2.0-or-later
"""toplev: refused where it would lie, and its output read. The output is the real tool's, of two versions (5.01 and 5.1, pmu-tools
2025.6.2 and 2026.7.24.0), fed with made-up counts: recapture_toplev.py says how. So only its form is tested here, not its numbers.
"""

import json
import subprocess
from pathlib import Path

import pytest

from vsprof.collectors import toplev
from vsprof.collectors.base import Recorded
from vsprof.collectors.toplev import Cpus, Toplev
from vsprof.collectors.vtune import Vtune
from vsprof.terms.errors import BadInput
from vsprof.terms.placement import Placement
from vsprof.testbeds.base import Completed

ROOT = Path(__file__).resolve().parents[2]
CAPTURED = Path(__file__).with_name("captured")
PLACEMENT = Placement.from_json(json.loads((CAPTURED / "placement.json").read_text()))
LEVEL_1 = {"toplev_frontend_bound", "toplev_bad_speculation", "toplev_backend_bound", "toplev_retiring"}
AMD = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n"
INTEL = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) Gold 6132\nstepping\t: 4\n"


def numbers(name: str, old: str = "", new: str = ""):
    text = (CAPTURED / f"{name}.end").read_text()
    assert old in text
    return list(Toplev.numbers(Recorded("", text.replace(old, new, 1) if old else text, 0.0, PLACEMENT)))


class Host:
    """This machine with another /proc/cpuinfo, and with or without the kernel's folder of PMUs."""

    def __init__(self, folder: Path, cpuinfo: str, pmu: bool) -> None:
        self.replaced = {"/proc/cpuinfo": folder / "cpuinfo", "/sys/bus/event_source/devices": folder / "devices"}
        (folder / "cpuinfo").write_text(cpuinfo)
        if pmu:
            (folder / "devices" / "cpu").mkdir(parents=True)

    def run(self, command: str, *, timeout: float = 60, check: bool = True) -> Completed:
        for path, other in self.replaced.items():
            command = command.replace(path, str(other))
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=timeout, check=False)
        assert not check or done.returncode == 0
        return Completed(command, done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("collector", [Toplev, Vtune])
def test_refused_on_what_is_not_intels(collector, tmp_path):
    why = collector(Host(tmp_path, AMD, pmu=True)).unavailable()
    assert "AMD EPYC (AuthenticAMD-25-11-1)" in why
    assert "backend_bound" in why
    assert "perf_stat" in why


@pytest.mark.parametrize("collector", [Toplev, Vtune])
def test_refused_without_a_pmu(collector, tmp_path):
    assert "virtual PMU" in collector(Host(tmp_path, INTEL, pmu=False)).unavailable()


def test_refused_where_it_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(toplev, "PACKAGES", tmp_path / "build" / "toplev")
    why = Toplev(Host(tmp_path, INTEL, pmu=True)).unavailable()
    assert "make toplev" in why
    assert str(toplev.PACKAGES) in why


def test_refused_where_it_does_not_run(tmp_path, monkeypatch):
    (tmp_path / "toplev.py").write_text("raise SystemExit('event syntax error')\n")
    for name, path in (("PACKAGES", tmp_path), ("EVENTS", tmp_path), ("FOLDER", tmp_path / "run")):
        monkeypatch.setattr(toplev, name, path)
    assert "event syntax error" in Toplev(Host(tmp_path, INTEL, pmu=True)).unavailable()


def test_vtune_refused_where_it_is_not_installed(tmp_path):
    why = Vtune(Host(tmp_path, INTEL, pmu=True)).unavailable()
    assert "intel-oneapi-vtune" in why
    assert "/opt/intel/oneapi/vtune/latest/bin64/vtune" in why


def test_not_among_the_collectors_of_auto():
    assert not Toplev.automatic
    assert not Vtune.automatic


@pytest.mark.parametrize("level", [0, 4, "2", 1.0, True, None])
def test_bad_levels(level):
    with pytest.raises(BadInput, match="level"):
        Toplev.check_options({"level": level})


def test_good_levels():
    for level in (1, 2, 3):
        Toplev.check_options({"level": level})
    Toplev.check_options({})


def test_nothing_is_fetched_at_run_time():
    assert f"PERFMONDIR=file://{toplev.EVENTS} " in toplev.script(2, 4)
    assert "http" not in toplev.script(2, 4)


@pytest.mark.parametrize("name", ["toplev", "toplev-5.01-skx", "toplev-5.1-spr", "toplev-5.01-spr"])
def test_each_cpu_has_its_shares(name):
    found = numbers(name)
    shares = {n.name: n for n in found if n.cpu == 1}
    assert set(shares) >= LEVEL_1 | {"toplev_backend_bound.memory_bound"}
    assert {(n.cpu, n.role) for n in found} == {(0, "host-other"), (1, "switch"), (2, "guest"), (3, "guest")}
    assert len(found) == 4 * len(shares) == 4 * 12
    assert sum(shares[one].value for one in LEVEL_1) == pytest.approx(1, abs=0.002)
    assert {n.unit for n in found} == {"fraction of slots"}


def test_values_units_and_time():
    found = {(n.name, n.cpu): n for n in numbers("toplev")}
    one = found["toplev_backend_bound.core_bound", 1]
    assert (one.value, one.unit, one.note) == (pytest.approx(0.443), "fraction of slots", "")
    assert (one.enabled_s, one.running_s) == (0.1, pytest.approx(0.01429))
    assert "threshold" in found["toplev_retiring", 1].note
    assert found["toplev_retiring", 1].value == pytest.approx(0.03)
    assert "0 to 1" in found["toplev_frontend_bound.fetch_bandwidth", 1].note


def test_what_perf_did_not_count_is_no_zero():
    assert "C0-T0,Frontend_Bound,0.0," in (CAPTURED / "toplev-5.1-uncounted.end").read_text()  # what toplev makes of it
    found = numbers("toplev-5.1-uncounted")
    assert {n.value for n in found} == {None}
    assert all("event=0x9c" in n.note for n in found)


def test_one_uncounted_event_takes_the_values_of_its_core_only():
    line = "CPU1;368924;;cpu/event=0x9c,umask=0x1/"
    found = numbers("toplev", line, line.replace("368924", "<not supported>"))
    assert {n.cpu for n in found if n.value is None} == {1, 3}


def test_a_row_of_a_core_belongs_to_the_role_that_both_threads_have():
    of_core = {n.note: n for n in numbers("toplev", "C1-T1,Retiring,", "C1,Retiring,") if n.cpu is None}
    (one,) = of_core.values()
    assert (one.role, one.cpu) == (None, None)  # CPU 1 is the switch's, CPU 3 a guest's
    assert one.note.endswith("of C1")


def test_titles():
    cpus = Cpus("".join(f"processor: {n}\nphysical id: {n % 2}\ncore id: 7\n" for n in range(4)))
    assert [list(cpus.of(title)) for title in ("CPU3", "S1-C7-T1", "S0-C7", "S1", "")] == [[3], [3], [0, 2], [1, 3], []]
    assert cpus.neighbours([1]) == {1, 3}
    for wrong in ("S2", "C1", "S0-C7-T2", "X", "SUMMARY"):
        with pytest.raises(ValueError, match="CPU"):
            cpus.of(wrong)


def test_other_units():
    text = "CPU0,Info.Core.IPC,1.5,Metric,,,0.0,100.0,,\nCPU0,MUX,14.3,%,,,0.0,100.0,,\nCPU0,X.L1,nan,% Core_Clocks <,,,,100.0,,Y\n#"
    found = {n.name: n for n in numbers("toplev", "# 5.1", text)}
    assert (found["toplev_info.core.ipc"].value, found["toplev_info.core.ipc"].unit) == (1.5, "number")
    assert (found["toplev_mux"].value, found["toplev_mux"].unit) == (pytest.approx(0.143), "fraction")
    assert (found["toplev_x.l1"].value, found["toplev_x.l1"].unit) == (None, "fraction of core clocks")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("CPUs,Area,Value", "CPUs,Area,Number"),
        ("C0-T0,Frontend_Bound,2.3,", "C0-T0,Frontend_Bound,much,"),
        ("C0-T0,Frontend_Bound,2.3,", "C9-T0,Frontend_Bound,2.3,"),
        ("C0-T0,Frontend_Bound,2.3,", "C0-T0,2.3,"),
        ("latency_ge_4,0.0,14.29", "latency_ge_4,0.0,1429"),
        ("--- perf\n", ""),
        ("--- toplev\n", ""),
    ],
)
def test_what_is_no_output_of_toplev_is_refused(old, new):
    with pytest.raises(ValueError):  # noqa: PT011
        numbers("toplev", old, new)


def test_setting_up_is_refused_with_the_next_move(tmp_path):
    for text, words in ((AMD, ["AuthenticAMD", "backend_bound"]), (INTEL, ["git clone", "PERFMON"])):
        (tmp_path / "cpuinfo").write_text(text)
        command = ["tools/setup-toplev", "python3", tmp_path / "packages", tmp_path / "events", ""]
        done = subprocess.run(
            command, env={"PATH": "/usr/bin:/bin", "CPUINFO": tmp_path / "cpuinfo"}, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert all(word in done.stderr for word in words)
        assert not (tmp_path / "packages").exists()
