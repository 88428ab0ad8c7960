# SPDX-License-Identifier: GPL-2.0-or-later
"""The switch is killed and started again while frames flow at a fixed pace: how long is nothing received, and what is lost?

The windows come before, and show the path as it was. Then a new stream begins, the switch gets SIGKILL, is started at once with the ports
that it had, and gets ``patience_s`` from when it runs again. That nothing arrives until then is a result. Give this traffic a run of its
own: any other of the same run goes through whatever came back.
"""

import time
from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel, Field

from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import Headline
from vsprof.workloads import messages
from vsprof.workloads.endpoints.probe_report import Report
from vsprof.workloads.traffic.base import Window
from vsprof.workloads.traffic.paced_frames import PacedFrames, PacedOptions

OUTAGE = "outage"
"""The window name of what is counted from before the kill to the end."""
FILE = "outage.json"
BEFORE_S, AFTER_S = 0.5, 1.0
"""How long frames flow before the kill, and after the first one is back."""
LOOK_S = 0.1
MOST_SKIPPED = 0.25
"""Of the frames that were due: with more that frame-probe could not send, the loss says nothing."""
LONGEST_BLINK = 0.1
"""Of the longest gap: a stall of frame-probe that is longer may have made it."""
CLOCKS_S = 0.05
"""What the clocks of the report and of the kill may differ: each is read by a process of its own."""


class ReconnectOptions(PacedOptions):
    period_us: float = Field(100, ge=1, le=1_000_000)
    patience_s: float = Field(10, gt=0, le=600)


class Outage(BaseModel):
    """What was recorded. Reading one raises ``ValueError`` on anything else."""

    killed_s: float
    """The host's clock right before the kill."""
    running_s: float
    """The host's clock when the switch ran again."""
    patience_s: float
    came_back: bool
    report: Report


class Reconnect(PacedFrames):
    words, rank, kind, data = "restart of the switch", 60, "restart", None
    headlines = (
        Headline("came_back", "came back", better="more"),
        Headline("outage", "longest time without a frame", better="less"),
        Headline("outage_packets_lost", "packets lost", better="less"),
        Headline("switch_away", "of which the switch itself was away", better="less"),
    )
    options = ReconnectOptions
    outlasts_modelled_time = True

    def unavailable(self) -> str | None:
        return super().unavailable() or self.topology.switch.can_not_restart()

    def after_windows(self) -> None:
        settings, switch = self.settings, self.topology.switch
        assert isinstance(settings, ReconnectOptions)
        self._whole = self._probe.report()
        self._probe.send(self._period_s(), self.frame_bytes)
        time.sleep(BEFORE_S)
        killed_s = self._clock()
        switch.kill()
        received = self._probe.report().received
        switch.restart()
        running_s = self._clock()
        came_back = self._await_frames(received, settings.patience_s)
        if came_back:
            time.sleep(AFTER_S)
            self._probe.pause()
            time.sleep(AFTER_S)
        self._outage = Outage(
            killed_s=killed_s, running_s=running_s, patience_s=settings.patience_s, came_back=came_back, report=self._probe.report()
        )

    def stop(self) -> dict[str, str]:
        return {**super().stop(), FILE: self._outage.model_dump_json()}

    @classmethod
    def numbers(cls, raw: Mapping[str, str], windows: Sequence[Window]) -> Iterable[Number]:
        yield from super().numbers(raw, windows)
        yield from _of_outage(Outage.model_validate_json(raw[FILE]))

    def _clock(self) -> float:
        return float(self.topology.host.run("echo $EPOCHREALTIME").stdout)

    def _await_frames(self, received: int, patience_s: float) -> bool:
        """Whether more than ``received`` frames arrive in time."""
        end = time.monotonic() + patience_s
        while self._probe.report().received <= received:
            if time.monotonic() > end:
                return False
            time.sleep(LOOK_S)
        return True


def _of_outage(outage: Outage) -> Iterable[Number]:
    """How long frames were away and how many are lost; empty, with the reason, where the path did not come back or nobody could tell."""
    report = outage.report
    away = "" if outage.came_back else messages.not_back(outage.patience_s)
    no_gap, no_loss = away or _no_gap(outage), away or _no_loss(report)
    yield Number("came_back", float(outage.came_back), "fraction", window=OUTAGE)
    yield Number("switch_away", outage.running_s - outage.killed_s, "seconds", window=OUTAGE)
    yield Number("outage", None if no_gap else report.gap.longest_s, "seconds", window=OUTAGE, note=no_gap)
    yield Number("outage_packets_lost", None if no_loss else report.offered - report.received, "packets", window=OUTAGE, note=no_loss)
    yield Number("outage_packets_offered", report.offered, "packets", window=OUTAGE)
    yield Number("outage_packets_skipped", report.skipped, "packets", window=OUTAGE)


def _no_gap(outage: Outage) -> str:
    """Why the longest gap is not the outage; nothing if it is."""
    gap, longest_s = outage.report.gap, outage.report.stalls.longest_s
    if not outage.killed_s - CLOCKS_S <= gap.began_s <= outage.running_s:
        return messages.other_gap(gap.began_s, outage.killed_s)
    return messages.blinked(longest_s, gap.longest_s) if longest_s > LONGEST_BLINK * gap.longest_s else ""


def _no_loss(report: Report) -> str:
    """Why what is lost says nothing; nothing if it does."""
    due = report.offered + report.skipped
    return messages.starved(report.skipped, due) if report.skipped > MOST_SKIPPED * due else ""


TRAFFIC = Reconnect
