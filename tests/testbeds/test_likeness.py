# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab whose kernel mitigates what another machine's does. The texts are those of the machines named."""

from vsprof.testbeds.emulator import likeness
from vsprof.testbeds.emulator.machine import Shape

# A virtual machine on an EPYC of family 25, model 17, Linux 6.18.
ZEN4 = {
    "meltdown": "Not affected",
    "mds": "Not affected",
    "retbleed": "Not affected",
    "spec_rstack_overflow": "Vulnerable: Safe RET, no microcode",
    "spectre_v1": "Mitigation: usercopy/swapgs barriers and __user pointer sanitization",
    "spectre_v2": "Mitigation: Retpolines; STIBP: disabled; RSB filling; PBRSB-eIBRS: Not affected; BHI: Not affected",
    "tsa": "Not affected",
}
CPUINFO = "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: 17\nmodel name\t: SYNTHETIC\n\nprocessor\t: 1\n"


def test_the_labs_kernel_has_the_machines_mitigations_and_no_others():
    like = likeness.of(CPUINFO.format(vendor="AuthenticAMD", family=25), ZEN4)
    shape = Shape(like=like)
    arguments = shape.kernel_arguments().split()
    assert {"spectre_v2=retpoline", "spec_rstack_overflow=safe-ret", "retbleed=off", "pti=off", "mds=off", "tsa=off"} <= set(arguments)
    assert "mitigations=off" not in arguments
    # Which returns the kernel makes safe goes by the family.
    assert shape.accelerator()[-1].endswith(",family=25,model=17")
    assert likeness.in_words(ZEN4) == "Retpolines, Safe RET"


def test_an_intel_machine_leaves_the_emulated_processor_as_it_is():
    vulnerable = {
        "spectre_v2": "Mitigation: IBRS; IBPB: conditional",
        "meltdown": "Mitigation: PTI",
        "mds": "Mitigation: Clear CPU buffers; SMT off",
    }
    like = likeness.of(CPUINFO.format(vendor="GenuineIntel", family=6), vulnerable)
    assert like.processor == ""
    assert {"spectre_v2=off", "pti=on", "mds=full"} <= set(like.kernel.split())
    assert likeness.in_words(vulnerable) == "PTI, Clear CPU buffers"


def test_a_machine_that_tells_nothing_is_taken_for_one_without():
    like = likeness.of("", {})
    assert like.processor == ""
    assert {one.split("=")[1] for one in like.kernel.split()} == {"off"}
    assert likeness.in_words({}) == "no mitigations in its code"


def test_a_lab_by_itself_has_none_and_its_snapshot_another_name():
    assert "mitigations=off" in Shape().kernel_arguments().split()
    like = likeness.of(CPUINFO.format(vendor="AuthenticAMD", family=25), ZEN4)
    assert Shape(like=like).name.startswith(f"{Shape().name}-like-")
    # Under KVM the processor is this machine's.
    kvm = Shape(accel="kvm", like=like)
    assert kvm.accelerator()[-1] == "host,pmu=on"
    assert "spectre_v2" not in kvm.kernel_arguments()


def test_cpus_have_a_tick_where_the_other_machines_have_one():
    like = likeness.of(CPUINFO.format(vendor="AuthenticAMD", family=25), ZEN4, ticks=True)
    arguments = Shape(like=like).kernel_arguments()
    assert "nohz_full" not in arguments
    assert "rcu_nocbs" not in arguments
    # They are still left to who is pinned there.
    assert "isolcpus=managed_irq,domain,1-3" in arguments
    without = likeness.of(CPUINFO.format(vendor="AuthenticAMD", family=25), ZEN4)
    assert "nohz_full=1-3" in Shape(like=without).kernel_arguments()
    assert Shape(like=like).name != Shape(like=without).name


def test_cpus_are_shared_out_by_session_where_the_other_machine_does_so():
    like = likeness.of(CPUINFO.format(vendor="AuthenticAMD", family=25), ZEN4, sessions=True)
    without = likeness.of(CPUINFO.format(vendor="AuthenticAMD", family=25), ZEN4)
    assert "noautogroup" not in Shape(like=like).kernel_arguments()
    assert "noautogroup" in Shape(like=without).kernel_arguments()
    assert Shape(like=like).name != Shape(like=without).name
