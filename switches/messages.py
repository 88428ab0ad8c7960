# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors and warnings of switches: the value seen, and the next move. One function a message."""

from vsprof.terms.errors import BadInput, RunFailed

# --- General ---------------------------------------------------------------------------------------------------------


def switch_failed(what: str, log: str) -> RunFailed:
    return RunFailed(f"the switch failed: {what}; its log ends with:\n{log or '(nothing)'}")


def checksums_broken(version: str, fixed: list[str]) -> str:
    return (
        f"Open vSwitch {version} clears the IP header's checksum of each TCP segment whose own checksum it leaves to a net_virtio_user, "
        f"and the host drops it; {', '.join(fixed)} and later ones don't. offloads: off leaves none to be made"
    )


def more_masks_than_rules(masks: int, rules: int) -> BadInput:
    return BadInput(f"masks {masks} with rules {rules}: each rule has one mask. Use at least as many `rules` as `masks`, or masks 1")


def senders_share_connections() -> BadInput:
    return BadInput("conntrack: on with several senders: all send with the same addresses and ports, so they would share connections: use "
        "`pairs: 1` and `ways: one`")  # fmt: skip


def tunnel_loses_checksums() -> BadInput:
    return BadInput(
        "tunnel over ovs-dpdk: Open vSwitch forgets at the tunnel's end which checksums and segments a sender left to others, and the "
        "receiver drops the frames: use `offloads: off` and `tso: off`, or `endpoint: testpmd`"
    )


def nothing_to_share_out(options: list[str]) -> BadInput:
    return BadInput(f"{', '.join(options)} with one poll-mode thread, which has all queues: use `switch_cpus: 2` or more")


def other_queues(port: str, found: int, wanted: int) -> RunFailed:
    return RunFailed(
        f"port {port} receives by {found} of {wanted} queues: its device or driver has no more; ask for fewer (card_queues, queues)"
    )


def datapath_misses(seconds: float, missed: int, packets: int, installed: int, wanted: int) -> RunFailed:
    return RunFailed(
        f"after {seconds:.0f} s of traffic {missed} of the last {packets} packets did not find their flow in its datapath, which has "
        f"{installed} flows ({wanted} at least were expected): use fewer `flows` or `rules`, or look at raw/ for the daemon's log"
    )


def receives_nothing(cpu: int, name: str, words: str) -> RunFailed:
    said = " ".join(words.split()) or "the kernel says no more"
    return RunFailed(
        f"CPU {cpu} can't be made to receive what comes in by {name} ({said}), neither by RPS, which kernels keep away from isolated CPUs "
        "(isolcpus, nohz_full), nor by a thread of the interface's own. Take virtual machines for endpoints, which need none of it"
    )


# --- frame-probe -----------------------------------------------------------------------------------------------------


def can_not_restart() -> str:
    return "vsprof can't kill and restart this switch: use ovs-dpdk or vhost-switch"


# --- vhost-switch ----------------------------------------------------------------------------------------------------


def not_installed(path: str) -> str:
    return (
        f"this testbed has no {path}: on a server `make host` installs it; the lab's image has it once it is rebuilt"
        " (`build/venv/bin/vsprof clean --cache`)"
    )


def no_such_file(variable: str, path: str) -> str:
    return f"{variable} names {path}, which is no file: build it (`make -C dataplane`), or unset the variable"


def zero_copy_needs_own_rings() -> BadInput:
    return BadInput("dequeue zero-copy takes vhost-switch's own rings, and rings is librte: use rings own, or list the pair in except")


def af_xdp_is_polled(rx: str) -> BadInput:
    return BadInput(f"card_driver af_xdp has no interrupts for rx {rx}: use rx poll, or card_driver dpdk")


def joins_by_wire() -> RunFailed:
    return RunFailed("vhost-switch joins two ports whatever the addresses only with forward wire: fix `forward: wire`")
