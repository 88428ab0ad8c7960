# SPDX-License-Identifier: GPL-2.0-or-later
"""Random conversations of a guest's side with a switch that has sanitizers in it: the switch lives, forgets nothing, and the neighbours'
frames come through. VSPROF_TEST_SEED=number: the same ones again; VSPROF_FUZZ_SECONDS=number: for so long with each datapath.
"""

import contextlib
import os
import random
import time
from collections import Counter, deque
from itertools import count
from pathlib import Path

import pytest
from frontend import eventually
from modes import DATAPATHS
from running import FOLDER, Keeper, Switch, held, kept, unharmed
from sanitized import OPTIONS, switch_with_sanitizers
from sequences import Conversation

SECONDS = int(os.environ.get("VSPROF_FUZZ_SECONDS", "6"))
pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(SECONDS + 900)]
SEED = int(os.environ.get("VSPROF_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
SETTLE_SECONDS = 1.2
KEPT_MOST = 18
"""Files that librte_vhost may keep for ever of one port's endpoint: REFUSED_MOST of vhost.c, and those of the message that was too much."""
LOOK_EVERY = 12
"""Conversations between two looks at what the switch holds: after the last of them its guest is gone for good."""


@pytest.fixture(scope="module")
def sanitized(host) -> str:
    return switch_with_sanitizers(host)


@pytest.fixture
def switch(keeper: Keeper, datapath: str, sanitized: str):
    yield from kept(keeper, DATAPATHS[datapath], program=sanitized, before=("env", f"ASAN_OPTIONS={OPTIONS}"))


@pytest.mark.long
def test_no_conversation_harms_the_switch(switch: Switch, neighbours, datapath: str):
    path = f"{FOLDER}/{switch.name}.v"
    switch.control(f"add-port v,path={path},server=1")
    before = settled(switch)
    end = time.monotonic() + SECONDS
    stories: deque[str] = deque(maxlen=LOOK_EVERY)
    try:
        for number in count():
            if time.monotonic() > end and number >= LOOK_EVERY:
                break
            said = Conversation(f"{SEED} {datapath} {number}", switch.local(path), spared=datapath == "librte")
            said.hold()
            stories.append(f"conversation {number}:\n" + "\n".join(said.said))
            assert switch.alive(), f"the switch ended with status {switch.status()}\n{switch.log()}"
            if number % LOOK_EVERY == LOOK_EVERY - 1:
                switch.await_down("v")
                unharmed(switch, neighbours)
                # Its endpoint may have been shut out.
                switch.control("remove-port v")
                switch.control(f"add-port v,path={path},server=1")
                now = settled(switch)
                assert (now - before).total() <= KEPT_MOST, f"it holds {now - before} more"
                before = now
    except (AssertionError, OSError) as error:
        told = f"VSPROF_TEST_SEED={SEED}, {datapath}, the last conversations:\n" + "\n".join(stories)
        raise AssertionError(f"{error}\n{told}\nits threads:\n{threads(switch.process.pid)}") from error
    print(f"{number} conversations")
    assert "ERROR: AddressSanitizer" not in switch.log()
    assert "runtime error" not in switch.log()


def threads(pid: int) -> str:
    """What each thread does: its name, its state, and where in the kernel it waits."""
    told = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            told.append(
                f"  {(task / 'comm').read_text().strip()} {state} {(task / 'wchan').read_text()} {(task / 'syscall').read_text().strip()}"
            )
    return "\n".join(told)


def settled(switch: Switch) -> Counter[str]:
    """What the switch holds, once that has not changed for longer than librte_vhost takes to close what a connection left (a second)."""
    seen, since = held(switch.process.pid), time.monotonic()

    def the_same_for_long() -> bool:
        nonlocal seen, since
        now = held(switch.process.pid)
        if now != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since > SETTLE_SECONDS

    eventually(the_same_for_long, "what the switch holds to stay the same", lambda: seen, 10 * SETTLE_SECONDS, switch.clock)
    return seen
