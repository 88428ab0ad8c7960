# SPDX-License-Identifier: GPL-2.0-or-later
"""What is remembered of the kernel's events: that they can be counted, and never that they could not."""

from types import SimpleNamespace

from vsprof.collectors.perf_software import PerfSoftware
from vsprof.terms.errors import RunFailed


class Host:
    """A lab that remembers what it answered, with a perf that fails for a while."""

    def __init__(self, failures: int) -> None:
        self.asked, self._failures, self._kept = 0, failures, {}

    def run(self, command, *, check=True):
        self.asked += 1
        failed, self._failures = self._failures > 0, self._failures - 1
        if failed and check:
            raise RunFailed("perf: no")
        return SimpleNamespace(status=int(failed), stdout="", stderr="perf: no" if failed else "")

    def remembered(self, question, ask):
        if question not in self._kept:
            self._kept[question] = ask()
        return self._kept[question]


def test_what_works_is_asked_once():
    host = Host(0)
    assert [PerfSoftware(host).unavailable() for _ in range(3)] == [None] * 3
    assert host.asked == 1


def test_what_failed_for_a_moment_is_asked_again():
    host = Host(2)
    assert PerfSoftware(host).unavailable() == "perf stat does not work: perf: no"
    assert PerfSoftware(host).unavailable() is None
    assert host.asked == 3
