# SPDX-License-Identifier: GPL-2.0-or-later
"""The processor model inside a real lab: its page walks are QEMU's, it counts the same work alike, and leaves nothing behind.

The work is a fixed number of bytes through sha256sum. A window around it is opened and closed inside the lab, by the program
``mark``, so that no log-in lies in it.
"""

import json
import math
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from vsprof.collectors.base import Recorded
from vsprof.collectors.uarch_model import BUILD, UarchModel, numbers
from vsprof.terms import errors
from vsprof.terms.placement import Placement
from vsprof.testbeds.base import MODELLED
from vsprof.testbeds.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("lab_can_run")]

PLUGIN = BUILD / "uarch_model.so"
MARK = "/root/vsprof-mark"
MIB = 8
# Both on CPU 0, the only one that is not isolated: they take turns, so that the kernel switches to each by its own name.
WORK = f"head -c {MIB}M /dev/zero | sha256sum > /run/vsprof-sum"
WORK_SECONDS = 120
"""For one work, even when it is modelled on a busy machine."""


@dataclass
class Seen:
    """What one lab showed, from before the model to behind it."""

    counted: int
    """Instructions between two questions in the state ``count``."""
    counted_after: int
    """The same with the model switched off again."""
    windows: list[dict[str, Any]]
    status: dict[str, Any]
    recorded: str
    """What the collector made of the last of the windows."""
    states: list[str]


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    if not PLUGIN.exists():
        pytest.skip("the model is not built: run `make setup`")
    with Lab(plugins=[PLUGIN], clock=MODELLED) as host:
        host.push((BUILD / "mark").read_bytes(), MARK)
        host.run(f"chmod 755 {MARK}")
        collector = UarchModel(host)
        assert collector.unavailable() is None
        collector.setup()
        try:
            yield _look(host, collector)
        finally:
            collector.teardown()


def _look(host: Lab, collector: UarchModel) -> Seen:
    states = [_status(collector)["state"]]
    collector._change("count")
    states.append(_status(collector)["state"])
    counted = _counted(host, collector)
    # From count to model.
    with collector.modelled_time():
        states.append(_status(collector)["state"])
        # Once for the page cache and the model's caches; then what is compared.
        windows = [_marked(host, collector) for _ in range(3)][1:]
        recorded = collector.read_window()
        status = _status(collector)
    states.append(_status(collector)["state"])
    return Seen(counted, _counted(host, collector), windows, status, recorded, states)


def _counted(host: Lab, collector: UarchModel) -> int:
    """The instructions that the plug-in sees while the work is done."""
    before = _retired(collector)
    host.run(WORK, timeout=WORK_SECONDS)
    return _retired(collector) - before


def _retired(collector: UarchModel) -> int:
    return sum(vcpu["instructions"] for vcpu in _status(collector)["vcpus"])


def _marked(host: Lab, collector: UarchModel) -> dict[str, Any]:
    host.run(f"{MARK} begin; {WORK}; {MARK} end", timeout=WORK_SECONDS)
    window: dict[str, Any] = json.loads(collector._ask("window"))
    return window


def _status(collector: UarchModel) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(collector._ask("status"))
    return status


def _of_work(window: dict[str, Any], name: str, mode: str = "host_user", counter: str = "instructions") -> int:
    """A counter of all threads of this name."""
    tasks = [task for core in window["cores"] for task in core["tasks"] if task["name"] == name]
    return sum(task["modes"].get(mode, {}).get(counter, 0) for task in tasks)


def test_the_models_page_walks_find_what_qemu_finds(seen: Seen) -> None:
    checked, wrong = (sum(vcpu[f"translations_{what}"] for vcpu in seen.status["vcpus"]) for what in ("checked", "wrong"))
    assert checked > 100
    assert wrong == 0


def test_the_work_is_found_by_the_name_of_its_thread(seen: Seen) -> None:
    for window in seen.windows:
        # Each byte takes an instruction at the least, unless the processor has some for SHA itself: then one for 16 bytes.
        assert _of_work(window, "sha256sum") > MIB * (1 << 20) / 16
        # It reads what head wrote, in the kernel.
        assert _of_work(window, "sha256sum", "host_kernel") > 0
        assert _of_work(window, "head", "host_kernel") > 0


def test_the_same_work_counts_the_same(seen: Seen) -> None:
    first, second = (_of_work(window, "sha256sum") for window in seen.windows)
    assert second == pytest.approx(first, rel=0.01)
    loads = [_of_work(window, "sha256sum", counter="loads") for window in seen.windows]
    assert loads[1] == pytest.approx(loads[0], rel=0.01)


def test_threads_sum_up_to_their_core(seen: Seen) -> None:
    for window in seen.windows:
        core = window["cores"][0]
        by_thread = sum(mode["instructions"] for task in core["tasks"] for mode in task["modes"].values())
        by_mode = sum(mode["instructions"] for mode in core["modes"].values())
        assert by_thread == pytest.approx(by_mode, rel=0.01)


def test_misses_are_part_of_what_was_asked(seen: Seen) -> None:
    # Counters are copied one after another: only where much was counted do they belong together.
    much = [counts for window in seen.windows for core in window["cores"] for counts in core["modes"].values()]
    much = [counts for counts in much if counts["instructions"] > 100_000]
    assert much
    for counts in much:
        of = lambda name: counts.get(name, 0)  # noqa: E731, B023
        assert of("branch_misses") <= of("branches") <= of("instructions")
        assert of("llc_misses") <= of("l2_misses") <= of("l2_accesses")
        assert of("dtlb_walks") <= of("dtlb_misses") <= of("loads") + of("stores")
        assert of("l1i_misses") <= of("l1i_fetches")
        assert of("cycles") > 0


def test_counting_alone_counts_the_work_too(seen: Seen) -> None:
    modelled = _of_work(seen.windows[0], "sha256sum")
    assert seen.counted > modelled


def test_a_window_becomes_numbers(seen: Seen) -> None:
    window = json.loads(seen.recorded)
    found = list(numbers.of(Recorded("", seen.recorded, math.nan, Placement())))
    assert sum(number.value or 0 for number in found if number.name == "instructions") > 0
    assert any(function["object"] == "kernel" for function in window["functions"])


def test_the_states_were_those_asked_for(seen: Seen) -> None:
    assert seen.states == ["off", "count", "model", "off"]


def test_switched_off_the_model_is_called_for_nothing(seen: Seen) -> None:
    """Each block of code that calls it is counted, so one that was left would show. How fast the lab then is, `make bench-model` tells."""
    assert seen.counted_after == 0


def test_a_plug_in_that_dies_with_its_emulator_is_one_clear_error() -> None:
    if not PLUGIN.exists():
        pytest.skip("the model is not built: run `make setup`")
    with Lab(plugins=[PLUGIN]) as host:
        collector = UarchModel(host)
        collector.setup()
        told = r"the processor model .* does not answer"
        modelled = collector.modelled_time()
        modelled.__enter__()
        os.kill(host.machine.pid, signal.SIGKILL)
        time.sleep(0.5)
        with pytest.raises(errors.RunFailed, match=told):
            collector.read_window()
        with pytest.raises(errors.RunFailed, match=told):
            modelled.__exit__(None, None, None)
        collector.teardown()
