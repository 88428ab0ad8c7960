# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's parts that need no lab: what it is started with, what it needs, and what tells one image from another."""

import dataclasses
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from vsprof.terms import errors
from vsprof.terms.errors import BadInput, PluginNotLoaded, RunFailed, VsprofError
from vsprof.terms.placement import Duties
from vsprof.testbeds import lab
from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds.base import Testbed
from vsprof.testbeds.emulator import image, needs, tree
from vsprof.testbeds.emulator.image import Image
from vsprof.testbeds.emulator.machine import HUGEPAGES, Instance, Machine, Shape
from vsprof.testbeds.emulator.needs import LAB_MEMORY_BYTES
from vsprof.testbeds.lab import CPUS, Lab


@pytest.mark.parametrize(("cpus", "pinned"), [(2, "1"), (4, "1-3")])
def test_all_cpus_but_the_first_are_left_to_roles(cpus, pinned):
    arguments = Shape(cpus).kernel_arguments().split()
    assert f"isolcpus=managed_irq,domain,{pinned}" in arguments
    assert {f"nohz_full={pinned}", f"rcu_nocbs={pinned}", "irqaffinity=0", f"hugepages={HUGEPAGES}"} <= set(arguments)


def test_machines_of_other_shapes_have_other_names():
    assert Shape(2).name != Shape(4).name
    assert Shape(4).name == "4cpus-4096MiB"
    assert Shape(4, accel="kvm").name == "4cpus-4096MiB-kvm"
    assert Shape(4, iommu=True).name == "4cpus-4096MiB-iommu"
    assert Shape(4, iommu=True, threaded_irqs=True).name == "4cpus-4096MiB-iommu-threadirqs"


def test_an_iommu_and_threads_for_interrupts_are_there_only_where_asked_for(tmp_path):
    plain, other = Shape(4), Shape(4, iommu=True, threaded_irqs=True)
    assert not {"intel_iommu=on", "iommu=pt", "threadirqs"} & set(plain.kernel_arguments().split())
    assert {"intel_iommu=on", "iommu=pt", "threadirqs"} <= set(other.kernel_arguments().split())
    arguments, more = (Machine(Image(tmp_path), shape, tmp_path)._arguments(tmp_path / "disk.qcow2") for shape in (plain, other))
    assert "intel-iommu,intremap=off" not in arguments
    # Before all others: QEMU takes no device before its IOMMU that DMAs through it.
    assert more[more.index("-device") + 1] == "intel-iommu,intremap=off"


def test_the_lab_boots_as_it_is_told_before_the_first_command():
    lab = Lab()
    lab.boot(iommu=True, threaded_irqs=True)
    assert lab._shape == Shape(4, iommu=True, threaded_irqs=True)


FITTING = [fit for fit in (Duties(movers, 2 * pairs) for movers in (1, 2, 4, 8) for pairs in (1, 2, 3, 4)) if fit.cpus <= max(CPUS)]


@pytest.mark.parametrize("duties", FITTING, ids=lambda duties: f"{duties.movers}-movers-{duties.endpoints}-guests")
def test_a_lab_of_more_cpus_has_room_for_more_guests(duties):
    shape = Shape(next(cpus for cpus in CPUS if cpus >= max(4, duties.cpus)))
    # Beside the guests and OVS-DPDK as much again as beside two.
    assert shape.hugepages - 512 - 128 * duties.endpoints >= HUGEPAGES - 512 - 2 * 128
    assert shape.memory_bytes - (shape.hugepages << 21) >= LAB_MEMORY_BYTES - (HUGEPAGES << 21)
    assert (shape.more_bytes == 0) == (shape.cpus == 4)
    assert f"-{shape.memory_bytes >> 20}MiB" in shape.name


@pytest.mark.parametrize("cpus", [0, 1, 3, 7, 32, "4"])
def test_the_lab_has_one_of_a_few_numbers_of_cpus(cpus):
    with pytest.raises(BadInput, match="use one of 2, 4"):
        Lab(cpus)


def test_a_lab_that_was_never_opened_closes():
    lab = Lab()
    lab.close()
    lab.close()


def test_the_machine_reaches_nothing_and_is_reached_from_here_alone(tmp_path):
    machine = Machine(Image(tmp_path), Shape(4), tmp_path)
    machine.port = 2222
    arguments = " ".join(machine._arguments(tmp_path / "disk.qcow2"))
    assert "restrict=on,hostfwd=tcp:127.0.0.1:2222-:22" in arguments
    assert "-accel tcg" in arguments
    assert "-smp 4" in arguments
    assert "-m 4096M" in arguments


def test_under_kvm_the_lab_is_the_processor_itself_with_its_counters(tmp_path):
    machine = Machine(Image(tmp_path), Shape(4, accel="kvm"), tmp_path)
    arguments = " ".join(machine._arguments(tmp_path / "disk.qcow2"))
    assert "-accel kvm -cpu host,pmu=on" in arguments
    assert "tcg" not in arguments
    # The price of a real processor's mitigations is part of what is measured there.
    assert "mitigations" not in Shape(4, accel="kvm").kernel_arguments()


def test_time_is_modelled_by_the_emulator_alone():
    assert (Lab().clock, Lab(clock="modelled").clock) == ("emulated", "modelled")
    with pytest.raises(BadInput, match="accel is 'kvm'"):
        Lab(accel="kvm", clock="modelled")
    with pytest.raises(BadInput, match="unknown clock 'mine'"):
        Lab(clock="mine")


def test_under_kvm_there_are_no_plugins(tmp_path):
    lab = Lab(accel="kvm", plugins=[tmp_path / "model.so"])
    assert lab.plugin_socket(tmp_path / "model.so") is None


def test_what_the_lab_runs_on_is_one_of_two():
    with pytest.raises(BadInput, match="'xen': use one of tcg, kvm"):
        Lab(accel="xen")


def test_kvm_without_a_guest_that_boots_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(needs, "kvm_boots", lambda kernel, qemu: (False, "/dev/kvm is missing or not ours to open"))
    with pytest.raises(BadInput, match=r"ACCEL=kvm can't work on this machine: /dev/kvm is missing .* leave ACCEL out"):
        needs.check_kvm(tmp_path, [])


def test_a_machine_that_does_not_run_says_its_last_words(tmp_path):
    machine = Machine(Image(tmp_path), Shape(), tmp_path)
    (tmp_path / "qemu.log").write_text("qemu: could not set up host forwarding\n")
    with pytest.raises(VsprofError, match="host forwarding"):
        machine.check_alive()


def test_the_console_is_its_last_lines(tmp_path):
    machine = Machine(Image(tmp_path), Shape(), tmp_path)
    assert machine.console() == ""
    machine.serial.write_text("\n".join(map(str, range(20))))
    assert machine.console(2) == "18\n19"


def test_programs_run_out_of_the_tree_by_its_own_loader(tmp_path):
    loader, option, libraries, program = Image(tmp_path).program("qemu-img")
    assert loader.startswith(str(tmp_path))
    assert option == "--library-path"
    assert libraries.startswith(str(tmp_path))
    assert program == str(tmp_path / "tree/usr/bin/qemu-img")
    assert "--preload /a/one.so /a/two.so" in " ".join(Image(tmp_path).program("qemu-img", [Path("/a/one.so"), Path("/a/two.so")]))


# --- Plug-ins of the emulator -------------------------------------------------------------------------------------

PLUGIN = Path("/plugins/uarch.so")


def started_with(tmp_path, monkeypatch, qemu: str, plugins=(PLUGIN,)):
    """A machine with plug-ins whose QEMU is this shell script, and the arguments that it was given."""
    machine = Machine(Image(tmp_path), Shape(), tmp_path, plugins)

    def program(image: Image, name: str, preload: Sequence[Path] = ()) -> list[str]:
        (tmp_path / "preloaded").write_text(" ".join(f"{path.name}->{path.readlink()}" for path in preload))
        return ["sh", "-c", f'echo "$@" > {tmp_path}/given; {qemu}', name]

    monkeypatch.setattr(Image, "program", program)
    return machine, (tmp_path / "given").read_text


def test_a_snapshot_is_resumed_with_the_plugins_each_with_its_socket(tmp_path, monkeypatch):
    machine, given = started_with(tmp_path, monkeypatch, "exit 1", [PLUGIN, Path("/a,b/other.so")])
    with pytest.raises(VsprofError):
        machine.start(tmp_path / "disk", boot=False)
    assert f"-plugin file={PLUGIN},control={tmp_path}/uarch.ctl" in given()
    assert f"-plugin file=/a,,b/other.so,control={tmp_path}/other.ctl" in given()
    assert "-sandbox on,spawn=deny" in given()
    # By names that hold neither a comma nor a space, which part the loader's list.
    assert (tmp_path / "preloaded").read_text() == f"preload0.so->{PLUGIN} preload1.so->/a,b/other.so"
    assert machine.plugin_socket(PLUGIN) == tmp_path / "uarch.ctl"


def test_a_machine_that_boots_for_a_snapshot_loads_none(tmp_path, monkeypatch):
    machine, given = started_with(tmp_path, monkeypatch, "echo Could not load plugin; exit 1")
    with pytest.raises(VsprofError) as failed:
        machine.start(tmp_path / "disk", boot=True)
    assert "-plugin" not in given()
    assert not isinstance(failed.value, PluginNotLoaded)


def test_without_plugins_nothing_is_asked_of_qemu(tmp_path, monkeypatch):
    machine, given = started_with(tmp_path, monkeypatch, "exit 1", ())
    with pytest.raises(VsprofError):
        machine.start(tmp_path / "disk", boot=False)
    assert "-plugin" not in given()


@pytest.mark.parametrize(
    "qemu",
    [
        f"echo 'qemu-system-x86_64: Could not load plugin {PLUGIN}: {PLUGIN}: cannot open shared object file: No such file'; exit 1",
        f"echo 'qemu-system-x86_64: Could not load plugin {PLUGIN}: plugin requires API version 9, but this QEMU supports only up to'; exit 1",
        f"echo 'qemu-system-x86_64: -plugin file={PLUGIN}: plugin interface not enabled in this build'; exit 1",
        "echo 'qemu-system-x86_64: -plugin: invalid option'; exit 1",
        "kill -SEGV $$",
        "echo 'uarch: out of memory'; kill -ABRT $$",
    ],
    ids=["missing", "another API", "QEMU without plug-ins", "QEMU of old", "a crash", "a crash with a word"],
)
def test_a_plugin_that_can_not_be_loaded_is_named(tmp_path, monkeypatch, qemu):
    machine, _ = started_with(tmp_path, monkeypatch, qemu)
    with pytest.raises(PluginNotLoaded, match=f"plug-in {PLUGIN}: .*--collectors"):
        machine.start(tmp_path / "disk", boot=False)


def test_of_two_plugins_the_one_at_fault_is_named(tmp_path, monkeypatch):
    machine, _ = started_with(tmp_path, monkeypatch, f"echo Could not load plugin {PLUGIN}: no; exit 1", [Path("/fine.so"), PLUGIN])
    with pytest.raises(PluginNotLoaded, match=f"plug-in {PLUGIN}: "):
        machine.start(tmp_path / "disk", boot=False)


@pytest.mark.parametrize("qemu", ["echo disk: not a qcow2 image; exit 1", "kill -KILL $$"])
def test_what_is_no_plugins_fault_is_not_put_on_it(tmp_path, monkeypatch, qemu):
    machine, _ = started_with(tmp_path, monkeypatch, qemu)
    with pytest.raises(VsprofError) as failed:
        machine.start(tmp_path / "disk", boot=False)
    assert not isinstance(failed.value, PluginNotLoaded)


@pytest.fixture
def no_emulator(temporary, monkeypatch):
    """Labs whose snapshot is there, and whose QEMU is never started."""
    monkeypatch.setattr(lab.needs, "for_running", lambda more_bytes: SimpleNamespace(check=lambda: None))
    monkeypatch.setattr(lab.images, "get", lambda say: Image(temporary))
    monkeypatch.setattr(lab.snapshot, "get", lambda image, shape, say: temporary)
    monkeypatch.setattr(lab.snapshot, "resume", lambda machine, state, disk: None)
    monkeypatch.setattr(lab.snapshot, "connect", lambda machine, seconds: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(lab.snapshot, "check", lambda channel, cpus: None)
    return temporary


def test_an_interrupt_while_the_lab_resumes_is_what_is_told(no_emulator, monkeypatch):
    """As of a run: it looks for logs on its way out, on a lab that never answered."""

    def interrupted(machine, seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(lab.snapshot, "connect", interrupted)
    with Lab() as host:
        with pytest.raises(KeyboardInterrupt):
            host.run("true")
        monkeypatch.setattr(lab.Machine, "check_alive", lambda machine: None)
        with pytest.raises(RunFailed, match="interrupted while it resumed"):
            host.run("tail *.log")
    assert not list(no_emulator.iterdir())


def test_a_lab_that_resumes_unsound_is_booted_again(no_emulator, monkeypatch):
    said: list[str] = []
    discarded: list[object] = []
    found = [["CPU 3 took 0 timer interrupts"], []]

    def check(channel, cpus):
        if faults := found.pop(0):
            raise testbeds_messages.lab_unsound(faults)

    monkeypatch.setattr(lab.snapshot, "check", check)
    monkeypatch.setattr(lab.snapshot, "discard", discarded.append)
    with Lab(say=said.append) as host:
        assert host.machine
        assert discarded == [no_emulator]
    assert "CPU 3 took 0 timer interrupts" in said[0]
    assert "booting again" in said[0]


def test_a_lab_is_booted_until_it_is_sound_and_not_for_ever(no_emulator, monkeypatch):
    said: list[str] = []
    boots: list[Path] = []

    def boot(image, shape, to):
        boots.append(to)
        if len(boots) < 3 or to.name == "never":
            raise testbeds_messages.lab_unsound([f"boot {len(boots)}"])

    monkeypatch.setattr(lab.snapshot, "boot_and_save", boot)
    lab.snapshot._boot_until_sound(Image(no_emulator), Shape(), no_emulator / "at last", said.append)
    assert len(boots) == 3
    assert "boot 1" in said[0]
    boots.clear()
    with pytest.raises(errors.LabUnsound, match=f"boot {lab.snapshot.BOOTS}"):
        lab.snapshot._boot_until_sound(Image(no_emulator), Shape(), no_emulator / "never", said.append)


@pytest.fixture
def kept(no_emulator, monkeypatch):
    """The states that labs were resumed from, and those that were saved, by the last part of their names."""
    resumed: list[str] = []

    def save(machine, channel, state):
        for part in ("state.bin", "disk.qcow2"):
            (state.parent / part).write_text("saved")

    monkeypatch.setenv("XDG_CACHE_HOME", str(no_emulator / "cache"))
    monkeypatch.setattr(lab.images, "get", lambda say: Image(no_emulator / "cache" / "lab" / "0123"))
    monkeypatch.setattr(lab.snapshot, "resume", lambda machine, state, disk: resumed.append(f"{state.name[-6:]}{' to keep' * bool(disk)}"))
    monkeypatch.setattr(lab.snapshot, "save", save)
    return resumed


def test_a_lab_begins_from_the_state_that_an_earlier_one_was_prepared_to(kept, no_emulator):
    plain, done = no_emulator.name[-6:], []
    for _ in range(2):
        with Lab() as host:
            assert host.prepared("vms-42", lambda: done.append("vms-42")) == host.process
            assert host.machine
    assert done == ["vms-42"]
    assert kept == [f"{plain} to keep", "vms-42", "vms-42"]


def test_a_lab_that_runs_already_is_prepared_itself(kept, no_emulator):
    done = []
    with Lab() as host:
        assert host.machine
        assert host.prepared("vms-42", lambda: done.append("vms-42")) is None
    assert (done, kept) == (["vms-42"], [no_emulator.name[-6:]])


def test_a_preparation_that_fails_keeps_nothing(kept):
    def fails():
        raise errors.RunFailed("guest1: its guest agent did not answer")

    done = []
    with Lab() as host:
        with pytest.raises(errors.RunFailed, match="guest1"):
            host.prepared("vms-42", fails)
        # Who looks for the reason finds the same lab.
        assert host.machine
        assert len(kept) == 1
    with Lab() as host:
        host.prepared("vms-42", lambda: done.append("vms-42"))
    assert done == ["vms-42"]


def test_a_kept_state_that_does_not_resume_is_made_again(kept, monkeypatch):
    said, done, broken = [], [], ["vms-42"]

    def resume(machine, state, disk):
        if state.name.endswith(broken[0]):
            broken[0] = "none"
            raise errors.RunFailed("the state does not load")

    with Lab() as host:
        host.prepared("vms-42", lambda: done.append("first"))
    monkeypatch.setattr(lab.snapshot, "resume", resume)
    with Lab(say=said.append) as host:
        host.prepared("vms-42", lambda: done.append("again"))
    assert done == ["first", "again"]
    assert "the state does not load" in said[0]


def test_a_lab_knows_the_sockets_of_its_plugins(no_emulator):
    with Lab(plugins=[PLUGIN]) as host:
        assert host.plugin_socket(PLUGIN) == host.machine.folder / "uarch.ctl"
        assert host.plugin_socket(Path("/other.so")) is None
        assert len(str(host.plugin_socket(PLUGIN))) < 107
    with Lab(2) as host:
        assert host.plugin_socket(PLUGIN) is None


def test_a_host_that_is_not_emulated_has_no_plugins():
    assert Testbed.plugin_socket(SimpleNamespace(), PLUGIN) is None


def test_a_plugin_that_can_not_be_loaded_costs_no_snapshot_and_leaves_nothing(no_emulator, monkeypatch):
    def resume(machine, state, disk):
        raise testbeds_messages.plugin_not_loaded([f"{PLUGIN}"], "no such file")

    said: list[str] = []
    discarded: list[object] = []
    monkeypatch.setattr(lab.snapshot, "resume", resume)
    monkeypatch.setattr(lab.snapshot, "discard", lambda *which: discarded.append(which))
    with pytest.raises(PluginNotLoaded), Lab(say=said.append, plugins=[PLUGIN]) as host:
        assert host.machine
    assert not discarded
    assert not said
    assert not list(no_emulator.iterdir())


# --- Instance folders --------------------------------------------------------------------------------------------


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_live_instance_is_never_stale(temporary):
    live = Instance()
    assert Instance.remove_stale() == []
    assert live.folder.exists()
    live.remove()
    assert not list(temporary.iterdir())


def test_the_folder_of_a_killed_process_is_stale(temporary):
    killed = Instance()
    killed._lock.close()
    assert Instance.remove_stale() == [killed.folder]
    assert not list(temporary.iterdir())


def test_folders_of_others_are_left_alone(temporary):
    (temporary / "other").mkdir()
    (temporary / "other" / "lock").touch()
    assert Instance.remove_stale() == []
    assert (temporary / "other").exists()


def test_the_path_of_a_socket_in_it_is_short_enough():
    live = Instance()
    assert len(str(live.folder / "s0.sock")) < 107
    live.remove()


# --- What this machine must have ---------------------------------------------------------------------------------


def test_a_machine_with_too_little_is_told_everything_at_once(monkeypatch, tmp_path):
    monkeypatch.setenv("VSPROF_CACHE", str(tmp_path / "not" / "there"))
    monkeypatch.setattr(needs, "available_memory", lambda: 1 << 30)
    monkeypatch.setattr(needs.shutil, "disk_usage", lambda folder: SimpleNamespace(free=2 << 30))
    monkeypatch.setattr(needs.shutil, "which", lambda name: None)
    monkeypatch.setattr(needs.platform, "machine", lambda: "aarch64")
    with pytest.raises(BadInput) as refused:
        needs.for_building().check()
    for word in ("1.0 GiB available, need 5.0 GiB", "2.0 GiB free", "VSPROF_CACHE", "mmdebstrap", "e2fsprogs", "aarch64"):
        assert word in str(refused.value)


def test_too_little_memory_alone_stops_a_run(monkeypatch):
    monkeypatch.setattr(needs, "available_memory", lambda: needs.NEEDED_MEMORY_BYTES - 1)
    with pytest.raises(BadInput, match="memory"):
        needs.for_running().check()
    monkeypatch.setattr(needs, "available_memory", lambda: needs.NEEDED_MEMORY_BYTES)
    needs.for_running().check()


def test_kvm_is_believed_only_when_it_can_be_opened(monkeypatch, tmp_path):
    monkeypatch.setattr(needs.os, "access", lambda path, mode: False)
    assert needs.kvm_boots(tmp_path, ["false"]) == (False, "/dev/kvm is missing or not ours to open")


@pytest.mark.parametrize(
    ("qemu", "boots"),
    [
        (["sh", "-c", "echo 'Kernel panic: Unable to mount root fs'"], True),
        (["sh", "-c", "echo 'failed to initialize kvm' >&2; exit 1"], False),
        (["sh", "-c", "sleep 5"], False),
        (["true"], False),
    ],
)
def test_kvm_is_believed_only_when_a_guest_booted(monkeypatch, tmp_path, qemu, boots):
    monkeypatch.setattr(needs.os, "access", lambda path, mode: True)
    found, words = needs.kvm_boots(tmp_path, qemu, seconds=0.3)
    assert found is boots
    assert words


# --- What tells one image from another ---------------------------------------------------------------------------


@pytest.fixture
def roles(tmp_path, monkeypatch):
    """A copy of ansible/ in the place of the project's."""
    copy = shutil.copytree(image.ANSIBLE, tmp_path / "ansible")
    monkeypatch.setattr(image, "ANSIBLE", copy)
    return copy


def test_the_same_inputs_are_the_same_image(roles):
    assert image.inputs_hash() == image.inputs_hash()
    assert len(image.inputs_hash()) == 16


def test_a_changed_role_is_another_image(roles):
    before = image.inputs_hash()
    with (roles / "roles/ovs_dpdk/defaults/main.yml").open("a") as file:
        file.write("# changed\n")
    assert image.inputs_hash() != before


def test_a_new_file_of_a_role_is_another_image(roles):
    before = image.inputs_hash()
    (roles / "roles/lab/files").mkdir(exist_ok=True)
    (roles / "roles/lab/files/new").write_text("x")
    assert image.inputs_hash() != before


def test_a_file_moved_from_one_role_to_another_is_another_image(roles):
    before = image.inputs_hash()
    (roles / "roles/kernel_ovs/tasks/main.yml").rename(roles / "kept")
    (roles / "roles/ovs_dpdk/tasks/main.yml").rename(roles / "roles/kernel_ovs/tasks/main.yml")
    (roles / "kept").rename(roles / "roles/ovs_dpdk/tasks/main.yml")
    assert image.inputs_hash() != before


def test_a_changed_source_of_the_dataplane_is_another_image(roles, tmp_path, monkeypatch):
    monkeypatch.setattr(tree, "DATAPLANE", tmp_path / "dataplane")
    (tmp_path / "dataplane" / "build").mkdir(parents=True)
    before = image.inputs_hash()
    (tmp_path / "dataplane" / "build" / "worker.o").write_bytes(b"compiled")
    assert image.inputs_hash() == before
    (tmp_path / "dataplane" / "worker.c").write_text("int x;")
    assert image.inputs_hash() != before


def test_the_image_depends_on_all_that_is_compiled_for_it():
    said = yaml.safe_load((image.ANSIBLE / "roles/vhost_switch/defaults/main.yml").read_text())
    assert said["vhost_switch_sources"] == [*tree.DATAPLANE_SOURCES]


def test_what_python_compiled_is_no_input(roles):
    before = image.inputs_hash()
    (roles / "plugins/connection/__pycache__").mkdir(exist_ok=True)
    (roles / "plugins/connection/__pycache__/new.pyc").write_bytes(b"x")
    assert image.inputs_hash() == before


def test_another_suite_is_another_image(roles, monkeypatch):
    before = image.inputs_hash()
    monkeypatch.setattr(image, "RECIPE", dataclasses.replace(image.RECIPE, suite="forky"))
    assert image.inputs_hash() != before


def test_what_only_other_releases_need_is_no_input(roles):
    before = image.inputs_hash()
    with (roles / "release.yml").open("a") as file:
        file.write("# changed\n")
    assert image.inputs_hash() == before
