# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run on a server unloads of the kernel's modules: what it loaded, what that needs, and nothing that was there before."""

import subprocess

import pytest

from vsprof.testbeds import modules

# Of programs that answer for a kernel with these modules: geneve needs udp_tunnel, openvswitch needs nf_conntrack and nsh.
PROGRAMS = """
modinfo() { case $3 in geneve) echo udp_tunnel ;; openvswitch) echo nf_conntrack,nsh ;; esac; }
rmmod() { grep -qx "$1" "$HERE/loaded" && ! grep -qx "$1" "$HERE/used" && sed -i "/^$1$/d" "$HERE/loaded" && echo "$1"; }
"""


@pytest.mark.parametrize(
    ("before", "now", "used", "gone"),
    [
        (["ext4"], ["ext4", "openvswitch", "nf_conntrack", "nsh", "ib_core"], [], ["openvswitch", "nf_conntrack", "nsh", "ib_core"]),
        (["ext4", "nf_conntrack"], ["ext4", "nf_conntrack", "openvswitch", "nsh"], [], ["openvswitch", "nsh"]),
        (
            ["openvswitch", "nf_conntrack", "nsh"],
            ["openvswitch", "nf_conntrack", "nsh", "geneve", "udp_tunnel"],
            [],
            ["geneve", "udp_tunnel"],
        ),
        (["ext4"], ["ext4", "openvswitch", "nf_conntrack"], ["openvswitch"], []),
        ([], ["openvswitch"], [], []),
    ],
)
def test_only_what_was_not_there_before_is_unloaded(tmp_path, before, now, used, gone):
    for name, there in (("loaded", now), ("used", used)):
        (tmp_path / name).write_text("".join(f"{module}\n" for module in there))
    script = f"before='{' '.join(before)}'\n{PROGRAMS}{modules.UNLOAD}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, env={"HERE": f"{tmp_path}", "PATH": "/usr/bin:/bin"}
    )
    assert done.stdout.split() == gone, done.stderr
