# SPDX-License-Identifier: GPL-2.0-or-later
"""A flood sent by the kernel's packet generator (pktgen) of an endpoint."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address

from vsprof.workloads.endpoints.base import PATIENCE_S, Burst, Endpoint, Flood, Frames, Job

FOLDER = "/proc/net/pktgen"
ENDED = "Result: OK"
"""What pktgen's device file says once a flood has ended; before, it says Starting or Running."""
END_TRIES = 20
NEVER = 0x7FFFFFFF
"""A delay between frames that means that none is sent; its clock goes on (Linux, net/core/pktgen.c)."""
BEFORE_BURST_S = 0.01
"""Until a burst is begun: whoever asked for it is told that it will be, and nothing else happens when it is."""
FILE = "pktgen.txt"


class Pktgen(Flood):
    def __init__(self, sender: Endpoint, frames: Frames, cpu: int = 0) -> None:
        """``cpu``: of the endpoint's own, whose kernel thread sends."""
        self._sender, self._frames, self._cpu = sender, frames, cpu
        self._job: Job | None = None

    def prepare(self) -> None:
        frames = self._frames
        # Of several flows it draws one for each frame: an address from the least on, below the highest.
        behind = IPv4Address(frames.target_address) + frames.flows
        several = [f"dst_max {behind}", "flag IPDST_RND"] if frames.flows > 1 else []
        settings = [
            "count 0", f"pkt_size {frames.size}", self._pace(),
            f"dst {frames.target_address}", f"dst_mac {frames.target_mac}",
            f"src_min {frames.source_address}", f"src_max {frames.source_address}",
            f"udp_dst_min {frames.target_port}", f"udp_dst_max {frames.target_port}",
            f"udp_src_min {frames.source_port}", f"udp_src_max {frames.source_port}",
            *several,
        ]  # fmt: skip
        thread = f"{FOLDER}/kpktgend_{self._cpu}"
        lines = [
            f"echo rem_device_all > {thread}",
            f"echo add_device {self._sender.interface} > {thread}",
            *(f"echo '{s}' > {self._device}" for s in settings),
        ]
        self._sender.run(" && ".join(lines))

    def start(self) -> None:
        self._job = self._sender.spawn(f"echo start > {FOLDER}/pgctrl", may_fail=True)

    def hold(self) -> None:
        self._set(f"delay {NEVER}")

    def go_on(self) -> None:
        self._set(self._pace())

    def burst(self, count: int, rate_pps: int | None) -> None:
        # A frame that pktgen shares with the driver is waited for at the end, which would count as sending: Linux from 6.6 on can do
        # without. Its thread looks for what it is told each tenth of a second.
        settings = [f"echo '{setting}' > {self._device}" for setting in (_pace(rate_pps), f"count {count}")]
        begin = f"{{ sleep {BEFORE_BURST_S}; echo start > {FOLDER}/pgctrl; }} > /dev/null 2>&1 &"
        self._sender.run(f"echo 'flag !SHARED' 2> /dev/null > {self._device}; {' && '.join(settings)} && {begin}", seconds=PATIENCE_S)

    def burst_sent(self) -> Burst | None:
        seen = self._sender.run(f"cat {self._device}", seconds=PATIENCE_S)
        return Burst(frames_sent(seen), seconds_sent(seen)) if ENDED in seen else None

    def _pace(self) -> str:
        return _pace(self._frames.rate_pps)

    def _set(self, setting: str) -> None:
        self._sender.run(f"echo '{setting}' > {self._device}")

    def ended(self) -> str | None:
        assert self._job is not None
        if not self._job.finished():
            return None
        # The write that starts pktgen returns at once where its thread has not begun within 125 ms, as on a slow host. It runs all
        # the same.
        seen = self._sender.run(f"cat {self._device}")
        return seen if ENDED in seen else None

    def stop(self) -> dict[str, str]:
        assert self._job is not None
        self._sender.run(f"echo stop > {FOLDER}/pgctrl")
        self._job.result(30)
        # Its thread looks for what it is told between frames: where `start` had returned early (see `ended`), it may not have ended yet.
        waited = f"for i in $(seq {END_TRIES}); do grep -q '{ENDED}' {self._device} && break; sleep 0.1; done; cat {self._device}"
        return {FILE: self._sender.run(waited)}

    def due(self, printed: Mapping[str, str]) -> int:
        assert self._frames.rate_pps is not None
        return int(self._frames.rate_pps * seconds_sent(printed[FILE]))

    @property
    def _device(self) -> str:
        return f"{FOLDER}/{self._sender.interface}"


def _pace(rate_pps: int | None) -> str:
    return f"ratep {rate_pps}" if rate_pps else "delay 0"


def frames_sent(text: str) -> int:
    """pktgen's own count of frames handed to the driver. Raises ``ValueError`` where there is none."""
    if found := re.search(r"^\s*pkts-sofar: (\d+)", text, re.MULTILINE):
        return int(found[1])
    raise ValueError("not pktgen's device file: no pkts-sofar")


def seconds_sent(text: str) -> float:
    """How long pktgen sent, by its device file. Raises ``ValueError`` where that does not say."""
    if found := re.search(r"^Result: OK: (\d+)\(", text, re.MULTILINE):
        return int(found[1]) / 1e6
    raise ValueError("not pktgen's device file of a flood that has ended: no Result: OK")
