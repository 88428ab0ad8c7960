# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of frame-probe, and of switches that are killed and started again."""

from __future__ import annotations

from pathlib import Path

from terms.errors import BadInput, RunFailed


def not_probed(sender: str, receiver: str) -> str:
    return (
        f"{sender} and {receiver} can't be served by frame-probe, which takes both ends over virtio-user in one process: "
        "use topology vm2vm with access virtio-user"
    )


def one_flow(sender: str, flows: int) -> str:
    return f"{sender} sends a flood at a given rate by frame-probe, which sends one flow and not {flows}: use flows 1, or load saturation"


def not_installed(program: str, variable: str) -> str:
    return f"this host has no {program}: run `make -C dataplane/probe install` on it, or let {variable} name the program on this machine"


def not_a_file(variable: str, path: Path) -> BadInput:
    return BadInput(f"{variable} is {path}, which is no file: build dataplane/probe, or unset it")


def refused(words: str) -> RunFailed:
    return RunFailed(f"frame-probe did not do as it was told: {words.strip()[-1500:] or '(no word)'}")


def nothing_arrives(seconds: float, words: str) -> RunFailed:
    return RunFailed(f"no frame of frame-probe arrived within {seconds:.0f} s; its log ends with:\n{words.strip()[-1500:] or '(nothing)'}")


def nothing_arrived(window: str) -> str:
    return f"no frame of {window} arrived undisturbed"


def can_not_restart() -> str:
    return "vsprof can't kill and restart this switch: use ovs-dpdk or vhost-switch"


def not_back(seconds: float) -> str:
    return f"did not come back: no frame arrived within {seconds:g} s after the switch ran again"


def starved(skipped: int, due: int) -> str:
    return f"frame-probe had no CPU when {skipped} of {due} frames were due, so the loss says nothing: repeat it on a quieter host"


def blinked(longest_s: float, gap_s: float) -> str:
    return f"frame-probe itself was away for {longest_s:.3f} s of {gap_s:.3f} s without a frame: repeat it on a quieter host"


def other_gap(began_s: float, killed_s: float) -> str:
    after = began_s - killed_s
    return f"the longest time without a frame began {after:.3f} s after the switch was killed, so it is another: take a quieter host"
