# SPDX-License-Identifier: GPL-2.0-or-later
"""From addresses to functions: the kernel's list, the maps of processes, and real programs, one of them compiled and stripped here."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from vsprof.collectors.uarch_model import processes, symbols
from vsprof.collectors.uarch_model.processes import Processes
from vsprof.collectors.uarch_model.spots import KINDS, Spots

KALLSYMS = """\
ffffffff81000000 _stext
ffffffff81001000 __switch_to
ffffffff81a00000 ip_rcv_core
ffffffffc0300000 ovs_dp_process_packet [openvswitch]
ffffffffc0310000 vhost_net_open [vhost_net]
"""
MAPS = """\
/proc/1/maps:55d0c0001000-55d0c0002000 r-xp 00001000 fe:00 131                        /usr/sbin/init
/proc/652/maps:7f0000001000-7f0000003000 r-xp 00001000 fe:00 132                        /usr/lib/librte_vhost.so.25.0
/proc/652/maps:7f0000010000-7f0000011000 r-xp 00000000 00:00 0
/proc/652/maps:7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
/proc/652/maps:7f0000020000-7f0000021000 r-xp 00000000 fe:00 133                        /opt/my programs/x (deleted)
---
/proc/1/task/1
/proc/652/task/652
/proc/652/task/660
"""


class Host:
    """A host that knows its kernel's list, and whose files lie in a folder."""

    def __init__(self, files: Path | None = None, kallsyms: str = KALLSYMS) -> None:
        self.file = lambda path: None if files is None else files / path.removeprefix("/")
        self.run = lambda command: SimpleNamespace(stdout=kallsyms)
        self.remembered = lambda question, ask: ask()


# --- The kernel


def test_the_kernels_functions_and_those_of_modules():
    table = symbols.kernel_table(KALLSYMS)
    assert table.find(0xFFFFFFFF81001000) == ("kernel", "__switch_to")
    assert table.find(0xFFFFFFFF819FFFFF) == ("kernel", "__switch_to")
    assert table.find(0xFFFFFFFFC0300123) == ("openvswitch", "ovs_dp_process_packet")
    assert table.find(0xFFFFFFFF80FFFFFF) is None


def test_an_empty_table_knows_nothing():
    assert symbols.kernel_table("").find(0xFFFFFFFF81001000) is None
    assert symbols.Table([], []).find(0) is None


def test_what_is_no_kallsyms_is_refused():
    with pytest.raises(ValueError):  # noqa: PT011
        symbols.kernel_table("awk: cannot open /proc/kallsyms\n")


# --- Programs

SOURCE = """
__attribute__((noinline)) static int hidden(int x) { return x * 3 + 1; }
__attribute__((noinline)) int shown(int x) { return hidden(x) + 2; }
int main(int count, char **words) { (void)words; return shown(count) == 7; }
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A stripped program that is loaded at 4 MiB and exports one function; and where its functions were before it was stripped."""
    if not shutil.which("gcc") or not shutil.which("strip"):
        pytest.skip("needs gcc and binutils: make setup installs them")
    folder = tmp_path_factory.mktemp("programs")
    (folder / "small.c").write_text(SOURCE)
    command = ["gcc", "-O1", "-fno-inline", "-no-pie", "-rdynamic", "-Wl,-Ttext-segment=0x400000", "-o", "small", "small.c"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    listed = subprocess.run(["nm", "small"], cwd=folder, capture_output=True, text=True, check=True, timeout=60).stdout
    subprocess.run(["strip", "small"], cwd=folder, check=True, timeout=60)
    words = [line.split() for line in listed.splitlines()]
    return folder / "small", {fields[2]: int(fields[0], 16) for fields in words if len(fields) == 3}


LOADED_AT = 0x400000


def test_an_exported_function_has_its_name(compiled):
    path, addresses = compiled
    table = symbols.program(path)
    assert table.find(addresses["shown"] - LOADED_AT) == ("small", "shown")
    assert table.find(addresses["shown"] - LOADED_AT + 1) == ("small", "shown")


def test_a_function_without_a_name_is_told_by_its_begin(compiled):
    path, addresses = compiled
    name = ("small", f"small+{addresses['hidden']:#x}")
    table = symbols.program(path)
    assert table.find(addresses["hidden"] - LOADED_AT) == name
    assert table.find(addresses["hidden"] - LOADED_AT + 2) == name


def test_a_real_program_of_debian_or_another_system():
    table = symbols.program(Path("/usr/bin/env").resolve())
    assert len(table.begins) > 20
    assert table.begins == sorted(set(table.begins))


@pytest.mark.parametrize(
    "content", [b"", b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(9), b"\x7fELF\x02\x01\x01" + b"\xff" * 200]
)
def test_what_is_no_program_has_no_functions(tmp_path, content):
    path = tmp_path / "none"
    path.write_bytes(content)
    assert symbols.program(path).begins == []


def test_a_program_that_is_gone_has_no_functions(tmp_path):
    assert symbols.program(tmp_path / "gone").begins == []
    assert symbols.program(tmp_path).begins == []


def test_a_program_cut_short_is_no_error(compiled, tmp_path):
    content = compiled[0].read_bytes()
    for number, length in enumerate(range(0, len(content), 509)):
        path = tmp_path / f"cut{number}"
        path.write_bytes(content[:length])
        symbols.program(path)


# --- All together


@pytest.fixture
def tree(compiled, tmp_path):
    """A host's files: the program in the place of DPDK's library, and the way to its functions' addresses where it is mapped."""
    path, addresses = compiled
    (tmp_path / "usr/lib").mkdir(parents=True)
    shutil.copy(path, tmp_path / "usr/lib/librte_vhost.so.25.0")
    part = Processes(MAPS).maps[652][0]
    return tmp_path, {name: part.begin + address - LOADED_AT - part.offset for name, address in addresses.items()}


def test_places_of_a_function_where_its_library_is_mapped(tree):
    folder, at = tree
    maps = Processes(MAPS).maps
    found = symbols.Symbols(Host(folder))
    ((begin, end),) = found.places("shown", "librte_vhost.so", maps)
    assert begin == at["shown"]
    # Up to whatever function comes next, the last one up to the mapping's end.
    behind = [address for address in at.values() if address > begin]
    assert begin < end <= min(behind, default=maps[652][0].end)
    assert found.places("not_there", "librte_vhost.so", maps) == []
    assert found.places("shown", "librte_other.so", maps) == []


def test_no_places_without_the_hosts_files():
    maps = Processes(MAPS).maps
    assert symbols.Symbols(Host()).places("shown", "librte_vhost.so", maps) == []


def spots(*rows) -> list[Spots]:
    """Of a window with one core."""
    return [Spots.of({"dropped": 0, "spots": [[f"{address:x}", *more, 0] for address, *more in rows]})]


ONE, MISSED = [1, 2, 0, 0, 0, 0, 0, 3], [0, 3, 0, 0, 0, 0, 0, 0]


def named(cores, files=None):
    return [(f["object"], f["function"], f["mode"]) for f in symbols.Symbols(Host(files)).functions(cores, Processes(MAPS))]


@pytest.mark.parametrize(
    ("address", "thread", "mode", "expected"),
    [
        (0xFFFFFFFF81001010, 652, 0, ("kernel", "__switch_to")),
        (0xFFFFFFFFC0310010, 652, 0, ("vhost_net", "vhost_net_open")),
        (0xFFFFFFFF80000000, 652, 0, ("kernel", "0xffffffff80000000")),
        (0xFFFFFFFF81001010, 668, 2, ("guest kernel", "__switch_to")),
        (0xFFFFFFFFC0310010, 668, 2, ("guest kernel modules", "(unknown)")),
        (0x7F0000001500, 668, 3, ("guest programs", "(unknown)")),
        (0x7F0000010010, 660, 1, ("code without a file", "(unknown)")),
        (0x7FFD00000010, 660, 1, ("[vdso]", "(unknown)")),
        (0x7F0000020010, 660, 1, ("x (deleted)", "(unknown)")),
        (0x7F0000090000, 660, 1, ("programs that ended", "(unknown)")),
        (0x7F0000090000, 999, 1, ("programs that ended", "(unknown)")),
        # A thread that is not known: whoever has the address mapped.
        (0x7FFD00000010, 999, 1, ("[vdso]", "(unknown)")),
        (0x7FFD00000010, -1, 1, ("[vdso]", "(unknown)")),
    ],
)
def test_where_an_address_lies(tmp_path, address, thread, mode, expected):
    assert named(spots((address, thread, mode, *ONE)), tmp_path) == [(*expected, symbols.MODES[mode])]


def test_a_program_of_the_host_by_any_thread_of_its_process(tree):
    folder, at = tree
    cores = spots((at["shown"], 660, 1, *ONE), (at["shown"] + 1, 660, 1, *ONE), (at["hidden"], 652, 1, *MISSED))
    first, second = symbols.Symbols(Host(folder)).functions(cores, Processes(MAPS))
    expected = {"core": 0, "thread": 660, "mode": "host_user", "object": "librte_vhost.so.25.0", "function": "shown"}
    assert first == {**expected, "samples": 2, "l1d_misses": 4, "branch_misses": 6}
    assert second["thread"] == 652
    assert second["function"].startswith("librte_vhost.so.25.0+0x")
    assert "samples" not in second
    assert second["l1d_misses"] == 3


def test_without_the_hosts_files_a_programs_path_is_known():
    assert named(spots((0x7F0000001500, 652, 1, *ONE))) == [("/usr/lib/librte_vhost.so.25.0", "(unknown)", "host_user")]


def test_the_functions_with_most_of_any_kind_are_kept(monkeypatch):
    monkeypatch.setattr(symbols, "MOST_FUNCTIONS", 1)
    rows = [
        (0xFFFFFFFF81000000, 1, 0, 1, 0, *[0] * 6),
        (0xFFFFFFFF81001000, 1, 0, 5, 0, *[0] * 6),
        (0xFFFFFFFF81A00000, 1, 0, 1, 7, *[0] * 6),
    ]
    assert [function for _, function, _ in named(spots(*rows))] == ["__switch_to", "ip_rcv_core"]


def test_a_function_of_this_very_process():
    """From /proc to the name of what a pointer points to."""
    pointer = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value
    printed = subprocess.run(["sh", "-c", processes.LIST], capture_output=True, text=True, timeout=60, check=False).stdout
    (found,) = symbols.Symbols(Host(Path("/"))).functions(spots((pointer, os.getpid(), 1, *ONE)), Processes(printed))
    assert "getpid" in found["function"]


def test_the_kinds_and_modes_are_the_plug_ins():
    folder = Path(symbols.__file__).parent
    listed = (folder / "hot.h").read_text().partition("#define HOT_KINDS(X)")[2].partition("\n")[0]
    assert listed.split() == [f"X({kind})" for kind in KINDS]
    order = (folder / "counters.h").read_text().partition("enum mode {")[2].partition("MODE_COUNT")[0]
    assert tuple(word.strip().lower() for word in order.split(",") if word.strip()) == symbols.MODES


def test_a_slow_command_is_asked_once_for_a_kernel():
    host = Host()
    answers = iter(["first", "second", "other"])
    layouts = iter(["a kernel of this test", "a kernel of this test", "another kernel of this test"])
    host.run = lambda command, **_: SimpleNamespace(stdout=next(layouts) if command == symbols.LAYOUT else next(answers))
    assert [symbols.asked_once(host, "slow") for _ in range(3)] == ["first", "first", "second"]


def test_what_modules_do_not_move_is_asked_once_for_all_of_a_kernels_modules():
    host, answers = Host(), iter(["first", "second"])
    host.run = lambda command, **_: SimpleNamespace(stdout="built in, of this test" if command == symbols.BUILT_IN else next(answers))
    assert [symbols.asked_once(host, "slow too", symbols.BUILT_IN) for _ in range(2)] == ["first", "first"]
