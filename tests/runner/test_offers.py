# SPDX-License-Identifier: GPL-2.0-or-later
"""What a testbed offers of an experiment: the first access that works, the switch that stands in, and what is left out and why."""

from types import SimpleNamespace

import pytest

from vsprof.runner import cli, offers
from vsprof.runner import experiment as experiments
from vsprof.terms.errors import BadInput
from vsprof.terms.placement import PAIR, CpuPlan
from vsprof.testbeds.base import REAL


class Host:
    """A testbed whose kernel lacks ``modules``, and on which guests don't boot for the reason ``guests``. It has a wire, and can't handle
    interrupts in threads."""

    name, clock = "native", REAL

    def __init__(self, modules: tuple[str, ...] = (), guests: str | None = None, hugepages: str | None = None, ovs: str = "3.7.0") -> None:
        self._modules, self._guests, self._hugepages, self._ovs = modules, guests, hugepages, ovs
        self.booted = 0

    def plan(self, duties=PAIR) -> CpuPlan:
        return CpuPlan.of(2, duties)

    def run(self, command, *, check):
        said = f"ovs-vswitchd-dpdk (Open vSwitch) {self._ovs}\n" if "--version" in command else ""
        return SimpleNamespace(status=int(any(module in command for module in self._modules)), stdout=said, stderr="not found")

    def guests_boot(self):
        self.booted += 1
        return self._guests

    def hugepages_lacking(self):
        return self._hugepages

    def wire_lacking(self):
        return None

    def idle_state_lacking(self, deepest):
        return None

    def boot_lacking(self, *, iommu=False, threaded_irqs=False):
        return "no threads" if threaded_irqs else None


def test_what_needs_more_cpus_or_memory_than_there_are_is_left_out_with_the_reason():
    _, experiment = experiments.load("vm2vm")
    more = experiment.model_copy(update={"vary": {**experiment.vary, "pairs": [1, 2]}})
    host = Host()
    host.plan = lambda duties=PAIR: CpuPlan.of(6, duties)
    host.room_lacking = lambda endpoints, dpdk: f"{endpoints} endpoints have no room"
    offer = offers.of(host, more)
    assert {case.options["pairs"] for case in offer.cases} == {"1"}
    assert all("4 endpoints have no room" in one for one in offer.left_out)
    host.plan = lambda duties=PAIR: CpuPlan.of(4, duties)
    assert any("need 1 + 1 + 4 CPUs" in one for one in offers.of(host, more).left_out)


def test_an_option_that_a_switch_does_not_have_needs_no_cpus():
    asked = {"topology": "vm2vm", "switch": "ovs-userspace", "access": "veth", "switch_cpus": "8", "pairs": "4"}
    assert experiments.duties(asked) == PAIR
    assert experiments.duties({**asked, "switch": "kernel-ovs", "access": "vhost-net"}).cpus == 17


def vm2vm(**changes):
    _, experiment = experiments.load("vm2vm")
    return experiment.model_copy(update=changes)


def offered(offer) -> dict[str, str]:
    return {case.switch: case.access for case in offer.cases}


def test_a_host_that_can_do_all_runs_every_case_with_its_first_access():
    offer = offers.of(Host(), vm2vm())
    assert offered(offer) == {"kernel-ovs": "vhost-net", "ovs-dpdk": "vhost-user"}
    assert offer.cases == experiments.cases(vm2vm())
    assert offer.left_out == []


def test_where_no_guest_boots_containers_are_the_endpoints():
    host = Host(guests="it hangs")
    assert offered(offers.of(host, vm2vm())) == {"kernel-ovs": "veth", "ovs-dpdk": "virtio-user"}
    assert host.booted == 1


def test_the_bridge_stands_in_for_a_missing_kernel_ovs_under_its_own_name():
    offer = offers.of(Host(modules=("openvswitch",), guests="it hangs"), vm2vm())
    assert offered(offer) == {"linux-bridge": "veth", "ovs-dpdk": "virtio-user"}
    [said] = offer.left_out
    assert "kernel-ovs left out" in said
    assert "no openvswitch" in said
    assert "linux-bridge replaces it" in said


def test_without_a_stand_in_a_case_is_left_out_with_its_reason():
    offer = offers.of(Host(modules=("openvswitch",)), vm2vm(instead_of={}))
    assert offered(offer) == {"ovs-dpdk": "vhost-user"}
    assert "kernel-ovs left out" in offer.left_out[0]


def test_a_real_processor_is_no_other():
    with pytest.raises(BadInput, match=r"cpu\.profile is of a modelled processor"):
        offers.of(Host(), vm2vm(fixed={"topology": "vm2vm", "cpu.profile": "zen4"}))


def test_an_access_that_was_asked_for_is_not_replaced_by_another():
    experiment = vm2vm(fixed={"topology": "vm2vm", "access": "vhost-user"}, vary={"switch": ["ovs-dpdk"]}, instead_of={})
    with pytest.raises(BadInput, match=r"can run no case(.|\n)*no virtual machine boots here \(it hangs\)"):
        offers.of(Host(guests="it hangs"), experiment)


def test_a_stand_in_that_is_compared_anyway_is_one_case():
    offer = offers.of(Host(modules=("openvswitch",)), vm2vm(vary={"switch": ["kernel-ovs", "linux-bridge"]}))
    assert offered(offer) == {"linux-bridge": "vhost-net"}
    assert len(offer.cases) == 1


def test_nothing_at_all_is_an_error_that_lists_every_reason():
    host = Host(modules=("openvswitch", "bridge"), guests="it hangs", hugepages="3 free hugepages of 2 MiB, need 1024")
    with pytest.raises(BadInput) as failed:
        offers.of(host, vm2vm())
    assert "no openvswitch" in str(failed.value)
    assert "need 1024" in str(failed.value)
    assert "no bridge" in str(failed.value)


def test_a_stand_in_must_be_a_switch():
    with pytest.raises(BadInput, match="unknown switch in instead_of 'hub'"):
        experiments.cases(vm2vm(instead_of={"kernel-ovs": "hub"}))


def test_an_experiment_may_be_different_on_a_testbed():
    experiment = vm2vm(testbeds={"native": {"windows": {"count": 7}, "repetitions": 2}})
    on_native, in_lab = (experiments.on(experiment, name) for name in ("native", "lab"))
    assert (on_native.windows.count, on_native.repetitions) == (7, 2)
    # A real processor's counters take turns: there are more and shorter windows there, unless the experiment says otherwise.
    assert on_native.windows.seconds == 0.5
    assert experiments.on(vm2vm(), "remote").windows.count == 12
    assert experiments.on(vm2vm(windows=experiments.Windows(count=3, seconds=4)), "native").windows.seconds == 4
    assert (in_lab.windows, in_lab.repetitions) == (experiment.windows, experiment.repetitions)
    # What is run is what the manifest keeps: nothing is left to be chosen.
    assert on_native.testbeds == in_lab.testbeds == {}


def test_the_command_line_has_the_last_word():
    _, experiment = experiments.load("vm2vm")
    asked = cli._parser().parse_args(["run", "vm2vm", "--windows", "3"])
    campaign = cli._checked("vm2vm", experiment, asked, "native")
    assert campaign.experiment.windows.count == 3
    assert campaign.experiment.windows.seconds == 0.5


@pytest.mark.parametrize(
    ("testbeds", "words"),
    [({"moon": {}}, "unknown testbed in testbeds 'moon'"), ({"native": {"windows": {"count": 0}}}, r"testbeds.native(.|\n)*windows.count")],
)
def test_what_is_wrong_for_a_testbed_is_named(testbeds, words):
    with pytest.raises(BadInput, match=words):
        experiments.on(vm2vm(testbeds=testbeds), "native")


def test_what_is_left_out_of_several_accesses_is_named_by_its_access():
    _, experiment = experiments.load("virtio-user")
    offer = offers.of(Host(guests="it hangs"), experiment)
    assert [(case.switch, case.access) for case in offer.cases] == [("linux-bridge", "veth"), ("ovs-dpdk", "virtio-user")]
    assert offer.left_out == ["ovs-dpdk over vhost-user left out: no virtual machine boots here (it hangs)"]


def test_what_the_host_would_have_to_boot_for_is_left_out_by_its_option():
    _, experiment = experiments.load("interrupt-wire")
    offer = offers.of(Host(), experiment)
    assert {case.options["irq_thread"] for case in offer.cases} == {"off"}
    assert any("irq_thread=on" in text and text.endswith("no threads") for text in offer.left_out)
    assert all("irq_thread=on" in text for text in offer.left_out)


def causes(**changes):
    _, experiment = experiments.load("vm2host-causes")
    return experiment.model_copy(update=changes)


def test_an_option_that_the_host_can_not_do_is_left_out_by_its_name_and_the_others_stay():
    offer = offers.of(Host(modules=("vhost-net", "44")), causes(changes=[{}, {"local_port": "virtio-user"}, {"local_port": "afxdp"}]))
    assert {(case.switch, case.options.get("local_port")) for case in offer.cases} == {("kernel-ovs", None), ("ovs-dpdk", "tap")}
    # Without vhost-net, a guest on kernel OVS is served by QEMU.
    assert {case.access for case in offer.cases} == {"virtio-net", "vhost-user"}
    assert [text.partition(":")[0] for text in offer.left_out] == [
        "ovs-dpdk local_port=virtio-user left out",
        "ovs-dpdk local_port=afxdp left out",
    ]


def test_what_an_option_of_the_endpoints_makes_impossible_is_left_out_and_the_rest_of_that_way_stays():
    way = {"local_port": "virtio-user"}
    offer = offers.of(Host(ovs="3.5.0"), causes(changes=[{}, way, {**way, "offloads": "off"}, {**way, "tso": "on"}]))
    ours = {
        (case.options["local_port"], case.options["offloads"], case.options["tso"]) for case in offer.cases if case.switch == "ovs-dpdk"
    }
    assert ours == {("tap", "on", "off"), ("virtio-user", "off", "off")}
    assert [text.partition(":")[0] for text in offer.left_out] == [
        "ovs-dpdk local_port=virtio-user left out",
        "ovs-dpdk local_port=virtio-user tso=on left out",
    ]
    assert "Open vSwitch 3.5.0 clears the IP header's checksum" in offer.left_out[0]


def test_what_no_option_changes_is_said_once():
    offer = offers.of(Host(hugepages="3 free hugepages"), causes())
    assert [text for text in offer.left_out if "ovs-dpdk" in text] == ["ovs-dpdk left out: 3 free hugepages"]


def test_guests_are_emulated_where_kvm_boots_none_and_the_experiment_leaves_it_open():
    offer = offers.of(Host(modules=("openvswitch", "vhost-net"), guests="it hangs"), causes(changes=[{}]))
    assert {(case.switch, case.access, case.options["accel"]) for case in offer.cases} == {
        ("linux-bridge", "virtio-net", "tcg"),
        ("ovs-dpdk", "vhost-user", "tcg"),
    }
    assert [text for text in offer.left_out if "KVM can't boot a guest here (it hangs), so QEMU emulates" in text]
    in_kvm = offers.of(Host(), causes(changes=[{}]))
    assert {case.options["accel"] for case in in_kvm.cases} == {"kvm"}
    assert in_kvm.left_out == []


def test_another_kernel_is_left_out_where_only_one_runs_with_the_other_options_as_they_were():
    host = Host()
    host.kernel_lacking = lambda kernel: None if kernel == "forky" else f"it runs Linux 7.2, not that of {kernel}"
    vary = {"switch": ["kernel-ovs"], "kernel": ["trixie", "forky"], "access": ["vhost-net", "veth"]}
    offer = offers.of(host, vm2vm(fixed={"topology": "vm2vm"}, vary=vary, instead_of={}))
    assert {(case.access, case.options["kernel"]) for case in offer.cases} == {("vhost-net", "forky"), ("veth", "forky")}
    assert offer.left_out == [
        f"kernel-ovs over {access} kernel=trixie left out: it runs Linux 7.2, not that of trixie" for access in ("vhost-net", "veth")
    ]


def test_the_default_kernel_is_one_too():
    host = Host()
    host.kernel_lacking = lambda kernel: f"not that of {kernel}"
    with pytest.raises(BadInput, match="not that of trixie"):
        offers.of(host, vm2vm(fixed={"topology": "vm2vm", "kernel": "auto"}))
