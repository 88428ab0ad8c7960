# SPDX-License-Identifier: GPL-2.0-or-later
"""When what happened on each CPU of a real host: who ran, who was woken, interrupts, softirqs, guests, upcalls and sleep, from the kernel's
tracepoints. In modelled time the processor model writes the same down, and more, at no cost.

Writing each event down costs something where it happens, so it has windows of its own, and an experiment must name it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from vsprof.collectors import messages, perf_text
from vsprof.collectors.base import Apart, Recorded
from vsprof.collectors.perf_text import Recording
from vsprof.collectors.timeline import story
from vsprof.terms.schema import Number, Span
from vsprof.terms.vocabulary import NumberWords
from vsprof.testbeds.base import Testbed

NEEDED = ("sched:sched_switch", "sched:sched_waking")
WANTED = (
    "irq:irq_handler_entry", "irq:irq_handler_exit", "irq:softirq_entry", "irq:softirq_exit", "power:cpu_idle",
    "kvm:kvm_entry", "kvm:kvm_exit", "openvswitch:ovs_dp_upcall",
    *(f"irq_vectors:{vector}_{end}" for vector in story.VECTORS for end in ("entry", "exit")),
)  # fmt: skip
"""Those that the host has are recorded: a module's are there when the module is loaded."""
FIELDS = ("tid,cpu,time,event,trace",)
LASTS_MS, MOST_MS = 20.0, 1000.0


class Timeline(Apart):
    words = "the timeline"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "timeline_lost_events": NumberWords("events that perf lost", better="less"),
        "timeline_seconds": NumberWords("length of the timeline"),
    }
    automatic = False
    options: ClassVar[dict[str, str]] = {"milliseconds": f"how long it is, up to {MOST_MS:g}"}

    def __init__(self, host: Testbed, milliseconds: float = LASTS_MS) -> None:
        super().__init__(host)
        self.milliseconds = milliseconds
        self._events = ",".join(NEEDED)

    @classmethod
    def check_options(cls, given: Mapping[str, Any]) -> None:
        lasts = given.get("milliseconds", LASTS_MS)
        if isinstance(lasts, bool) or not isinstance(lasts, int | float) or not 0 < lasts <= MOST_MS:
            raise messages.bad_milliseconds(lasts, MOST_MS)

    def unavailable(self) -> str | None:
        tried = perf_text.tried(self.host, f"-e {','.join(NEEDED)}")
        return None if tried.status == 0 else messages.no_tracepoints(" ".join(tried.stderr.split()))

    def setup(self) -> None:
        # In one log-in, each by itself: one that is not there would end all others with it.
        tries = " ".join(WANTED)
        asked = f"for one in {tries}; do perf record -q -N -a -e $one -o /dev/null -- true > /dev/null 2>&1 && echo $one; done; true"
        self._events = ",".join([*NEEDED, *self.host.run(asked).stdout.split()])

    def facts(self) -> dict[str, Any]:
        return {"events": self._events.split(",")}

    def measure(self, seconds: float) -> str:
        return Recording.of(perf_text.record(self.host, f"-e {self._events}", self.milliseconds / 1e3, FIELDS)).recorded()

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        recording = Recording.read(recorded.end)
        yield Number("timeline_lost_events", perf_text.lost_in(recording), "events")
        begin, end = story.ends(recording)
        yield Number("timeline_seconds", (end - begin) / 1e9, "seconds")

    @classmethod
    def spans(cls, recorded: Recorded) -> Iterable[Span]:
        """Empty where events were lost or cut: what follows from one to the next is not known then."""
        recording = Recording.read(recorded.end)
        return [] if recording.cut() or perf_text.lost_in(recording) else story.spans(recording, recorded.placement)


COLLECTOR = Timeline
