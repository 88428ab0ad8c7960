# SPDX-License-Identifier: GPL-2.0-or-later
"""What a Debian host says of itself: kernel, command line, CPUs, memory, hugepages, and the versions of what is measured."""

from typing import Any

from vsprof.testbeds.base import Testbed

VERSIONS = {
    "openvswitch-switch": "ovs", "openvswitch-switch-dpdk": "ovs-dpdk", "librte-eal25": "dpdk", "qemu-system-x86": "qemu",
    "linux-perf": "perf", "iperf3": "iperf3", "bpftrace": "bpftrace",
}  # fmt: skip
"""Debian's package of each program, and the name that the manifest gives it."""
COMMAND = rf"""
echo "kernel=$(uname -r)"
echo "kernel_command_line=$(cat /proc/cmdline)"
echo "cpu_model=$(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1)"
echo "microcode=$(sed -n 's/^microcode\s*: //p' /proc/cpuinfo | head -n 1)"
echo "cpus=$(nproc --all)"
echo "memory_bytes=$(( $(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) * 1024 ))"
echo "hugepages_2mib=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages)"
echo "isolated_cpus=$(cat /sys/devices/system/cpu/isolated)"
echo "os=$(. /etc/os-release; echo "$PRETTY_NAME")"
echo "clocksource=$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
dpkg-query -W -f 'version.${{Package}}=${{Version}}\n' {" ".join(VERSIONS)}
"""


def of(host: Testbed) -> dict[str, Any]:
    """The facts of an opened testbed whose root is a Debian."""
    lines = dict(line.split("=", 1) for line in host.run(COMMAND).stdout.splitlines())
    versions = {VERSIONS[k.removeprefix("version.")]: lines.pop(k) for k in list(lines) if k.startswith("version.")}
    numbers = {k: int(lines.pop(k)) for k in ("cpus", "memory_bytes", "hugepages_2mib")}
    return {**lines, **numbers, "versions": {**versions, "kernel": lines["kernel"]}}
