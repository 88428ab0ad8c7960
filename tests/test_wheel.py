# SPDX-License-Identifier: GPL-2.0-or-later
"""The wheel: built, installed beside nothing of the clone, and used from a folder of its own."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from vsprof.terms import places

RUN_SECONDS = 900
"""Many times what it takes."""
SMALLEST = """
question: Does an installed vsprof measure?
notebook: vm2vm
fixed: {topology: vm2vm, switch: kernel-ovs, access: vhost-net, frame_bytes: 64, flows: 1}
traffic: [{kind: idle}]
windows: {warmup_seconds: 0, modelled_seconds: 0.005}
repetitions: 1
"""
NAMES = ("analysis", "bench", "collectors", "runner", "switches", "terms", "testbeds", "workloads")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built as pip builds it from a clone, with the build tool that is pinned."""
    out = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(out),
        str(places.ROOT),
    ]
    subprocess.run(command, check=True, timeout=300)
    [built] = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The folder of an environment that has the wheel, and of the clone's environment nothing but the libraries."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    place = folder / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place), str(wheel)]
    subprocess.run(command, check=True, timeout=120)
    # A folder that a .pth names is searched, but its own .pth files, which lead to the clone, are not read.
    (place / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    # Libraries keep data there: nbconvert its templates.
    (folder / "share").symlink_to(Path(sys.prefix) / "share")
    return folder


@pytest.fixture(scope="module")
def complete(wheel, tmp_path_factory) -> Path:
    """An environment as `pipx install` makes one, of nothing but the wheel and what that says it needs; at the versions that are pinned."""
    folder = tmp_path_factory.mktemp("complete")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    pins = folder / "pins.txt"
    # Without their hashes, which pip would want of the wheel, too.
    lines = (places.ROOT / "requirements.txt").read_text().splitlines()
    pins.write_text("\n".join(line.removesuffix(" \\") for line in lines if line[:1].isalnum()))
    # Compiling all of it takes longer than running the little that is run.
    command = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-compile"]
    subprocess.run([*command, "--constraint", str(pins), str(wheel)], check=True, timeout=RUN_SECONDS)
    return folder


def vsprof(installed: Path, place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``vsprof`` of the installation, called from the folder ``place``."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VSPROF"))}
    command = [str(installed / "bin" / "python"), "-m", "vsprof.runner.entry", *arguments]
    return subprocess.run(
        command,
        cwd=place,
        env={**environment, "VSPROF_CACHE": str(place / "cache")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_it_has_all_that_the_repository_has_for_users(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(["git", "-C", str(places.ROOT), "ls-files"], capture_output=True, text=True, check=False).stdout.split()
    if not tracked:
        pytest.skip("this is no git repository, so what belongs to it is not known")
    wanted = {
        f"vsprof/{name}"
        for name in tracked
        if name.startswith((*(f"{one}/" for one in NAMES), "experiments/", "notebooks/", "ansible/", "dataplane/"))
    }
    assert not wanted - inside
    assert {"vsprof/__init__.py"} <= inside
    assert any(name.endswith("licenses/LICENSE") for name in inside)
    # Nothing that could be anybody's.
    assert {name.partition("/")[0] for name in inside} == {"vsprof", f"vsprof-{wheel.name.split('-')[1]}.dist-info"}


def test_it_runs_from_any_folder_and_has_its_own_experiments(installed, tmp_path):
    said = vsprof(installed, tmp_path, "list", "--json")
    assert said.returncode == 0, said.stderr
    listed = {one["name"] for one in json.loads(said.stdout)}
    assert {path.stem for path in (places.ROOT / "experiments").glob("*.yaml")} <= listed


@pytest.mark.long
def test_it_builds_the_model_and_reads_its_own_files(installed, tmp_path):
    code = (
        "import vsprof.terms.places as p; from vsprof.collectors.uarch_model import UarchModel as m; m.build();"
        "from vsprof.testbeds.emulator import image, tree; from vsprof.testbeds import inventory;"
        "print(p.IN_CLONE, m.emulator_plugin, m.emulator_plugin.is_file(), image.ANSIBLE.is_dir(), tree.DATAPLANE.is_dir(), p.RESULTS)"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = [str(installed / "bin" / "python"), "-c", code]
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert said.returncode == 0, said.stderr
    built = tmp_path / ".cache" / "vsprof" / "build" / "uarch_model" / "uarch_model.so"
    assert said.stdout.split() == ["False", str(built), "True", "True", "True", str(tmp_path / "results")]


@pytest.mark.long
def test_it_makes_the_report_of_a_result_elsewhere(installed, tmp_path):
    result = tmp_path / "results" / "one"
    result.mkdir(parents=True)
    for name in ("manifest.json", "measurements.parquet", "functions.parquet"):
        (result / name).write_bytes((places.ROOT / "results" / "reference" / name).read_bytes())
    said = vsprof(installed, tmp_path, "report", "one")
    assert said.returncode == 0, said.stderr
    assert "VM to VM" in (result / "report.html").read_text()


@pytest.mark.long
def test_a_folder_of_ones_own_plug_ins_needs_no_change_to_the_installation(installed, tmp_path):
    own = tmp_path / "vsprof.d" / "experiments"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text((places.ROOT / "experiments" / "vm2vm.yaml").read_text())
    said = vsprof(installed, tmp_path, "list", "--json")
    assert said.returncode == 0, said.stderr
    assert "mine" in {one["name"] for one in json.loads(said.stdout)}


@pytest.mark.long
@pytest.mark.lab
def test_what_pip_installs_measures_in_the_lab(lab_can_run, complete, tmp_path):
    """From a folder of its own, with the image that the clone's tests use: both come from the same files."""
    (tmp_path / "one.yaml").write_text(SMALLEST)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {
        "VSPROF_RESULTS": str(tmp_path / "results")
    }
    command = [str(complete / "bin" / "vsprof"), "run", "one.yaml", "--testbed", "lab", "--no-report"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "building the lab's image" not in ran.stdout + ran.stderr
    [result] = (tmp_path / "results").glob("*-one")
    assert json.loads((result / "manifest.json").read_text())["status"] == "complete"
