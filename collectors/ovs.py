# SPDX-License-Identifier: GPL-2.0-or-later
"""How to ask a running ovs-vswitchd, for the collectors that read its counters."""

import re
import shlex
from collections.abc import Mapping
from typing import ClassVar

from vsprof.collectors.base import Collector
from vsprof.testbeds.base import Testbed

SOCKET = "/run/openvswitch/ovs-vswitchd.ctl"
APPCTL = f"ovs-appctl -t {SOCKET}"
HEADING = "---"
FOR = f"{HEADING} for "
"""Begins the heading of one asker's answers."""
# What ovs-appctl does, for several commands: JSON-RPC over a Unix socket (ovs-vswitchd(8), lib/unixctl.man). The numbers are AF_UNIX and
# SOCK_STREAM. An answer is one object whose only strings are its result or its error.
_ASK = r"""
socket(my $daemon, 1, 1, 0) or die "$!\n";
connect($daemon, pack("Sa108", 1, shift)) or die "ovs-vswitchd does not listen: $!\n";
my $string = qr/"([^"\\]*(?:\\.[^"\\]*)*)"/s;
my %escaped = (n => "\n", t => "\t", r => "\r", b => "\b", f => "\f");
for (@ARGV) {
    if (/^---/) { print "$_\n"; next }
    my ($command, @words) = split;
    syswrite $daemon, sprintf(q({"id":0,"method":"%s","params":[%s]}), $command, join(",", map { qq("$_") } @words));
    my $answer = "";
    until ($answer =~ /^\s*\{(?:[^"{}]|$string)*\}\s*$/s) {
        sysread($daemon, $answer, 65536, length $answer) or die "ovs-vswitchd ended before it answered $command\n";
    }
    my ($kind, $text) = $answer =~ /"(result|error)"\s*:\s*$string/s or next;
    $text =~ s/\\(?:u(....)|(.))/defined $1 ? chr hex $1 : $escaped{$2} \/\/ $2/ge;
    $text =~ s/(?<=[^\n])\z/\n/;
    print { $kind eq "result" ? *STDOUT : *STDERR } $text;
}
"""


def asking(*questions: str, socket: str = SOCKET) -> str:
    """A shell command that prints the daemon's answers to ``questions``, each a command of ovs-appctl. One that begins with ``HEADING`` is
    printed as it is. To start ovs-appctl for each took longer than all answers. What the daemon refuses goes to standard error."""
    return shlex.join(["perl", "-e", _ASK, socket, *questions])


class Asker(Collector):
    """A collector that asks ovs-vswitchd twice, and takes the difference. All askers of a window are served by one program: each start of
    one takes a third of a second in an emulated host."""

    asks: ClassVar[tuple[str, ...]]
    """Questions, and headings between, as ``asking`` takes them."""
    nesting = 0

    def begin(self) -> str:
        return ""

    def end(self) -> str:
        return ""


def command(askers: Mapping[str, Asker]) -> str:
    """A shell command that prints what any of ``askers`` asks, each one's answers behind a heading."""
    return asking(*(word for name, asker in askers.items() for word in (f"{FOR}{name}", *asker.asks)))


def answers_of(name: str, printed: str) -> str:
    """Of what the command printed for several askers, the answers to one."""
    parts = re.split(rf"^{re.escape(FOR)}(.*)\n", printed, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True)).get(name, "")


def not_running(host: Testbed) -> str | None:
    """Why Open vSwitch can't be asked, or None."""
    asked = host.run(f"{APPCTL} version", check=False)
    return None if asked.status == 0 else "no ovs-vswitchd runs"


def has_pmd(host: Testbed) -> bool:
    """Whether the running ovs-vswitchd has poll-mode threads."""
    return "pmd thread" in host.run(f"{APPCTL} dpif-netdev/pmd-stats-show", check=False).stdout
