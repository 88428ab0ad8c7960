# SPDX-License-Identifier: GPL-2.0-or-later
"""Which processor it is, and which folder has its events."""

from pathlib import Path

import pytest

from vsprof.collectors.events import catalogue, processor
from vsprof.collectors.events.processor import Processor
from vsprof.terms.errors import BadInput

CAPTURED = Path(__file__).with_name("captured")


def cpuinfo(vendor: str, family: int, model: int, stepping: int) -> str:
    keys = {"processor": 0, "vendor_id": vendor, "cpu family": family, "model": model, "model name": "A CPU", "stepping": stepping}
    return "".join(f"{key}\t: {value}\n" for key, value in keys.items())


def test_a_real_machine():
    seen = processor.identify((CAPTURED / "zen4.cpuinfo").read_text())
    assert seen == Processor("AuthenticAMD-25-11-1", "AMD EPYC")
    assert processor.folder_of(seen, catalogue.HERE) == "zen4"


# Families and models as perf's own mapfile and the kernel's sources have them.
@pytest.mark.parametrize(
    ("vendor", "family", "model", "stepping", "folder"),
    [
        ("GenuineIntel", 6, 0x3F, 2, "haswell-ep"),
        ("GenuineIntel", 6, 0x3C, 3, "generic"),  # Haswell for desktops
        ("GenuineIntel", 6, 0x55, 4, "skylake-sp"),
        ("GenuineIntel", 6, 0x55, 7, "cascadelake-sp"),
        ("GenuineIntel", 6, 0x55, 11, "cascadelake-sp"),  # Cooper Lake, which Intel's and perf's lists have with it
        ("GenuineIntel", 6, 0x6A, 6, "icelake-sp"),
        ("GenuineIntel", 6, 0x6C, 1, "icelake-sp"),  # Ice Lake-D
        ("GenuineIntel", 6, 0x8F, 8, "sapphire-rapids"),
        ("GenuineIntel", 6, 0xCF, 2, "emerald-rapids"),
        ("GenuineIntel", 6, 0xAD, 1, "granite-rapids"),
        ("GenuineIntel", 6, 0xAE, 1, "granite-rapids"),  # Granite Rapids-D
        ("GenuineIntel", 6, 0xAF, 3, "generic"),  # Sierra Forest: other cores
        ("AuthenticAMD", 23, 0x01, 2, "generic"),  # Naples, Zen
        ("AuthenticAMD", 23, 0x08, 2, "generic"),  # Zen+
        ("AuthenticAMD", 23, 0x31, 0, "zen2"),  # Rome
        ("AuthenticAMD", 23, 0x71, 0, "zen2"),  # Matisse
        ("AuthenticAMD", 25, 0x01, 1, "zen3"),  # Milan
        ("AuthenticAMD", 25, 0x21, 0, "zen3"),  # Vermeer
        ("AuthenticAMD", 25, 0x50, 0, "zen3"),  # Cezanne
        ("AuthenticAMD", 25, 0x11, 1, "zen4"),  # Genoa
        ("AuthenticAMD", 25, 0x61, 2, "zen4"),  # Raphael
        ("AuthenticAMD", 25, 0xA0, 1, "zen4"),  # Bergamo
        ("AuthenticAMD", 26, 0x02, 1, "zen5"),  # Turin
        ("AuthenticAMD", 26, 0x11, 0, "zen5"),  # Turin Dense: Zen 5c
        ("AuthenticAMD", 26, 0x44, 0, "zen5"),  # Granite Ridge
        ("AuthenticAMD", 26, 0x50, 0, "generic"),  # Zen 6
        ("HygonGenuine", 24, 0x00, 1, "generic"),
    ],
)
def test_folders(vendor, family, model, stepping, folder):
    assert processor.folder_of(processor.identify(cpuinfo(vendor, family, model, stepping)), catalogue.HERE) == folder


@pytest.mark.parametrize("midr", ["0x00000000413fd0c1\n", "0x410fd0c0"])
def test_an_arm_core_by_its_register(midr):
    seen = processor.identify("", midr)
    assert seen.id == "0x00000000410fd0c0"
    assert processor.folder_of(seen, catalogue.HERE) == "neoverse-n1"


# Parts and revisions: 0xd40 is V1, 0xd49 N2, 0xd4f V2.
@pytest.mark.parametrize(
    ("midr", "folder"),
    [
        ("0x00000000411fd402", "neoverse-v1"),
        ("0x00000000410fd490", "neoverse-n2-r0p2"),
        ("0x00000000410fd492", "neoverse-n2-r0p2"),
        ("0x00000000410fd493", "neoverse-n2"),
        ("0x00000000411fd490", "neoverse-n2"),
        ("0x00000000410fd4f1", "neoverse-v2"),
        ("0x00000000410fd8e0", "generic"),  # N3
    ],
)
def test_an_arm_core_by_its_revision(midr, folder):
    seen = processor.identify("", midr)
    assert seen.midr == midr
    assert processor.folder_of(seen, catalogue.HERE) == folder
    implementer, variant, part, revision = int(midr[-8:-6], 16), int(midr[-6], 16), int(midr[-4:-1], 16), int(midr[-1], 16)
    keys = {"implementer": hex(implementer), "variant": hex(variant), "part": hex(part), "revision": revision}
    assert processor.identify("".join(f"CPU {key}\t: {value}\n" for key, value in keys.items())) == seen


def test_an_arm_core_by_cpuinfo():
    text = "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n"
    assert processor.identify(text).id == "0x00000000410fd0c0"
    assert processor.folder_of(processor.identify(text.replace("0xd0c", "0xd8e")), catalogue.HERE) == "generic"


@pytest.mark.parametrize("text", ["", "vendor_id: AuthenticAMD\n", "CPU part: 0xd0c\n", "cpu family: x\nmodel: 1\nstepping: 1\n", "²: ²"])
def test_what_says_nothing_is_unknown(text):
    seen = processor.identify(text)
    assert seen.id == processor.UNKNOWN
    assert processor.folder_of(seen, catalogue.HERE) == "generic"


def test_the_kernels_name_of_the_pmu(tmp_path):
    assert processor.core_pmu(tmp_path / "none") == "cpu"
    for name in ("armv8_pmuv3_0", "software", "tracepoint"):
        (tmp_path / name).mkdir()
    assert processor.core_pmu(tmp_path) == "armv8_pmuv3_0"


def test_errors_of_the_mapfile_name_the_line(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / processor.MAPFILE).write_text(
        "Family-model,Version,Filename,EventType\na,b\n(,v1,there,core\n.+,v1,gone,core\n.+,v1,there,core\n"
    )
    with pytest.raises(BadInput) as error:
        processor.mapping(tmp_path)
    lines = str(error.value).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["line 2", "line 3", "line 4"]
    assert "found 2 columns" in lines[0]
    assert "no regular expression" in lines[1]
    assert "no folder gone" in lines[2]


def test_a_mapfile_that_is_not_there(tmp_path):
    with pytest.raises(BadInput, match=r"mapfile\.csv: can't be read"):
        processor.mapping(tmp_path)
