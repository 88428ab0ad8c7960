# SPDX-License-Identifier: GPL-2.0-or-later
"""What the processor of the emulated host would have counted: a model inside the emulator (QEMU's TCG) that sees every
instruction and every memory access, of the host, its kernel and its guests.

It slows the emulator down three to four times, and so has windows of its own; outside of them the emulator runs as
without it. docs/collectors/uarch_model.md says what is modelled and what is not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from collectors.base import Collector, Recorded
from collectors.uarch_model import numbers, profiles, symbols
from collectors.uarch_model.control import Control
from terms.schema import Number
from testbeds.base import Testbed

BUILD = Path(__file__).resolve().parents[2] / "build" / "uarch_model"
MARK = "/root/vsprof-mark"
WARM_INSTRUCTIONS = 150_000_000
"""How many instructions a busy processor runs before its caches are taken as warm: enough to fill an LLC of 35 MB."""
WARM_SECONDS = (1.0, 4.0)
"""The least and the most that is waited for them: an idle host runs few."""
WARMTH_POLL_SECONDS = 0.1
# What the plug-in must know of the kernel: where tasks are switched, and where a task keeps its thread's id and name.
KERNEL = r"""
awk '$3 == "__switch_to" { print $1; exit }' /proc/kallsyms
bpftrace -e 'BEGIN { printf("%d %d\n", offsetof(struct task_struct, pid), offsetof(struct task_struct, comm)); exit(); }' | grep '^[0-9]'
"""


class UarchModel(Collector):
    source = "model"
    own_windows = True
    emulator_plugin: ClassVar[Path | None] = BUILD / "uarch_model.so"
    options: ClassVar[dict[str, str]] = {
        "cpu": "the modelled processor: " + ", ".join(profiles.names()) + ", or the path of a profile",
        "without": "parts of the model to switch off: " + ", ".join(profiles.SWITCHES),
    }

    def __init__(self, host: Testbed, cpu: str = profiles.DEFAULT, without: Iterable[str] = ()) -> None:
        super().__init__(host)
        self.profile = profile(cpu, without)
        self._control: Control | None = None

    @classmethod
    def check_options(cls, given: Mapping[str, Any]) -> None:
        profile(**given)

    def unavailable(self) -> str | None:
        assert self.emulator_plugin is not None
        if self.host.plugin_socket(self.emulator_plugin) is None:
            return "the model is a plug-in of an emulator, and this host is none"
        return None

    def setup(self) -> None:
        assert self.emulator_plugin is not None
        path = self.host.plugin_socket(self.emulator_plugin)
        assert path is not None
        self._control = Control(path)
        flat = path.with_suffix(".profile")
        flat.write_text(self.profile.flat())
        self._control.ask(f"profile {flat}")
        self._control.ask("kernel " + " ".join(self.host.run(KERNEL).stdout.split()))
        self.host.push((BUILD / "mark").read_bytes(), MARK)
        self.host.run(f"chmod 755 {MARK}")
        self._symbols = symbols.Symbols(self.host)

    def facts(self) -> dict[str, Any]:
        return {"profile": self.profile.to_json()}

    def engage(self) -> None:
        self._ask("state model")
        self._warm_up()

    def begin(self) -> str:
        return f"{MARK} begin"

    def end(self) -> str:
        return f"{MARK} end"

    def finish(self) -> str:
        return symbols.PROCESSES

    def fetch(self) -> str:
        window = json.loads(self._ask("window"))
        status = json.loads(self._ask("status"))
        return "\n" + numbers.SEPARATOR + json.dumps({"window": window, "status": status}) + "\n"

    def digest(self, printed: str) -> str:
        """Addresses become names here, while the host's programs are at hand; they are far more than the names."""
        processes, _, recorded = printed.partition(numbers.SEPARATOR)
        data = json.loads(recorded)
        data["functions"] = self._symbols.functions(data["window"], processes)
        for core in data["window"]["cores"]:
            del core["hot"]["spots"]
        return json.dumps(data)

    def disengage(self) -> None:
        # The emulator may be gone, and that is then what must be told.
        if self._control is not None:
            try:
                self._ask("state off")
            except Exception:
                self.teardown()

    def teardown(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        return numbers.of(recorded)

    def _ask(self, command: str) -> str:
        assert self._control is not None
        return self._control.ask(command)

    def _warm_up(self) -> None:
        """Until each processor that runs at all ran enough, within bounds."""
        least, most = WARM_SECONDS
        began = time.monotonic()
        while (passed := time.monotonic() - began) < most:
            ran = [vcpu["instructions"] for vcpu in json.loads(self._ask("status"))["vcpus"]]
            if passed >= least and min(ran) >= WARM_INSTRUCTIONS:
                return
            time.sleep(WARMTH_POLL_SECONDS)


def profile(cpu: str = profiles.DEFAULT, without: Iterable[str] = ()) -> profiles.Profile:
    """The profile that options ask for. Raises ``BadInput``."""
    return profiles.load(cpu).without(*without)


COLLECTOR = UarchModel
