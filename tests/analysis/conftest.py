# SPDX-License-Identifier: GPL-2.0-or-later
"""Synthetic results as fixtures."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from vsprof.analysis.load import Result, load


def _sample(name: str = "sample") -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"vsprof_synthetic_{name}", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def sample() -> ModuleType:
    return _sample()


@pytest.fixture(scope="session")
def pmu_sample() -> ModuleType:
    return _sample("pmu_sample")


@pytest.fixture(scope="session")
def validation_sample() -> ModuleType:
    return _sample("validation_sample")


@pytest.fixture(scope="session")
def time_sample() -> ModuleType:
    return _sample("time_sample")


@pytest.fixture(scope="session")
def vhost_sample() -> ModuleType:
    return _sample("vhost_sample")


@pytest.fixture(scope="session")
def numa_sample() -> ModuleType:
    return _sample("numa_sample")


@pytest.fixture(scope="session")
def causes_sample() -> ModuleType:
    return _sample("causes_sample")


@pytest.fixture(scope="session")
def growth_sample() -> ModuleType:
    return _sample("growth_sample")


@pytest.fixture(scope="session")
def what_if_sample() -> ModuleType:
    return _sample("what_if_sample")


@pytest.fixture(scope="session")
def staged(sample: ModuleType, vhost_sample: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """SYNTHETIC: vhost-switch alone, copying and not, at two frame sizes, with idle traffic; its stages counted."""
    path = tmp_path_factory.mktemp("staged") / "zero-copy"
    options, traffics = {"dequeue": ("copy", "zero-copy")}, [("udp_flood", "saturation"), sample.IDLE]
    sample.write(path, accesses=("vhost-user",), frames=(64, 1518), traffics=traffics, options=options)
    return load(vhost_sample.change(path))


@pytest.fixture(scope="session")
def counted(sample: ModuleType, pmu_sample: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """SYNTHETIC: as two_switches, with idle traffic, and counted by a PMU."""
    path = sample.write(tmp_path_factory.mktemp("counted") / "vm2vm", traffics=[*sample.TRAFFICS, sample.IDLE], windows=pmu_sample.WINDOWS)
    return load(pmu_sample.add(path))


@pytest.fixture(scope="session")
def two_switches(sample: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """SYNTHETIC: kernel OVS and OVS-DPDK, three repetitions."""
    return load(sample.write(tmp_path_factory.mktemp("two") / "vm2vm"))


@pytest.fixture(scope="session")
def three_accesses(sample: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """SYNTHETIC: virtio-net, vhost-net, vhost-user."""
    return load(sample.write(tmp_path_factory.mktemp("three") / "acc", accesses=("virtio-net", "vhost-net", "vhost-user")))


@pytest.fixture(scope="session")
def probed(sample: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """SYNTHETIC: single frames, and a restart that only OVS-DPDK comes back from."""
    path = tmp_path_factory.mktemp("probed") / "vm2vm"
    return load(sample.write(path, traffics=[sample.PACED, sample.RESTART, sample.IDLE]))


@pytest.fixture(scope="session")
def searched(sample: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """SYNTHETIC: no-drop and partial-drop rates of three accesses; virtio-net has none."""
    path = tmp_path_factory.mktemp("searched") / "no-drop"
    return load(sample.write(path, accesses=("virtio-net", "vhost-net", "vhost-user"), traffics=[*sample.SEARCHED, sample.IDLE]))


@pytest.fixture(scope="session")
def modelled(sample: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """SYNTHETIC: as two_switches, with idle traffic and windows of the modelled processor."""
    path = tmp_path_factory.mktemp("modelled") / "vm2vm"
    return load(sample.write(path, traffics=[*sample.TRAFFICS, sample.IDLE], own="uarch_model"))
