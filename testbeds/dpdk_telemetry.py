# SPDX-License-Identifier: GPL-2.0-or-later
"""DPDK's telemetry: JSON over a Unix socket that keeps messages apart (SOCK_SEQPACKET), asked by a shell command on the testbed.

https://doc.dpdk.org/guides-24.11/howto/telemetry.html has the protocol.
"""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# $1: the socket, then the questions.
ASK = r"""
import json, socket, sys, time
def answer(question):
    asked.send(question.encode())
    return json.loads(asked.recv(1 << 18))
try:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
        asked.settimeout(20)
        asked.connect(sys.argv[1])
        asked.recv(1 << 18)
        for question in sys.argv[2:]:
            one, _, of = question.partition("*=")
            for each in answer(of)[of] if of else [""]:
                print(json.dumps({"clock": time.time(), "of": each, **answer(one + str(each))}))
except (OSError, ValueError) as error:
    sys.exit(f"{sys.argv[1]} does not answer: {error}")
"""


def command(prefix: str, questions: Sequence[str]) -> str:
    """A shell command that asks the process with EAL's ``--file-prefix`` of ``prefix``, and prints one line of JSON an answer.

    A question ``/one,*=/all`` is asked once for each member of the list that answers ``/all``.
    """
    return shlex.join(["python3", "-S", "-c", ASK, f"/var/run/dpdk/{prefix}/dpdk_telemetry.v2", *questions])


def answers(text: str) -> Iterator[tuple[float, str, str, Any]]:
    """What the command printed: of each answer the time [s], the question, which one of several it is about, and the answer itself.

    Raises ``ValueError`` on anything else.
    """
    for line in filter(None, text.splitlines()):
        said = json.loads(line)
        if not isinstance(said, Mapping) or not isinstance(said.get("clock"), int | float):
            raise ValueError(f"not DPDK's telemetry: {line[:200]!r}")
        for question, found in said.items():
            if question not in ("clock", "of"):
                yield float(said["clock"]), question, str(said.get("of", "")), found
