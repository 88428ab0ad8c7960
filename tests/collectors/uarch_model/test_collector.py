# SPDX-License-Identifier: GPL-2.0-or-later
"""The collector's own side: what it tells the plug-in and in what order, and what it does when the plug-in is gone.

The host and the plug-in's socket are made up; what a window says is a real one (captured/).
"""

import contextlib
import itertools
import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from vsprof.collectors import uarch_model
from vsprof.collectors.base import Clock, Recorded
from vsprof.collectors.uarch_model import UarchModel, processes, profiles, symbols
from vsprof.collectors.uarch_model import messages as uarch_model_messages
from vsprof.collectors.uarch_model.control import Control
from vsprof.terms import errors, plugins
from vsprof.terms.placement import Placement
from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds import patience
from vsprof.testbeds.base import EMULATED, MODELLED
from vsprof.testbeds.patience import Patience

CAPTURED = json.loads((Path(__file__).parents[1] / "captured" / "uarch_model.end").read_text())
KERNEL = """\
ip_rcv_core.isra.0 ffffffff81a00000
tcp_v4_rcv ffffffff81b00000
__switch_to ffffffff81001000
pcpu_hot 000000000002f000
offsets 2456 2992 108 24 112
"""
PROCESSES = "/proc/652/maps:7f0000001000-7f0000003000 r-xp 00001000 fe:00 132 /usr/lib/librte_vhost.so.25.0\n---\n/proc/652/task/652\n"
SWITCH = "/proc/700/maps:560000001000-560000003000 r-xp 00001000 fe:00 133 /usr/local/bin/vhost-switch\n---\n/proc/700/task/700\n"
# The begin of each function in the file.
PROGRAMS = {
    "librte_vhost.so.25.0": ([0x1500], [("librte_vhost.so.25.0", "rte_vhost_dequeue_burst")]),
    "vhost-switch": ([0x1500, 0x1600, 0x1700], [("vhost-switch", name) for name in ("own_send", "own_receive", "own_arm")]),
}
LAYOUTS = itertools.count()
COUNTER_SPEED = """\
[    0.000000] tsc: Detected 2596.127 MHz processor
[    7.913009] tsc: Refined TSC clocksource calibration: 2596.153 MHz
"""
KALLSYMS = "ffffffff81001000 __switch_to\nffffffff81002000 try_to_wake_up\n"


class Host:
    """Answers the collector's commands."""

    clock = EMULATED
    patience = Patience

    def __init__(self, folder: Path, kernel: str = KERNEL, listed: str = PROCESSES) -> None:
        self.folder = folder
        self.answers = {uarch_model.KERNEL: kernel, processes.LIST: listed, symbols.KERNEL_SYMBOLS: KALLSYMS, "true": ""}
        self.answers[uarch_model.NODES] = "0 1 0-3\n"
        self.answers[uarch_model.COUNTER_SPEED] = COUNTER_SPEED
        self.answers[f"chmod +x {uarch_model.MARK}"] = ""
        self.pushed: dict[str, bytes] = {}
        self.deepest_idle: str | None = None
        # Another layout for each test's kernel: what is known of one is asked once.
        self.answers[symbols.LAYOUT] = self.answers[symbols.BUILT_IN] = f"{next(LAYOUTS)}"
        self.ran: list[str] = []

    def run(self, command: str, **_: object) -> SimpleNamespace:
        self.ran.append(command)
        return SimpleNamespace(stdout=self.answers[command])

    def remembered(self, question, ask):
        return ask()

    def push(self, content: bytes, path: str) -> None:
        self.pushed[path] = content

    def file(self, path: str) -> Path:
        return self.folder / path.removeprefix("/")

    def plugin_socket(self, plugin: Path) -> Path | None:
        return self.folder / "model.ctl" if plugin == UarchModel.emulator_plugin else None

    @contextlib.contextmanager
    def guests_held(self):
        self.ran.append("hold")
        yield
        self.ran.append("let go")


class Plugin(Control):
    """In the place of a connection: keeps the commands, and answers as the plug-in does."""

    def __init__(self, path: Path) -> None:
        self.path, self.commands, self.closed = path, [], False
        self.pending = 0
        self.dies_at: str | None = None
        self.refuses: str | None = None

    def ask(self, command: str) -> str:
        self.commands.append(command)
        if self.dies_at is not None and command.startswith(self.dies_at):
            self.dies_at = ""
            raise uarch_model_messages.plugin_gone("it closed the connection")
        if command == self.refuses:
            raise uarch_model_messages.plugin_refused(command, "no")
        if command.startswith("state ") and self.pending:
            self.pending -= 1
            return "pending\n"
        if command == "status":
            return json.dumps(CAPTURED["status"])
        if command == "window":
            spots = [["ffffffff81001010", 652, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]]
            cores = [
                {**core, "hot": {"dropped": 3, "stacks": [[0, "ffffffff81002005"]], "spots": spots}} for core in CAPTURED["window"]["cores"]
            ]
            return json.dumps({**CAPTURED["window"], "cores": cores}) + "\n"
        if command == "events":
            return "[]\n"
        return "ok\n"

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Make a collector that is set up; with the plug-in that it talks to, and without any waiting."""
    clock = SimpleNamespace(now=0.0)

    def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(uarch_model, "Control", Plugin)
    monkeypatch.setattr(uarch_model, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=lambda: clock.now))
    # What a program exports is test_symbols.py's.
    monkeypatch.setattr(symbols, "program", lambda path: symbols.Table(*PROGRAMS[path.name]))

    def make(host: Host | None = None, **options: object) -> tuple[UarchModel, Plugin]:
        collector = UarchModel(host or Host(tmp_path), **options)
        collector.setup()
        return collector, collector._control

    return make


# --- Before anything runs


def test_it_is_found_as_a_collector_that_drives_the_clock():
    assert plugins.find("vsprof.collectors", "COLLECTOR")["uarch_model"] is UarchModel
    assert issubclass(UarchModel, Clock)
    assert UarchModel.source == "model"
    assert UarchModel.options.keys() == {"cpu", "changes", "without", "quantum_us", "seed", "deepest_idle", "timeline_ms"}


def test_a_host_that_is_not_emulated_has_no_plug_in(tmp_path):
    host = Host(tmp_path)
    assert "leave out --clock emulated" in UarchModel(host).unavailable()
    host.clock = MODELLED
    assert UarchModel(host).unavailable() is None
    host.plugin_socket = lambda plugin: None
    assert "emulator" in UarchModel(host).unavailable()


def test_a_busy_host_is_not_asked_what_it_was_asked_while_quiet(tmp_path):
    host = Host(tmp_path)
    UarchModel.ask_ahead(host)
    assert uarch_model.KERNEL in host.ran
    host.ran.clear()
    uarch_model._of_kernel(host)
    assert uarch_model.KERNEL not in host.ran
    host.plugin_socket = lambda plugin: None
    host.answers.clear()
    UarchModel.ask_ahead(host)


def test_what_make_builds_is_what_the_lab_loads():
    makefile = (uarch_model.BUILD.parents[1] / "Makefile").read_text()
    assert UarchModel.emulator_plugin == uarch_model.BUILD / "uarch_model.so"
    assert "build/uarch_model/uarch_model.so" in makefile


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"cpu": "zen5"},
        {"without": ["prefetch", "model.branches"]},
        {"quantum_us": 5},
        {"deepest_idle": "C1"},
    ],
)
def test_sound_options(given):
    UarchModel.check_options(given)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"cpu": "zen9"}, "zen9"),
        ({"without": ["cache"]}, "cache"),
        ({"quantum_us": 0}, "quantum_us: 0"),
        ({"quantum_us": 200.0}, "0.1 to 100"),
        ({"seed": -1}, "seed: -1: give a whole number from 0 to 4294967295"),
        ({"seed": 2**32}, "4294967296"),
        ({"seed": "x"}, "'x'"),
        ({"quantum_us": "5 us"}, "5 us"),
        ({"quantum_us": True}, "True"),
        ({"deepest_idle": "C7"}, "C7"),
        ({"deepest_idle": 1}, "C0, C1"),
    ],
)
def test_options_that_will_not_do_are_named(given, word):
    with pytest.raises(errors.BadInput, match=word):
        UarchModel.check_options(given)


# --- The clock


def test_where_time_is_modelled_the_plug_in_is_told_how_it_passes(made, tmp_path):
    host = Host(tmp_path)
    host.clock = MODELLED
    _, plugin = made(host, quantum_us=2.5, deepest_idle="C1E", seed=7)
    assert plugin.commands[-1] == "clock 2500 2300000 2596153 1.0 2 7"
    assert host.pushed[uarch_model.MARK].startswith(b"\x7fELF")


def test_how_deep_cpus_sleep_is_the_cases_to_say_first(made, tmp_path):
    host = Host(tmp_path)
    host.clock, host.deepest_idle = MODELLED, "C0"
    collector, plugin = made(host, deepest_idle="C1E", seed=7)
    assert plugin.commands[-1].split()[-2:] == ["0", "7"]
    assert collector.deepest_idle == "C0"


def test_each_run_draws_a_seed_of_its_own(made):
    assert len({made()[0].seed for _ in range(20)}) > 1


def test_where_it_is_not_nobody_speaks_of_a_clock(made, tmp_path):
    host = Host(tmp_path)
    _, plugin = made(host)
    assert not any(command.startswith("clock") for command in plugin.commands)
    assert host.pushed == {}


def test_a_kernel_that_does_not_say_how_fast_its_counter_is_stops_the_run(made, tmp_path):
    host = Host(tmp_path)
    host.clock = MODELLED
    host.answers[uarch_model.COUNTER_SPEED] = ""
    with pytest.raises(errors.RunFailed, match="cycle counter"):
        made(host)


def test_modelled_time_begins_while_the_guests_stand_still_and_ends_whatever_happens(made):
    collector, plugin = made()
    plugin.commands.clear()
    collector.host.ran.clear()
    with contextlib.suppress(KeyError), collector.modelled_time():
        assert plugin.commands == ["state off", "state model"]
        assert collector.host.ran == ["hold", "let go"]
        raise KeyError
    assert plugin.commands[-1] == "state off"


def passing(plugin, rates: list[float], still: bool = False) -> list[int]:
    """Modelled time passes by 2.5 ms with each look at it, at a packet rate for each 5 ms. Returns the looks' times in ns."""
    seen = [0]
    packets = [0.0]

    def ask(command):
        step = min(seen[-1] // 5_000_000, len(rates) - 1)
        status = {"clock": {"now_ns": seen[-1]}, "packets": int(packets[0]), "vcpus": [{"asleep": False, "at_ns": seen[-1]}]}
        if not still:
            packets[0] += rates[step] * 0.0025
            seen.append(seen[-1] + 2_500_000)
        return json.dumps(status)

    plugin.ask = ask
    return seen


@pytest.mark.parametrize(
    ("rates", "ms"),
    [
        ([100_000.0], 15),  # the least, and a step like it
        ([1e5, 1e5, 4e5, 5e5, 6e5, 6e5], 35),  # it rose
        ([1e5 * 2**n for n in range(40)], 50),  # it never is steady: the most
        ([10.0], 10),  # nothing flows
    ],
)
def test_a_warm_up_lasts_until_the_rate_is_steady(made, rates, ms):
    collector, plugin = made()
    seen = passing(plugin, rates)
    collector.warm_up(0.01, 0.05)
    assert seen[-1] / 1e6 == pytest.approx(ms, abs=5)


@pytest.mark.parametrize(
    ("rates", "ms"),
    [
        ([0.0] * 8 + [1e5] * 3 + [0.0], 60),  # they come after 40 ms, and for 15
        ([0.0], 505),  # they never come
        ([800.0] * 8 + [1e5, 0.0], 50),  # at once: a few more come, of others
    ],
)
def test_a_burst_is_waited_for_until_it_is_through(made, rates, ms):
    collector, plugin = made()
    seen = passing(plugin, rates)
    collector.await_packets(100_000)
    assert seen[-1] / 1e6 == pytest.approx(ms, abs=10)
    assert collector.now() == pytest.approx(seen[-2] / 1e9)


@pytest.mark.parametrize(
    ("looks", "goes_on"),
    [
        ([(0.1, 5), (0.2, 6), (0.3, 7)], [True, True, True]),  # slowly, but time passes
        ([(0.4, 5), (0.6, 6)], [True, False]),  # all the time that it may take has passed
        ([(0.1, 5), (0.1, 5)], [True, False]),  # nothing runs
        ([(0.1, 5), (0.1, 10**9), (0.1, 2 * 10**9), (0.2, 3 * 10**9)], [True] * 4),  # probes work, and end
        ([(0.1, 5), (0.1, 15 * 10**9), (0.1, 30 * 10**9)], [True, True, False]),  # they never end
    ],
)
def test_a_window_goes_on_as_long_as_time_passes_or_probes_work(made, looks, goes_on):
    collector, plugin = made()
    answers = iter([(0.0, 0), *looks])

    def ask(command):
        now, done = next(answers)
        return json.dumps({"clock": {"now_ns": now * 1e9}, "vcpus": [{"instructions": done}, {"instructions": 0}]})

    plugin.ask = ask
    patience = collector.patience(0.5)
    assert [patience() for _ in looks] == goes_on


def test_few_packets_a_second_are_waited_for_longer(made):
    for rate, ms in ((100_000, 5), (None, 5), (200, 50)):
        collector, plugin = made()
        seen = passing(plugin, [0.0])
        collector.await_quiet(rate)
        assert seen[-1] / 1e6 == pytest.approx(ms, abs=5)


def test_a_clock_that_stands_still_is_told_with_where_each_cpu_is(made):
    collector, plugin = made()
    passing(plugin, [1.0], still=True)
    with pytest.raises(errors.RunFailed, match="modelled time has not moved for 60 s: CPU 0 runs at 0 ns"):
        collector.warm_up(0.01, 0.05)


def test_the_manifest_says_whose_clock_it_is_and_how_well_it_was_kept(made):
    collector, plugin = made()
    clock = {
        "modelled_ns": 2_000_000,
        "wall_ns": 200_000_000,
        "idle_ns": 0,
        "most_ahead_ns": 12_000,
        "far_ahead": 1,
        "reports": 4,
        "vain": 2,
    }
    plugin.ask = lambda command: json.dumps({"clock": clock})
    assert collector.clock_facts() == {
        "cpu": profiles.DEFAULT, "cpu_name": collector.profile.name, "frequency_hz": 2_300_000_000, "quantum_s": 1e-6,
        "seed": collector.seed, "deepest_idle": "C6",
        "modelled_s": 0.002, "wall_s": 0.2, "all_idle_s": 0.0, "most_apart_s": 1.2e-5, "far_apart_share": 0.25,
        "wakes_in_vain": 2,
    }  # fmt: skip


# --- Once a run


def test_the_plug_in_is_told_of_the_processor_the_kernel_and_the_hooks(made, tmp_path):
    _, plugin = made()
    assert plugin.path == tmp_path / "model.ctl"
    assert plugin.commands == [
        f"profile {tmp_path / 'model.profile'}",
        "kernel ffffffff81001000 000000000002f000 2456 2992 108",
        "hook packets ffffffff81a00000 112",
        "hook segments ffffffff81b00000 112",
        "timeline 1000000 6000000 24",
        "watch wake wake ffffffff81002000 ffffffff81002001",
        f"hook polls {0x7F0000001000 + 0x500:x}",
        f"returns found {0x7F0000001000 + 0x500:x} {0x7F0000003000:x}",
    ]
    assert (tmp_path / "model.profile").read_text() == profiles.load(profiles.DEFAULT).flat()


def test_the_profile_is_the_one_asked_for(made, tmp_path):
    collector, _ = made(cpu="zen5", without=["model.branches"])
    flat = (tmp_path / "model.profile").read_text()
    assert flat == profiles.load("zen5").without("model.branches").flat()
    assert "model.branches 0\n" in flat
    facts = collector.facts()["profile"]
    assert facts["id"] == "zen5"
    assert facts["overridden"] == ["model.branches"]
    json.dumps(facts)


def test_the_plug_in_is_told_of_several_nodes(made, tmp_path):
    host = Host(tmp_path)
    host.answers[uarch_model.NODES] = "0 1 0-1\n1 1048576 2,3\n"
    _, plugin = made(host)
    assert [command for command in plugin.commands if command.startswith("node ")] == ["node 0 3", "node 100000000 c"]


@pytest.mark.parametrize(("line", "current"), [("current_task 0000000000001234", "0000000000001234"), ("", "0")])
def test_where_the_current_task_is_kept_differs_between_kernels(made, tmp_path, line, current):
    kernel = KERNEL.replace("pcpu_hot 000000000002f000", line).replace("\n\n", "\n")
    _, plugin = made(Host(tmp_path, kernel))
    assert f"kernel ffffffff81001000 {current} 2456 2992 108" in plugin.commands


def test_what_a_compiler_cut_off_a_function_is_not_the_function(made, tmp_path):
    _, plugin = made(Host(tmp_path, KERNEL.replace("__switch_to", "tcp_v4_rcv.cold ffffffff82fe0000\n__switch_to")))
    assert "hook segments ffffffff81b00000 112" in plugin.commands


def test_a_host_without_poll_mode_threads_has_no_hook_for_polls(made, tmp_path):
    _, plugin = made(Host(tmp_path, listed="---\n"))
    assert [command.split()[1] for command in plugin.commands if command.startswith("hook")] == ["packets", "segments"]


def test_the_frames_of_vhost_switchs_own_rings_are_what_its_sending_returns(made, tmp_path):
    _, plugin = made(Host(tmp_path, listed=SWITCH))
    assert plugin.commands[-4:] == [
        "hook polls 560000001600",
        "returns found 560000001600 560000001700",
        "hook bursts 560000001500",
        "returns frames 560000001500 560000001600",
    ]


def test_the_names_of_those_functions_are_in_its_source():
    source = (Path(uarch_model.__file__).parents[2] / "dataplane" / "own_rings.c").read_text()
    for function in uarch_model.POLLS["vhost-switch"]:
        # Not static, or the compiler may leave no function of that name; 16 bits are what the plug-in sums.
        assert f"\nuint16_t {function}(" in source


def test_the_connection_is_closed_in_the_end(made):
    collector, plugin = made()
    collector.teardown()
    assert plugin.closed
    collector.teardown()


def test_what_was_never_set_up_can_be_torn_down(tmp_path):
    UarchModel(Host(tmp_path)).teardown()


# --- Windows


def test_what_a_window_records(made):
    collector, plugin = made()
    with collector.modelled_time():
        del plugin.commands[:], collector.host.ran[:]
        recorded = json.loads(collector.read_window())
        assert plugin.commands == ["window", "status", "events"]
        assert not collector.host.ran, "each command costs seconds while the host is modelled"
    assert recorded["cpu"] == profiles.DEFAULT
    assert recorded["status"]["vcpus"]
    assert recorded["functions"][0] == {
        "core": 0, "thread": 652, "mode": "host_kernel", "object": "kernel", "function": "__switch_to", "samples": 1,
    }  # fmt: skip
    assert all(core["hot"] == {"dropped": 3} for core in recorded["window"]["cores"])


def test_what_is_recorded_becomes_numbers(made):
    collector, _ = made()
    found = list(UarchModel.numbers(Recorded("", collector.read_window(), math.nan, Placement())))
    assert {"instructions", "cycles", "model_packets"} <= {number.name for number in found}


@pytest.mark.parametrize("step", ["state model", "window", "status"])
def test_a_plug_in_that_dies_is_one_clear_error(made, step):
    collector, plugin = made()
    plugin.dies_at = step
    with pytest.raises(errors.RunFailed) as failed, collector.modelled_time():
        collector.read_window()
    assert str(failed.value) == "the processor model (a plug-in of the lab's emulator) does not answer: it closed the connection"


@pytest.mark.parametrize("step", ["profile", "kernel", "hook"])
def test_a_plug_in_that_dies_before_the_traffic_is_too(made, tmp_path, monkeypatch, step):
    class Dies(Plugin):
        def __init__(self, path):
            super().__init__(path)
            self.dies_at = step

    monkeypatch.setattr(uarch_model, "Control", Dies)
    with pytest.raises(errors.RunFailed, match="does not answer"):
        made()


def test_what_the_plug_in_refuses_is_told(made):
    collector, plugin = made()
    plugin.refuses = "state model"
    with pytest.raises(errors.RunFailed, match="refused 'state model'"), collector.modelled_time():
        pass


def test_a_processor_that_does_not_come_to_rest_is_woken(made):
    collector, plugin = made()
    plugin.pending = 2
    del collector.host.ran[:]
    with collector.modelled_time():
        assert collector.host.ran == ["hold", "true", "true", "let go"]


def test_modelled_time_that_does_not_end_fails_the_run_at_once(made):
    collector, plugin = made()
    with pytest.raises(errors.RunFailed, match="refused 'state off'"), collector.modelled_time():
        plugin.refuses = "state off"


def test_that_it_does_not_end_hides_nothing(made):
    def gone(command: str) -> None:
        raise testbeds_messages.emulator_failed("killed")

    def window() -> None:
        with collector.modelled_time():
            plugin.pending = 1
            collector.host.run = gone
            raise KeyError("what was wrong")

    collector, plugin = made()
    with pytest.raises(KeyError, match="what was wrong"):
        window()
    assert plugin.commands[-1] == "state off"


def test_asking_without_a_connection_is_told(tmp_path):
    with pytest.raises(errors.RunFailed, match="there is no connection"):
        UarchModel(Host(tmp_path)).read_window()


def test_a_connection_that_is_refused_is_told(tmp_path):
    with pytest.raises(errors.RunFailed, match="does not answer"):
        UarchModel(Host(tmp_path)).setup()
