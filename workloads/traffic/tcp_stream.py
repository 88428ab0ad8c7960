# SPDX-License-Identifier: GPL-2.0-or-later
"""One TCP stream (or several) as fast as it goes: iperf3, its JSON kept whole."""

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import Field, field_validator

from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import Data, Headline
from vsprof.testbeds.base import MODELLED
from vsprof.workloads import messages
from vsprof.workloads.endpoints.base import Job
from vsprof.workloads.traffic.base import Options, Traffic, Window, rates

INTERVAL_S = 0.25
"""How often iperf3 reports; a window's goodput is taken from the reports that lie wholly inside it."""
HEADERS_BYTES = 66
"""Of each frame that a kernel hands over, of whatever size: Ethernet 14, IPv4 20, TCP with its timestamps 32."""
SYSTEM = "system"
"""The value of the endpoints' option ``tcp_window`` that leaves the window to the kernel."""
LONGEST_S = 3600
"""iperf3 is ended by us; this only bounds a sender that nobody stops."""
LISTENS_S = 10
CONNECTS_S = 30
"""A SYN is sent again after 1, 3, 7 and 15 s."""
CLOCK = "clock.txt"
"""Whose time passed in the windows: see ``Testbed.clock``."""
STREAMED = "--json-stream"
"""Each report is a line, printed when it is made: whatever ends iperf3 takes none of them away. iperf3 has it from version 3.17 on."""
EVENT = '{"event":'
"""How each of its lines begins."""
WHOLE = "--json"
"""One document, printed at the end: iperf3 must be asked to end, and must do it."""
ENDS_S = 120
"""iperf3 3.18 with ``WHOLE`` did not end at all after SIGINT, once in some hundred times, in an emulated guest."""


class TcpOptions(Options):
    streams: int = Field(1, ge=1, le=128)

    @field_validator("load")
    @classmethod
    def _saturates(cls, load: str) -> str:
        if load != "saturation":
            raise ValueError(messages.other_load(load, "tcp_stream", "saturation"))
        return load


class TcpStream(Traffic):
    words, rank, kind, called = "TCP stream", 10, "stream", "TCP"
    data = Data("megabit", "megabit of goodput", "goodput", scale=1e-6, modelled="model_tcp_bytes", modelled_scale=8e-6)
    headlines = (
        Headline("goodput", "goodput", ("saturation",), "more", things="TCP goodput"),
        Headline("context_switches_per_megabit", "context switches per megabit", ("saturation",), better="less"),
    )
    options = TcpOptions
    reads = ("tcp_window",)

    def start(self) -> None:
        settings = self.settings
        assert isinstance(settings, TcpOptions)
        receiver, sender = self.topology.receiver, self.topology.sender
        self._server: Job = receiver.spawn(f"exec iperf3 -s -1 -B {receiver.address}", may_fail=True)
        receiver.run(_until("0A", LISTENS_S))
        self._form = STREAMED if sender.run(f"iperf3 --help 2>&1 | grep -e {STREAMED}", may_fail=True) else WHOLE
        size = self.topology.chosen.get("tcp_window", SYSTEM)
        # It tells the server, too.
        window = "" if size == SYSTEM else f" -w {size}"
        # Its reports count from its start.
        self._started_s = sender.counters().clock_s
        self._client = sender.spawn(
            f"iperf3 -c {receiver.address} -t {LONGEST_S} -i {INTERVAL_S} -P {settings.streams}{window} {self._form}"
            " > /tmp/iperf3.json 2>&1",
            may_fail=True,
        )
        self._connect()

    def _connect(self) -> None:
        """Wait until the stream is there. A path on which ping comes through may still lose all of TCP, where it breaks checksums."""
        receiver, sender = self.topology.receiver, self.topology.sender
        if not receiver.run(_until("01", CONNECTS_S), seconds=4 * CONNECTS_S, may_fail=True):
            self.check()
            raise messages.no_connection(sender.name, receiver.name, CONNECTS_S)

    def check(self) -> None:
        if self._client.finished():
            sender = self.topology.sender
            raise messages.endpoint_failed(sender.name, "iperf3 ended early", sender.run("cat /tmp/iperf3.json"))

    def stop(self) -> dict[str, str]:
        receiver, sender = self.topology.receiver, self.topology.sender
        # SIGINT makes it print its document before it ends.
        sender.kill("iperf3", "KILL" if self._form == STREAMED else "INT")
        self._client.result(ENDS_S)
        # It ends with its client, where the switch still brings it the news.
        receiver.kill("iperf3", "KILL")
        self._server.result(ENDS_S)
        printed = {"iperf3.json": sender.run("cat /tmp/iperf3.json"), "started.txt": f"{self._started_s:.6f}"}
        return {**printed, CLOCK: self.topology.host.clock}

    @classmethod
    def numbers(cls, raw: Mapping[str, str], windows: Sequence[Window]) -> Iterable[Number]:
        reports = intervals(raw["iperf3.json"], float(raw["started.txt"]))
        goodput = _goodput_of_port if raw.get(CLOCK) == MODELLED else _goodput
        for window in windows:
            yield from rates(window)
            yield from goodput(window, reports)


def _until(state: str, seconds: int) -> str:
    """A command that waits for a socket of iperf3's server in ``state`` (0A: listens, 01: connected), and prints it."""
    # Its port is 5201 (1451); in /proc/net/tcp the other end's address follows, and then the state.
    return f"for i in $(seq {seconds * 10}); do grep ':1451 [0-9A-F:]* {state} ' /proc/net/tcp && exit 0; sleep 0.1; done; exit 1"


def intervals(text: str, started_s: float) -> list[tuple[float, float, float, int]]:
    """iperf3's reports as (begin, end, bytes, retransmits), in the sender's clock.

    ``text``: what it printed with ``STREAMED`` or ``WHOLE``. Raises ``ValueError`` on anything else.
    Retransmits are -1 where the sender's kernel does not tell.
    """
    try:
        sums = [interval["sum"] for interval in _reports(text)]
        read = [(s["start"], s["end"], s["bytes"], s.get("retransmits", -1)) for s in sums]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not iperf3's JSON: an interval lacks {error}") from error
    if any(not isinstance(field, int | float) for one in read for field in one):
        raise ValueError("not iperf3's JSON: an interval's field is no number")
    return [(started_s + begin, started_s + end, size, again) for begin, end, size, again in read]


def _reports(text: str) -> list[Any]:
    """The objects that iperf3 calls intervals. Raises ``ValueError`` where there is no such list."""
    if text.startswith(EVENT):
        return [event.get("data") for event in _events(text) if event.get("event") == "interval"]
    document = json.loads(text)
    if not isinstance(document, dict) or not isinstance(document.get("intervals"), list):
        raise ValueError("not iperf3's JSON: no list of intervals")
    return document["intervals"]


def _events(text: str) -> list[dict[str, Any]]:
    *whole, last = text.rstrip("\n").split("\n")
    events = [json.loads(line) for line in whole]
    # iperf3 may have been killed while it wrote the last.
    with contextlib.suppress(json.JSONDecodeError):
        events.append(json.loads(last))
    if not all(isinstance(event, dict) for event in events):
        raise ValueError("not iperf3's JSON: a line is no event")
    return events


def _goodput(window: Window, reports: Sequence[tuple[float, float, float, int]]) -> Iterable[Number]:
    begin, end = (sample.sender.clock_s for sample in window.endpoints())
    inside = [r for r in reports if r[0] >= begin and r[1] <= end]
    seconds = sum(r[1] - r[0] for r in inside)
    if not seconds:
        why = f"none of iperf3's {len(reports)} reports lies inside the window: the stream ended early, or stood still"
        yield Number("goodput", None, "bit/s", window=window.name, note=why)
        return
    yield Number("goodput", sum(r[2] for r in inside) * 8 / seconds, "bit/s", window=window.name, enabled_s=end - begin, running_s=seconds)
    if all(r[3] >= 0 for r in inside):
        yield Number("retransmits", sum(r[3] for r in inside), "events", window=window.name, enabled_s=end - begin, running_s=seconds)


def _goodput_of_port(window: Window, reports: Sequence[tuple[float, float, float, int]]) -> Iterable[Number]:
    """In modelled time a window is shorter than any of iperf3's reports. What TCP sent twice and both arrived is in it."""
    before, after = window.out_of_switch
    if before is None or after is None:
        yield Number("goodput", None, "bit/s", window=window.name, note=messages.port_not_counted())
    else:
        size = after.sent_bytes - before.sent_bytes - HEADERS_BYTES * (after.sent_packets - before.sent_packets)
        yield Number("goodput", size * 8 / window.switch_seconds, "bit/s", window=window.name)
    yield Number("retransmits", None, "events", window=window.name, note=messages.reports_too_long(INTERVAL_S))


TRAFFIC = TcpStream
