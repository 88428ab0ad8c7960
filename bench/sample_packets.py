# SPDX-License-Identifier: GPL-2.0-or-later
"""sample_packets.py COUNT SECONDS WHAT: print COUNT times, SECONDS apart, the time and how many packets there were until then.

WHAT: ``telemetry=SOCKET``, what a testpmd has received on its ports 0 and 1, by DPDK's telemetry; ``interface=NAME``, what a network
interface has sent. It runs where the switch does, with the Python that is there, and reads the time right beside the number.
"""

import json
import os
import socket
import sys
import time


def received(asked):
    total = 0
    for port in 0, 1:
        asked.send(b"/ethdev/stats,%d" % port)
        total += json.loads(asked.recv(1 << 18))["/ethdev/stats"]["ipackets"]
    return total


def sent(name):
    # Not out of /sys, which natively shows the network of those who mounted it. The tenth number of its line.
    with open("/proc/net/dev") as lines:
        return next(int(rest.split()[9]) for line in lines for found, _, rest in [line.partition(":")] if found.strip() == name)


def counter(what):
    kind, _, name = what.partition("=")
    if kind == "interface":
        return lambda: sent(name)
    asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    asked.settimeout(20)
    asked.connect(name)
    asked.recv(1 << 18)
    return lambda: received(asked)


def come_first():
    """Before all but the kernel's own, where a switch's script insists on its CPUs: see insist in switch_common.sh."""
    if os.path.exists("/run/vsprof-insists"):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))


def main(count, seconds, what):
    come_first()
    packets = counter(what)
    taken = []
    for _ in range(int(count)):
        time.sleep(float(seconds))
        taken.append((packets(), time.time_ns() // 1000))
    for number, at in taken:
        print(f"microseconds={at} packets={number} idle=0 polls=0")


main(*sys.argv[1:])
