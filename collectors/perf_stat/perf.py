# SPDX-License-Identifier: GPL-2.0-or-later
"""Asking perf on a testbed: what is there, and what came of a number of calls; one command each, for a round trip may be slow."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vsprof.collectors import messages as collectors_messages
from vsprof.collectors.events import probe, processor
from vsprof.collectors.events.probe import Count, Ran
from vsprof.collectors.events.processor import Processor
from vsprof.testbeds.base import Testbed

EACH_S = 10
"""How long one call of perf may take."""
LONGEST_S = 300
"""How long all calls of one question may take."""
KILLED = 124
"""timeout(1)'s exit status."""
NOT_FOUND = 127
_MARK = "--- vsprof "
STAT = f"perf stat -x '{probe.SEPARATOR}'"
_DEVICES = "/sys/bus/event_source/devices"
RDPMC = f"{_DEVICES}/cpu/rdpmc"
_LOOK = {
    "version": "perf --version",
    "cpuinfo": "sed '/^$/q' /proc/cpuinfo",
    "midr": f"cat {processor.MIDR}",
    "devices": f"ls {_DEVICES}",
    "level": f"cat {probe.PARANOID}",
    "watchdog": "cat /proc/sys/kernel/nmi_watchdog",
    "rdpmc": f"cat {RDPMC}",
    "machine": "uname -m",
    "kvm": "test -e /dev/kvm && echo yes",
    "core": f"{STAT} -a -e {probe.SURE},{','.join(probe.CORE)} true",
}


@dataclass(frozen=True)
class Seen:
    """A testbed's processor, PMU and perf."""

    perf: str
    """``perf version 6.1.187``."""
    processor: Processor
    pmu: str
    """The kernel's name of the PMU of the cores."""
    level: str
    """perf_event_paranoid."""
    watchdog: str
    """``1``: the NMI watchdog has a counter; nothing where the kernel does not say."""
    rdpmc: str
    """``0``: never allowed in user mode; ``1``: of a counter of one's own; ``2``: always."""
    machine: str
    """``x86_64``."""
    hypervisor: bool
    kvm: bool
    core: Ran
    """perf stat of the surest events there are."""

    def obstacle(self, hardware: int, folder: str) -> str | None:
        """Why perf can't count ``hardware`` events of the catalogue's ``folder`` per CPU here, or None."""
        if not self.perf.startswith("perf"):
            return collectors_messages.perf_missing()
        states = {count.event: count.state for count in readable(self.core)}
        if states.get(probe.SURE) != probe.COUNTED:
            return self._useless()
        if hardware and all(states.get(name, probe.NOT_SUPPORTED) == probe.NOT_SUPPORTED for name in probe.CORE):
            return collectors_messages.no_pmu(hardware, folder)
        return None

    def _useless(self) -> str:
        """Why perf can count nothing, not even what it always can."""
        if self.core.status is None:
            return collectors_messages.perf_hangs(EACH_S)
        found = probe.judge(self.core, EACH_S, self.level)
        if found.state == probe.REFUSED:
            return found.why
        words = _first_line(self.core.text)
        return collectors_messages.perf_too_old(self.perf, words) if self.core.status == 0 else collectors_messages.perf_silent(words)


def look(host: Testbed) -> Seen:
    """Ask the testbed all at once. Raises ``RunFailed`` when it does not answer."""
    ran = ask(host, _LOOK)
    said = {name: one.text.strip() if one.status == 0 else "" for name, one in ran.items()}
    return Seen(
        perf=said["version"],
        processor=processor.identify(said["cpuinfo"], said["midr"]),
        pmu=processor.core_pmu_of(sorted(said["devices"].split())),
        level=said["level"] or "not known",
        watchdog=said["watchdog"],
        rdpmc=said["rdpmc"],
        machine=said["machine"],
        hypervisor=bool(re.search(r"^flags\s*:.*\bhypervisor\b", said["cpuinfo"], re.MULTILINE)),
        kvm=said["kvm"] == "yes",
        core=ran["core"],
    )


def ask(host: Testbed, commands: Mapping[str, str]) -> dict[str, Ran]:
    """Run shell commands one after another, and return what each printed, by its name; None as status of one that took too long."""
    lines = ["export LC_ALL=C"]
    for command in commands.values():
        lines.append(f"timeout -k 1 {EACH_S} bash -c {shlex.quote(command)} 2>&1 </dev/null; status=$?")
        lines.append(f"echo; echo {shlex.quote(_MARK)}$status")
    printed = host.run("\n".join(lines), timeout=LONGEST_S, check=False).stdout
    texts = re.split(rf"\n{re.escape(_MARK)}(\d+)\n", printed)
    answers = [Ran(_status(status), text.strip("\n")) for text, status in zip(texts[0::2], texts[1::2], strict=False)]
    # What the testbed did not get to is as if it had hung.
    answers += [Ran(None, "")] * (len(commands) - len(answers))
    return dict(zip(commands, answers, strict=True))


def group(events: Sequence[str]) -> str:
    """As ``-e`` takes it: counted all at the same time, or not at all."""
    return shlex.quote("{" + ",".join(events) + "}")


def readable(ran: Ran) -> list[Count]:
    """The counts that it printed; none where they can't be read."""
    try:
        return probe.read(ran.text)
    except ValueError:
        return []


def counted(ran: Ran, events: int) -> list[float] | None:
    """The values of so many events of one program, if each was counted, and all the time; else None."""
    found = readable(ran)
    if ran.status != 0 or len(found) != events or any(one.percent < 100 for one in found):
        return None
    values = [one.value for one in found if one.value is not None]
    return values if len(values) == events else None


def _status(text: str) -> int | None:
    return None if int(text) in (KILLED, 128 + 9) else int(text)


def _first_line(text: str) -> str:
    return next((" ".join(line.split())[:200] for line in text.splitlines() if line.strip()), "")
