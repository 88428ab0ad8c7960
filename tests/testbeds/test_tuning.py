# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings of the host that disturb a measurement: how those of many CPUs are told."""

from vsprof.testbeds import tuning
from vsprof.testbeds.tuning import Setting


def governor(cpu: int, seen: str) -> Setting:
    return Setting(f"frequency governor of CPU {cpu}", f"/cpu{cpu}", seen, "performance", cpu)


def test_each_cpu_asked_for_is_looked_at(monkeypatch, tmp_path):
    monkeypatch.setattr(tuning, "GOVERNOR", f"{tmp_path}/{{cpu}}")
    for cpu in (1, 2, 5):
        (tmp_path / str(cpu)).write_text("powersave\n")
    found = [one for one in tuning.look([1, 5, 7]) if one.cpu is not None]
    assert [(one.cpu, one.seen, one.differs) for one in found] == [(1, "powersave", True), (5, "powersave", True)]


def test_what_is_the_same_of_many_cpus_is_told_once():
    settings = [
        Setting("NMI watchdog", "/nmi", "1", "0"), governor(1, "powersave"), governor(2, "schedutil"), governor(3, "performance"),
        governor(4, "powersave"), Setting("turbo", "/turbo", "0", "0"),
    ]  # fmt: skip
    assert [(one.what, one.seen) for one in tuning.differing(settings)] == [
        ("NMI watchdog", "1"), ("frequency governor of CPUs 1, 4", "powersave"), ("frequency governor of CPU 2", "schedutil")
    ]  # fmt: skip
