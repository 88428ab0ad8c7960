# SPDX-License-Identifier: GPL-2.0-or-later
"""What doctor found is told within 80 columns: a line an item (more where it is long), and each reason once."""

from vsprof.runner.doctor import Check, render

LAB = [Check("memory", True, "20.8 GiB available", "lab"), Check("lab image", True, "ready", "speed")]
KVM = Check("KVM", False, "a guest did not boot: " + "kvm_buf_set_msrs: Assertion failed; " * 5, "native", "the lab needs no KVM")
OF_SWITCHES = [Check(f"native: {name}", False, "none", "native", "no guest boots here") for name in ("kernel-ovs", "ovs-dpdk")]


def test_it_fits_and_is_grouped():
    said = render([*LAB, KVM, *OF_SWITCHES])
    lines = said.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "The emulated lab runs here: `make profile-vm2vm`."
    assert [line for line in lines if line and not line.startswith(" ")][1:] == ["Ready", "Missing", "What to do"]
    [kvm] = [line for line in lines if line.startswith("  KVM")]
    assert kvm.endswith(" [1]")


def test_a_reason_of_several_is_said_once():
    said = render([*LAB, *OF_SWITCHES])
    assert said.count("no guest boots here") == 1
    assert said.count(" [1]") == 3


def test_where_nothing_is_missing_nothing_is_to_be_done():
    said = render([*LAB, Check("native: ovs-dpdk", True, "vhost-user", "native")])
    assert "Missing" not in said
    assert "What to do" not in said
    assert "On this host itself run ovs-dpdk: `make profile-vm2vm TESTBED=native`." in said


def test_a_lab_that_can_not_run_is_said_first():
    short = Check("memory", False, "2 GiB available", "lab", "close other programs")
    assert render([short]).splitlines()[0] == "The emulated lab can't run here yet: see below."


def test_a_long_text_is_said_whole_and_a_long_name_keeps_the_column():
    seen = "/dev/kvm opens, but a guest did not boot: qemu-system-x86_64 said that it can't, and gave a reason for it in many words"
    checks = [
        Check("automatic NUMA balancing", False, "0", "native", "do without"),
        Check("KVM", False, seen, "native", "do without"),
        *LAB,
    ]
    lines = render(checks).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "…" not in "".join(lines)
    assert seen in " ".join(" ".join(line.removesuffix("[1]") for line in lines).split())
    columns = [line.index(text) for line in lines for name, text in (("automatic", "0 (native)"), ("KVM", "/dev/kvm")) if name in line]
    assert len(columns) == 2
    assert len(set(columns)) == 1


def test_no_name_is_broken_across_lines():
    switches = [
        Check(f"native: {name}", True, "veth", "native")
        for name in ("linux-bridge", "ovs-afxdp", "ovs-dpdk", "ovs-userspace", "vhost-switch")
    ]
    lines = render([*LAB, *switches]).splitlines()
    assert any("vhost-switch:" in line for line in lines)
    assert not any(line.endswith("-") for line in lines)
