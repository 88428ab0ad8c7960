# SPDX-License-Identifier: GPL-2.0-or-later
"""What the processor of the emulated host would have counted: a model inside the emulator (QEMU's TCG) that sees every
instruction and every memory access, of the host, its kernel and its guests.

It drives the emulated host's clock by what its processors take: all collectors count in the same windows, and rates are the modelled
processor's. Outside of them the emulator runs as without it. docs/collectors/uarch_model.md says what is modelled and what is not.
"""

import contextlib
import json
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from vsprof.collectors.base import Clock, Glance, Load, Marks, Recorded
from vsprof.collectors.uarch_model import functions, messages, numbers, processes, profiles, stacks, symbols, timeline, wakeups
from vsprof.collectors.uarch_model.control import REST_SECONDS, Control
from vsprof.collectors.uarch_model.spots import Spots
from vsprof.terms import errors, places
from vsprof.terms import messages as terms_messages
from vsprof.terms.schema import FunctionCount, Number, Span, StackCount
from vsprof.terms.vocabulary import NumberWords
from vsprof.testbeds.base import MODELLED, Testbed
from vsprof.testbeds.threads import cpu_list

BUILD = places.BUILD / "uarch_model"
CPU = "cpu"
"""The option, and how the names of what cases differ in begin: `cpu.…` is one value of the processor."""
PROFILE = f"{CPU}.profile"
"""The factor that is the option: a column of tables is called cpu already."""
MARK = "/var/lib/vsprof/mark"
"""Where the program that marks a window's ends lies on the testbed. Nothing may be executed from /run."""
QUANTUM_US = 1.0
"""How far the lab's CPUs may be apart in modelled time. Smaller is closer to a real machine, and slower. At this one rates and misses
differ by less than 5 % from those of half of it (`make bench-time`)."""
SMALLEST_QUANTUM_US, LARGEST_QUANTUM_US = 0.1, 100.0
"""Below, CPUs do little but wait for each other; above, one CPU's packets wait longer for the other than switches take for them."""
SEEDS = 2**32
"""How many there are. The same seed gives the same leads but not the same run, because this machine schedules the emulator's threads."""
TIMELINE_MS, MOST_TIMELINE_MS = 6.0, 1000.0
"""Of each window, in which what happens is written down: more than a period of the paced pings. It takes no modelled time."""
IDLE_PACE = 1.0
"""How fast time passes where all of the lab's CPUs are idle, in real time: those who talk to it from outside live there."""
# What the emulated kernel takes the cycle counter's speed to be: by this it turns cycles into time.
COUNTER_SPEED = "dmesg | grep -E 'tsc: (Detected|Refined TSC clocksource calibration:?) [0-9.]+ MHz'"
_MHZ = re.compile(r"([0-9.]+) MHz")
POLL_SECONDS = 0.05
STEP_S, STEADY = 0.005, 0.05
"""Of modelled time: between two looks at the rate of packets; and by what part of it two rates differ at most that are called steady."""
FEWEST_PACKETS = 50
"""In such a step: below it there is no flood whose rate could be steady, and nothing to wait for."""
QUIET_S, FRAMES_MISSED, STRAYS = 0.003, 10, 2
"""After the last packet of a burst: as long, or as long as so many would take at its rate; but no more than these, of others, come then."""
LATEST_S = 0.5
"""Within which the first packets of a burst come, or none: pktgen begins within a tenth of a second."""
PROBES_INSTRUCTIONS = 20_000_000_000
"""The most that a window's probes take while time stands still for them: a hundred times what was seen."""
STILL_SECONDS = 60
"""Of this machine, after which a clock that has not moved will not move any more: CPUs wait for each other for milliseconds."""
# What the plug-in must know of the kernel: where tasks are switched; where a task keeps its thread's id, name, priority and state; where
# packets are received, by protocol, and where a packet keeps its length.
KERNEL = r"""
awk '$3 ~ /^(__switch_to|pcpu_hot|current_task|ip_rcv_core|tcp_v4_rcv|icmp_rcv)(\.|$)/ { print $3, $1 }' /proc/kallsyms
bpftrace -e 'BEGIN { printf("offsets %d %d %d %d %d\n", offsetof(struct task_struct, pid), offsetof(struct task_struct, comm),
    offsetof(struct task_struct, static_prio), offsetof(struct task_struct, __state),
    offsetof(struct sk_buff, len)); exit(); }' | grep offsets
"""
# Each NUMA node: its number, the first frame of its memory, its processors.
NODES = r"""
awk '/^Node/ { node = $2 + 0 } $1 == "spanned" { spanned = $2 }
    $1 == "start_pfn:" && spanned && (!(node in first) || $2 < first[node]) { first[node] = $2 }
    END { for (node in first) print node, first[node] }' /proc/zoneinfo |
sort -n | while read -r node first; do echo "$node $first $(cat /sys/devices/system/node/node$node/cpulist)"; done
"""
PAGE_BYTES = 4096
RECEIVERS = {"ip_rcv_core": "packets", "tcp_v4_rcv": "segments", "icmp_rcv": "messages"}
"""The kernel's functions that see each packet, and the names of their hooks."""
POLLS = {"librte_vhost.so": ("rte_vhost_dequeue_burst", "rte_vhost_enqueue_burst"), "vhost-switch": ("own_receive", "own_send")}
"""The functions by which a poll-mode thread asks an endpoint's queue for frames, and gives it some, by their file's name: DPDK's, and
those of vhost-switch's own rings (dataplane/own_rings.c). Both return how many: the first there were, the second there was room for."""


class UarchModel(Clock):
    words = "the modelled processor"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "cycles": NumberWords("estimated cycles", better="less"),
        "cycles_*": NumberWords("estimated cycles that went to this cause", better="less"),
        "instructions": NumberWords("instructions", better="less"),
        "cpi*": NumberWords("estimated cycles per instruction", better="less"),
        "*_misses": NumberWords("misses", better="less"),
        "*_walks": NumberWords("page walks", better="less"),
        "*_miss_rate": NumberWords("misses per data access", better="less"),
        "empty_polls*": NumberWords("polls that found nothing, and what they took"),
        "loads": NumberWords("data accesses that read", better="less"),
        "stores": NumberWords("data accesses that write", better="less"),
        "l1i_fetches": NumberWords("lines asked of L1I"),
        "l2_accesses": NumberWords("demand accesses of L2", better="less"),
        "llc_hits_*": NumberWords("L2 misses whose line another core of the node held, clean (shared) or modified", better="less"),
        "l1d_upgrades": NumberWords("stores to a line that other cores had to give up", better="less"),
        "prefetches": NumberWords("lines brought in by prefetchers and prefetch instructions"),
        "memory_*": NumberWords("fills from memory, of the own NUMA node (local) or another (remote)", better="less"),
        "remote_cache": NumberWords("fills from a cache of another NUMA node", better="less"),
        "walk_references": NumberWords("page-table entries read by the walker", better="less"),
        "walk_cycles": NumberWords("estimated cycles that the page walker was at work", better="less"),
        "branches": NumberWords("branches, calls, returns and jumps", better="less"),
        "flow_cycles": NumberWords("estimated cycles of the instructions if nothing missed", better="less"),
        "fused": NumberWords("comparisons that flow as one instruction with the branch behind them"),
        "atomics": NumberWords("instructions with a lock prefix", better="less"),
        "pauses": NumberWords("PAUSE instructions"),
        "kernel_entries": NumberWords("entries from user to kernel mode", better="less"),
        "interrupts": NumberWords("interrupts and faults", better="less"),
        "ipis": NumberWords("interrupts from one CPU to another", better="less"),
        "io_accesses": NumberWords("accesses to devices' registers", better="less"),
        "vm_entries": NumberWords("entries into a guest (VMRUN)", better="less"),
        "task_switches": NumberWords("switches from one thread to another", better="less"),
        "address_space_switches": NumberWords("loads of CR3", better="less"),
        "repeat_cycles": NumberWords("estimated cycles of repeated string instructions, beyond one instruction's", better="less"),
        "chain_cycles": NumberWords("estimated cycles of chains of dependent instructions, beyond the base", better="less"),
        "window_seconds": NumberWords("length of the model's window"),
        "model_packets": NumberWords("IP packets that any kernel received"),
        "model_frames": NumberWords("frames that poll-mode threads gave to an endpoint"),
        "model_tcp_bytes": NumberWords("payload of the TCP segments that any kernel received"),
        "model_icmp_messages": NumberWords("ICMP messages that any kernel received"),
        "*_wake_ups_followed": NumberWords("wake-ups of threads that move frames, or are a machine's processor, that were seen as a whole"),
        "*_wake_up_kick": NumberWords("from a wake-up of such a thread until its CPU is sent an interrupt, mean", better="less"),
        "*_wake_up_interrupt": NumberWords("from then until its CPU, out of its idle state, serves it, mean", better="less"),
        "*_wake_up_schedule": NumberWords("from then until the thread has the CPU, mean", better="less"),
        "*_wake_up_run": NumberWords("from then until it has frames, or the machine runs, mean", better="less"),
        "*_wake_up_inside": NumberWords("from then until the first thread that the machine wakes has its processor, mean", better="less"),
        "model_poll*": NumberWords("polls of poll-mode threads, and times that they gave frames to an endpoint"),
    }
    source = "model"
    emulator_plugin: ClassVar[Path | None] = BUILD / "uarch_model.so"
    options: ClassVar[dict[str, str]] = {
        "cpu": "the modelled processor: " + ", ".join(profiles.names()) + ", or the path of a profile",
        "changes": "values that differ from the profile's: {l2.latency: 20, llc.sets: x2}; x2: twice the profile's",
        "without": "parts of the model to switch off: " + ", ".join(profiles.SWITCHES),
        "quantum_us": f"how far the CPUs may be apart in modelled time, in microseconds: {SMALLEST_QUANTUM_US:g} to {LARGEST_QUANTUM_US:g}",
        "seed": "of the random leads that CPUs have in modelled time, 0 to 2**32 - 1; drawn where not given",
        "timeline_ms": "milliseconds of modelled time of each window in which it is written down what happens when; 0: none",
        "deepest_idle": "the deepest idle state that a CPU takes in modelled time: " + ", ".join(profiles.IDLE_STATES),
    }

    def __init__(
        self,
        host: Testbed,
        cpu: str = profiles.DEFAULT,
        without: Any = None,
        quantum_us: float = QUANTUM_US,
        deepest_idle: str = profiles.IDLE_STATES[-1],
        seed: int | None = None,
        timeline_ms: float = TIMELINE_MS,
        changes: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(host)
        self.timeline_ms = timeline_ms
        self.seed = secrets.randbelow(SEEDS) if seed is None else seed
        self.quantum_us = quantum_us
        self.deepest_idle = deepest_idle
        self.profile = profile(cpu, without, changes)
        self._control: Control | None = None

    @classmethod
    def build(cls) -> None:
        # make compiles nothing where what it built is newer than its sources.
        command = ["make", "--silent", "--directory", str(Path(__file__).parent), f"BUILD={BUILD}"]
        try:
            made = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise messages.not_built(str(error)) from None
        if made.returncode != 0:
            raise messages.not_built(made.stderr)

    @classmethod
    def check_options(cls, given: Mapping[str, Any]) -> None:
        _chosen(given)
        quantum = given.get("quantum_us", QUANTUM_US)
        if isinstance(quantum, bool) or not isinstance(quantum, int | float) or not SMALLEST_QUANTUM_US <= quantum <= LARGEST_QUANTUM_US:
            raise messages.bad_quantum(quantum, SMALLEST_QUANTUM_US, LARGEST_QUANTUM_US)
        seed = given.get("seed")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < SEEDS):
            raise messages.bad_seed(seed, SEEDS - 1)
        lasts = given.get("timeline_ms", TIMELINE_MS)
        if isinstance(lasts, bool) or not isinstance(lasts, int | float) or not 0 <= lasts <= MOST_TIMELINE_MS:
            raise messages.bad_timeline(lasts, MOST_TIMELINE_MS)
        if (deepest := given.get("deepest_idle", profiles.IDLE_STATES[-1])) not in profiles.IDLE_STATES:
            raise terms_messages.unknown_value("deepest_idle", deepest, profiles.IDLE_STATES)

    @classmethod
    def factors(cls) -> tuple[str, ...]:
        return (PROFILE, *(f"{CPU}.{key}" for key in profiles.CHANGEABLE))

    @classmethod
    def settled(cls, given: Mapping[str, str | None], options: Mapping[str, Any]) -> dict[str, str]:
        cpu = given.get(PROFILE) or str(options.get(CPU, profiles.DEFAULT))
        changes = {_key(name): value for name, value in given.items() if name != PROFILE and value is not None}
        changed = _chosen({**options, CPU: cpu}).changed(changes)
        return {name: cpu if name == PROFILE else changed.value(_key(name)) for name in given}

    @classmethod
    def options_of(cls, case: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, Any]:
        changes = {_key(name): value for name, value in case.items() if name in cls.factors() and name != PROFILE}
        cpu = {CPU: case[PROFILE]} if PROFILE in case else {}
        return {**options, **cpu, **({"changes": {**(options.get("changes") or {}), **changes}} if changes else {})}

    @classmethod
    def ask_ahead(cls, host: Testbed) -> None:
        assert cls.emulator_plugin is not None
        if host.plugin_socket(cls.emulator_plugin) is not None:
            _of_kernel(host)

    def unavailable(self) -> str | None:
        assert self.emulator_plugin is not None
        if self.host.plugin_socket(self.emulator_plugin) is None:
            return "the model is a plug-in of an emulator, and this host is none"
        return None if self.host.clock == MODELLED else messages.counts_in_modelled_time()

    def setup(self) -> None:
        assert self.emulator_plugin is not None
        path = self.host.plugin_socket(self.emulator_plugin)
        assert path is not None
        self._control = Control(path)
        flat = path.with_suffix(".profile")
        flat.write_text(self.profile.flat())
        self._control.ask(f"profile {flat}")
        self._symbols = symbols.Symbols(self.host)
        # Once, while the host is fast: a command costs seconds when it is modelled, and the processes stay the same.
        self._processes = processes.Processes(self.host.run(processes.LIST).stdout)
        self._tell_of_kernel()
        self._tell_of_nodes()
        self._tell_of_polling()
        if self.host.clock == MODELLED:
            self._tell_of_clock()

    def _tell_of_clock(self) -> None:
        found = _MHZ.findall(self.host.run(COUNTER_SPEED, check=False).stdout)
        if not found:
            raise messages.plugin_refused("clock", "the lab's kernel does not say how fast its cycle counter is")
        self.deepest_idle = self.host.deepest_idle or self.deepest_idle
        # The last word is the exact one.
        self._counter_khz = round(float(found[-1]) * 1000)
        self.set_quantum(self.quantum_us)
        self.host.push((BUILD / "mark").read_bytes(), MARK)
        self.host.run(f"chmod +x {MARK}")

    def set_quantum(self, quantum_us: float) -> None:
        """Keep CPUs together within ``quantum_us`` from the next begin of modelled time on."""
        self.quantum_us = quantum_us
        deepest = profiles.IDLE_STATES.index(self.deepest_idle)
        frequency_khz = self.profile.frequency_hz // 1000
        self._ask(f"clock {round(quantum_us * 1000)} {frequency_khz} {self._counter_khz} {IDLE_PACE} {deepest} {self.seed}")

    def _tell_of_kernel(self) -> None:
        said = dict(line.split(maxsplit=1) for line in _of_kernel(self.host).splitlines())
        thread_id, name, priority, state, length = said.pop("offsets").split()
        places = {function.partition(".")[0]: address for function, address in said.items() if timeline.COLD not in function}
        # Where each processor keeps its current task: first in its hot area from Linux 6.2 to 6.14, else by itself.
        current = places.get("pcpu_hot") or places.get("current_task") or "0"
        self._ask(f"kernel {places['__switch_to']} {current} {thread_id} {name} {priority}")
        for function, hook in RECEIVERS.items():
            if function in places:
                self._ask(f"hook {hook} {places[function]} {length}")

        if self.timeline_ms:
            self._ask(f"timeline {timeline.AFTER_NS} {round(self.timeline_ms * 1e6)} {state}")
            for command in timeline.watched(self._symbols.kernel):
                self._ask(command)

    def _tell_of_nodes(self) -> None:
        """Where memory and processors are, if they are in several places. The frames below a node's first one are nobody's."""
        nodes = [line.split() for line in self.host.run(NODES).stdout.splitlines()]
        for node, first, cpus in nodes if len(nodes) > 1 else ():
            begin = int(first) * PAGE_BYTES if int(node) > 0 else 0
            self._ask(f"node {begin:x} {sum(1 << cpu for cpu in cpu_list(cpus)):x}")

    def _tell_of_polling(self) -> None:
        """A poll-mode thread's functions lie where its process was loaded."""
        for file, (asks, gives) in POLLS.items():
            for begin, end in self._symbols.places(asks, file, self._processes.maps):
                self._ask(f"hook polls {begin:x}")
                self._ask(f"returns found {begin:x} {end:x}")
            for begin, end in self._symbols.places(gives, file, self._processes.maps):
                self._ask(f"hook bursts {begin:x}")
                self._ask(f"returns frames {begin:x} {end:x}")

    def facts(self) -> dict[str, Any]:
        return {"profile": self.profile.to_json()}

    def read_window(self) -> str:
        window, status = (json.loads(self._ask(what)) for what in ("window", "status"))
        # Addresses become names here, while the host's programs are at hand; they are far more than the names.
        hot = [Spots.of(core["hot"]) for core in window["cores"]]
        named = self._symbols.functions(hot, self._processes)
        called = stacks.named(self._symbols, hot, self._processes)
        for core in window["cores"]:
            for addresses in ("spots", "stacks"):
                core["hot"].pop(addresses, None)
        happened = json.loads(self._ask("events"))
        found = {"window": window, "status": status, "functions": named, "stacks": called, "cpu": self.profile.id, "timeline": happened}
        return json.dumps(found) + "\n"

    @contextlib.contextmanager
    def modelled_time(self) -> Iterator[None]:
        # See safe_to_change in plugin_changes.c: a guest must not be in the middle of an interrupt when the model takes over.
        try:
            with self.host.guests_held():
                self._change("model")
            yield
        except BaseException:
            # The emulator may be gone, and that is then what must be told.
            with contextlib.suppress(errors.VsprofError):
                self._change("off")
            raise
        # Where it does not end, nothing else would: each command would take its whole time-out.
        self._change("off")

    def warm_up(self, least: float, most: float) -> None:
        began, _ = before = self._progress()
        rate = None
        while True:
            now, packets = self._wait_for_clock(before[0] + max(STEP_S, least if rate is None else 0))
            rate, last = (packets - before[1]) / (now - before[0]), rate
            few = rate * STEP_S < FEWEST_PACKETS
            if few or now - began >= most or (last is not None and abs(rate - last) <= STEADY * last):
                return
            before = now, packets

    def now(self) -> float:
        return self._progress()[0]

    def glance(self) -> Glance:
        status = json.loads(self._ask("status"))
        cycles, instructions = (tuple(cpu[name] for cpu in status["vcpus"]) for name in ("cycles", "modelled_instructions"))
        return Glance(status["clock"]["now_ns"] / 1e9, status["packets"], cycles, instructions, self.profile.frequency_hz)

    def patience(self, seconds: float) -> Callable[[], bool]:
        return _Patience(lambda: json.loads(self._ask("status")), seconds)

    def await_packets(self, rate_pps: int | None) -> None:
        began, before = now, packets = self._progress()
        while packets - before <= STRAYS and now - began < LATEST_S:
            now, packets = self._wait_for_clock(now + STEP_S)
        self.await_quiet(rate_pps)

    def await_quiet(self, rate_pps: int | None) -> None:
        step = max(QUIET_S, FRAMES_MISSED / rate_pps if rate_pps else 0)
        now, packets = self._progress()
        while (after := self._wait_for_clock(now + step))[1] - packets > STRAYS:
            now, packets = after

    def _progress(self) -> tuple[float, int]:
        """Modelled seconds, and packets that kernels received, so far."""
        status = json.loads(self._ask("status"))
        return status["clock"]["now_ns"] / 1e9, status["packets"]

    def _wait_for_clock(self, until: float) -> tuple[float, int]:
        """``_progress`` when the clock has come to ``until``, however slow it is: only one that stands still is given up."""
        patience = self.host.patience(STILL_SECONDS)
        now, packets = self._progress()
        while now < until:
            time.sleep(POLL_SECONDS)
            before, (now, packets) = now, self._progress()
            if now > before:
                patience = self.host.patience(STILL_SECONDS)
            elif patience.over():
                raise messages.clock_stands_still(STILL_SECONDS, self._where_cpus_are())
        return now, packets

    def _where_cpus_are(self) -> list[str]:
        cpus = enumerate(json.loads(self._ask("status"))["vcpus"])
        return [f"CPU {number} {'sleeps' if cpu['asleep'] else 'runs'} at {cpu['at_ns']} ns" for number, cpu in cpus]

    def marks(self) -> Marks:
        # By this niceness the plug-in tells the probes from all else (PROBES_PRIORITY in plugin.c).
        return Marks(ready="renice -n -19 $$ > /dev/null", probes=f"{MARK} probes", begin=f"{MARK} begin", end=f"{MARK} end")

    def clock_facts(self) -> dict[str, Any]:
        clock = json.loads(self._ask("status"))["clock"]
        return {
            "cpu": self.profile.id,
            "cpu_name": self.profile.name,
            "frequency_hz": self.profile.frequency_hz,
            "quantum_s": self.quantum_us / 1e6,
            "seed": self.seed,
            "deepest_idle": self.deepest_idle,
            "modelled_s": clock["modelled_ns"] / 1e9,
            "wall_s": clock["wall_ns"] / 1e9,
            "all_idle_s": clock["idle_ns"] / 1e9,
            "most_apart_s": clock["most_ahead_ns"] / 1e9,
            "far_apart_share": clock["far_ahead"] / clock["reports"] if clock["reports"] else None,
            "wakes_in_vain": clock["vain"],
        }

    def teardown(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        return [*numbers.of(recorded), *wakeups.of(timeline.of(recorded))]

    def loads(self, recorded: Recorded) -> Mapping[int, Load]:
        return numbers.loads(recorded, self.profile.frequency_hz)

    @classmethod
    def functions(cls, recorded: Recorded) -> Iterable[FunctionCount]:
        return functions.of(recorded)

    @classmethod
    def spans(cls, recorded: Recorded) -> Iterable[Span]:
        return timeline.of(recorded)

    @classmethod
    def stacks(cls, recorded: Recorded) -> Iterable[StackCount]:
        return stacks.of(recorded)

    def _change(self, state: str) -> None:
        if self._control is None:
            raise messages.plugin_gone("there is no connection")
        self._control.change(state, wake=lambda: self.host.run("true"), patience=self.host.patience(REST_SECONDS))

    def _ask(self, command: str) -> str:
        if self._control is None:
            raise messages.plugin_gone("there is no connection")
        return self._control.ask(command)


class _Patience:
    """See ``Clock.patience``. ``status``: what the plug-in says now."""

    def __init__(self, status: Callable[[], Mapping[str, Any]], seconds: float) -> None:
        self._status, self._stood = status, 0
        self._at, self._done = self._look()
        self._until = self._at + seconds

    def _look(self) -> tuple[float, int]:
        status = self._status()
        return status["clock"]["now_ns"] / 1e9, sum(cpu["instructions"] for cpu in status["vcpus"])

    def __call__(self) -> bool:
        before, done = self._at, self._done
        self._at, self._done = self._look()
        self._stood = self._stood + self._done - done if self._at == before else 0
        return self._at < self._until if self._at > before else done < self._done and self._stood < PROBES_INSTRUCTIONS


def profile(cpu: str = profiles.DEFAULT, without: Any = None, changes: Mapping[str, Any] | None = None) -> profiles.Profile:
    """The profile that options ask for; ``without`` is a list, one word, or nothing. Raises ``BadInput``."""
    parts = without if isinstance(without, (list, tuple)) else [] if without is None else [without]
    if changes is not None and not isinstance(changes, Mapping):
        raise messages.bad_changes(changes)
    return profiles.load(cpu).changed(changes or {}).without(*map(str, parts))


def _of_kernel(host: Testbed) -> str:
    return symbols.asked_once(host, KERNEL, symbols.BUILT_IN)


def _chosen(options: Mapping[str, Any]) -> profiles.Profile:
    return profile(options.get(CPU, profiles.DEFAULT), options.get("without"), options.get("changes"))


def _key(factor: str) -> str:
    """The profile's key that a factor `cpu.…` is of."""
    return factor.removeprefix(f"{CPU}.")


COLLECTOR = UarchModel
