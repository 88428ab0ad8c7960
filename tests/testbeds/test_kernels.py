# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of other Debian suites: what tells one from another, what is made of a package, which testbed boots which."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from vsprof.terms import errors
from vsprof.testbeds import lab as labs
from vsprof.testbeds.base import KERNELS, RELEASES
from vsprof.testbeds.emulator import image, kernels, needs, snapshot, tree
from vsprof.testbeds.emulator.kernels import Kernel
from vsprof.testbeds.emulator.machine import Machine, Shape
from vsprof.testbeds.lab import Lab
from vsprof.testbeds.native import Native

OTHERS = KERNELS[1:]
BACKPORTS = "trixie-backports"


def kernel(folder: Path, suite: str = BACKPORTS, version: str = "7.3.4-1~bpo13+1", builder: str = "0123456789abcdef") -> Kernel:
    place = folder / f"kernel-{suite}-{builder}"
    place.mkdir(exist_ok=True)
    (place / "version").write_text(f"7.3.4+deb13-amd64 {version}\n")
    return Kernel(suite, place)


def test_the_first_kernel_is_that_of_the_labs_own_release():
    assert KERNELS[0] == RELEASES[0] == tree.LAB_SUITE


def test_each_suite_has_its_own_files_and_what_makes_them_counts(monkeypatch, tmp_path):
    assert len({kernels.inputs_hash(suite) for suite in OTHERS}) == len(OTHERS)
    before = kernels.inputs_hash(BACKPORTS)
    (pack := tmp_path / "pack").write_text(kernels.PACK.read_text() + "# changed\n")
    monkeypatch.setattr(kernels, "PACK", pack)
    assert kernels.inputs_hash(BACKPORTS) != before


@pytest.mark.parametrize("suite", OTHERS)
def test_a_hook_is_a_script_that_a_shell_understands(suite, tmp_path):
    made = kernels.recipe(suite)
    for script in (made._roles_hook({}), *(option.removeprefix("--setup-hook=") for option in made.options if "setup-hook" in option)):
        checked = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ("deb http://mirror/debian trixie main\n", "deb http://mirror/debian trixie-backports main\n"),
        ("deb [trusted=yes] http://mirror/trixie trixie main\n", "deb [trusted=yes] http://mirror/trixie trixie-backports main\n"),
        (
            "deb http://mirror/debian trixie main\ndeb http://mirror/debian trixie-updates main\ndeb http://other/ trixie-security main\n",
            "deb http://mirror/debian trixie-backports main\n",
        ),
    ],
)
def test_backports_come_from_the_mirror_of_all_else(tmp_path, given, added):
    made = kernels.recipe(BACKPORTS)
    assert made.suite == "trixie"
    assert any(BACKPORTS in option and "Default-Release" in option for option in made.options)
    (tmp_path / "etc/apt/sources.list.d").mkdir(parents=True)
    (tmp_path / "etc/apt/sources.list").write_text(given)
    hook = next(option for option in made.options if "setup-hook" in option).removeprefix("--setup-hook=")
    subprocess.run(["sh", "-c", hook, "exec", str(tmp_path)], check=True)
    assert (tmp_path / f"etc/apt/sources.list.d/{BACKPORTS}.list").read_text() == added
    assert "virtio_blk" in (tmp_path / "etc/initramfs-tools/hooks/vsprof").read_text()
    assert kernels.recipe("bookworm").suite == "bookworm"
    assert not any("Default-Release" in option for option in kernels.recipe("bookworm").options)


def test_the_initramfs_puts_modules_and_the_guests_kernel_on_the_labs_disk(tmp_path):
    subprocess.run(["sh", "-c", kernels.CONFIGURE, "exec", str(tmp_path)], check=True)
    script = tmp_path / "etc/initramfs-tools/scripts/local-bottom/vsprof"
    root, carried = tmp_path / "root", tmp_path / "vsprof-kernel"
    for folder in (root / "usr/lib/modules/6.12", root / "var/lib/vsprof/guest", carried / "modules/7.3"):
        folder.mkdir(parents=True)
    (guest := root / "var/lib/vsprof/guest/guest.cpio").write_text("lab's,")
    for name, text in {"vmlinux": "7.3", "guest.cpio": "7.3's", "modules/7.3/modules.dep": ""}.items():
        (carried / name).write_text(text)
    text = script.read_text().replace("/vsprof-kernel", str(carried))
    subprocess.run(["sh", "-c", text], env={"rootmnt": str(root), "PATH": "/usr/bin:/bin"}, check=True)
    assert sorted(path.name for path in (root / "usr/lib/modules").iterdir()) == ["6.12", "7.3"]
    assert (root / "var/lib/vsprof/guest/vmlinux").read_text() == "7.3"
    # Of what is in both, a kernel takes the later.
    assert guest.read_text() == "lab's,7.3's"
    assert not carried.exists()
    # mkinitramfs asks each script what must come before it.
    assert subprocess.run([str(script), "prereqs"], capture_output=True, check=True).stdout == b""


DEPENDENCIES = """
kernel/arch/x86/kvm/kvm-amd.ko.xz: kernel/drivers/crypto/ccp/ccp.ko.xz kernel/virt/lib/irqbypass.ko.xz
kernel/drivers/crypto/qat/qat.ko.xz:
kernel/drivers/net/tun.ko.xz:
kernel/drivers/net/ethernet/intel/igb/igb.ko.xz: kernel/drivers/dca/dca.ko.xz
kernel/drivers/net/ethernet/sun/niu.ko.xz:
kernel/drivers/net/wireless/ath/ath.ko.xz: kernel/net/wireless/cfg80211.ko.xz
kernel/net/core/failover.ko.xz:
kernel/sound/core/snd.ko.xz:
"""


def test_modules_come_with_what_they_need_and_without_drivers_of_other_hardware(tmp_path):
    (tmp_path / "modules.dep").write_text(DEPENDENCIES.lstrip())
    [choice] = [line for line in kernels.recipe("forky")._roles_hook({}).splitlines() if "modules.dep" in line]
    command = choice.replace("/wanted", f"{tmp_path}/wanted")
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    assert {Path(name).name.partition(".")[0] for name in (tmp_path / "wanted").read_text().split()} == {
        "kvm-amd", "ccp", "irqbypass", "tun", "igb", "dca", "failover",
    }  # fmt: skip


@pytest.mark.parametrize(("what", "function"), [("memory", "available_memory"), ("disk", "free_disk")])
def test_too_little_of_something_is_said_before_anything_is_fetched(monkeypatch, tmp_path, what, function):
    monkeypatch.setenv("VSPROF_CACHE", str(tmp_path))
    monkeypatch.setattr(needs, function, lambda: 100 << 20)
    kernels.path.cache_clear()
    with pytest.raises(errors.BadInput, match=rf"{what}: 0\.1 GiB.*need"):
        kernels.get(BACKPORTS, print)
    assert not list(tmp_path.glob("lab/*.partial"))
    kernels.path.cache_clear()


def test_a_kernel_that_the_mirror_lacks_is_said_with_the_next_move(monkeypatch, tmp_path):
    (log := tmp_path / "lab/build-kernel-forky.log").parent.mkdir()
    log.write_text("E: Unable to locate package linux-image-amd64\n")
    monkeypatch.setenv("VSPROF_CACHE", str(tmp_path))
    monkeypatch.setattr(tree.Recipe, "_try", lambda self, *_: False)
    with pytest.raises(errors.VsprofError, match=r"(?s)kernel of Debian forky is unavailable.*`kernel`.*VSPROF_MIRROR.*Unable to locate"):
        kernels._build("forky", tmp_path, lambda text: None)


# --- In the lab


def test_a_machine_boots_the_kernel_of_its_shape(tmp_path):
    own = SimpleNamespace(tree=tmp_path, kernel=tmp_path / "vmlinux", initrd=tmp_path / "initrd")
    other = kernel(tmp_path)
    assert Machine(own, Shape(), tmp_path)._kernel()[1:4:2] == [str(own.kernel), str(own.initrd)]
    booted = Machine(own, Shape(kernel=other), tmp_path)._kernel()
    assert booted[1:4:2] == [str(other.vmlinux), str(other.initrd)]
    assert booted[4:] == Machine(own, Shape(), tmp_path)._kernel()[4:]


def test_each_kernel_has_its_own_snapshot_and_the_labs_own_keeps_its_name(tmp_path):
    own = image.Image(tmp_path / "image")
    shapes = [Shape(kernel=kernel(tmp_path, builder=builder)) for builder in ("0123456789abcdef", "fedcba9876543210")]
    assert len({snapshot.folder(own, shape).name for shape in [Shape(), *shapes]}) == 3
    assert snapshot.folder(own, Shape()).name == f"image-4cpus-4096MiB-{snapshot.RECIPE}"
    assert kernel(tmp_path).release == "7.3.4+deb13-amd64"
    assert snapshot.folder(own, Shape(kernel=kernel(tmp_path))).name == (
        f"image-4cpus-4096MiB-linux-7.3.4-1~bpo13+1-89abcdef-{snapshot.RECIPE}"
    )
    # The kernel of a suite moves on.
    assert "7.3.5" in snapshot.folder(own, Shape(kernel=kernel(tmp_path, version="7.3.5-1~bpo13+1"))).name


@pytest.fixture
def lab(monkeypatch, tmp_path):
    monkeypatch.setattr(labs.kernels, "get", lambda suite, say: kernel(tmp_path, suite))
    return Lab()


@pytest.mark.parametrize("suite", OTHERS)
def test_the_lab_boots_another_kernel(lab, suite):
    assert lab.kernel_lacking(suite) is None
    lab.boot(suite)
    assert lab._shape.kernel.suite == suite


def test_the_labs_own_kernel_needs_nothing(monkeypatch):
    monkeypatch.setattr(labs.kernels, "get", lambda suite, say: pytest.fail("it was fetched"))
    lab = Lab()
    assert lab.kernel_lacking(KERNELS[0]) is None
    lab.boot(KERNELS[0])
    assert lab._shape == Lab()._shape


# --- On a host that is none


def test_another_host_runs_the_kernel_that_it_runs(monkeypatch):
    host = Native()
    monkeypatch.setattr(host, "run", lambda command: SimpleNamespace(stdout="6.18.5\n"))
    for suite in KERNELS:
        said = host.kernel_lacking(suite)
        assert "6.18.5" in said
        assert suite in said
        assert "TESTBED=lab" in said
