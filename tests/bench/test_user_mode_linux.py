# SPDX-License-Identifier: GPL-2.0-or-later
"""The order in which User-Mode Linux's modules are loaded."""

from vsprof.bench import user_mode_linux
from vsprof.bench.user_mode_linux import load_order

# Lines of Debian's own: what a module needs stands in the order of unloading.
DEPENDENCIES = """\
kernel/net/nsh/nsh.ko:
kernel/net/netfilter/nf_conntrack.ko: kernel/net/ipv4/netfilter/nf_defrag_ipv4.ko
kernel/net/ipv4/netfilter/nf_defrag_ipv4.ko:
kernel/drivers/net/veth.ko:
kernel/net/openvswitch/openvswitch.ko: kernel/net/nsh/nsh.ko kernel/net/netfilter/nf_conntrack.ko kernel/net/ipv4/netfilter/nf_defrag_ipv4.ko
"""


def test_what_is_needed_comes_first_and_once():
    wanted = ("kernel/net/netfilter/nf_conntrack.ko", "kernel/net/openvswitch/openvswitch.ko", "kernel/drivers/net/veth.ko")
    assert [name.rpartition("/")[2] for name in load_order(DEPENDENCIES, wanted)] == [
        "nf_defrag_ipv4.ko",
        "nf_conntrack.ko",
        "nsh.ko",
        "openvswitch.ko",
        "veth.ko",
    ]


def test_a_folder_of_an_earlier_vsprof_that_lacks_a_module_is_not_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(user_mode_linux, "FOLDER", tmp_path)
    assert not user_mode_linux.is_whole()
    (tmp_path / "order").write_text("nsh.ko\nopenvswitch.ko\nveth.ko\n")
    assert not user_mode_linux.is_whole()
    (tmp_path / "order").write_text("nsh.ko\nopenvswitch.ko\nllc.ko\nstp.ko\nbridge.ko\nveth.ko\n")
    assert user_mode_linux.is_whole()
