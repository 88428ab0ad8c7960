# SPDX-License-Identifier: GPL-2.0-or-later
"""Each notebook, executed on a SYNTHETIC result and exported as a page that stands alone."""

import html
import importlib.util
import re
import shutil
from pathlib import Path

import nbformat
import pytest

from vsprof.terms import places
from vsprof.analysis import report
from vsprof.terms.errors import BadInput, VsprofError

SAMPLE = Path(__file__).parents[1] / "analysis" / "sample.py"
VHOST_SAMPLE, NUMA_SAMPLE = (SAMPLE.with_name(f"{of}_sample.py") for of in ("vhost", "numa"))
CAUSES_SAMPLE = SAMPLE.with_name("causes_sample.py")
VALIDATION_SAMPLE = SAMPLE.with_name("validation_sample.py")
TIME_SAMPLE = SAMPLE.with_name("time_sample.py")
WHAT_IF_SAMPLE = SAMPLE.with_name("what_if_sample.py")
GROWTH_SAMPLE = SAMPLE.with_name("growth_sample.py")
OF_CHANGES = "vm2host-causes"
NOTEBOOKS = sorted((places.ROOT / "notebooks").glob("*.py"))
SHAPES = {
    "vm2vm": {},
    "vm2host": {"topology": "vm2host"},
    "access-methods": {"accesses": ("virtio-net", "vhost-net", "vhost-user")},
}


FLOOD = {"traffics": [("udp_flood", "saturation")]}
OF_OPTIONS = {
    "rx-paths": {
        "options": {"forwarding": ("io", "mac"), "path": ("mergeable", "vector")},
        "change": {"traffic": "forward", "topology": "pvp"},
    },
    "releases": {"options": {"release": ("bookworm", "trixie", "forky")}, "change": {"traffic": "forward", "topology": "pvp_wire"}},
    "kernels": {"options": {"kernel": ("bookworm", "trixie", "trixie-backports")}, "accesses": ("vhost-net",)},
    "zero-copy": {"options": {"dequeue": ("copy", "zero-copy")}, "frames": (64, 1518), "change": {}},
    "direct-wire": {"options": {"forward": ("switch", "wire")}, "frames": (64, 1518), "change": {}},
    "vhost-pmd": {"options": {"port_type": ("direct", "vhost-pmd")}, "frames": (64, 1518)},
    "virtio-user": {"accesses": ("vhost-net", "vhost-user")},
}
"""Notebooks on what options change: the shape of their results; `change`: of vhost-switch, changed so."""
WORDS = {
    "rx-paths": ["path=vector", "T9", "Cycles by stage", "sent back"],
    "releases": ["release=forky", "T10", "Cycles by stage", "what changed by function"],
    "kernels": ["kernel=trixie-backports", "what changed by function"],
    "zero-copy": ["no crossover", "T7", "Cycles by stage", "TSC cycles per packet in the switch"],
    "direct-wire": ["forward=wire", "T12", "Cycles by stage"],
    "vhost-pmd": ["port_type=vhost-pmd", "T6"],
    "virtio-user": ["T8", "Context switches"],
}


def module_of(path: Path):
    spec = importlib.util.spec_from_file_location(f"vsprof_synthetic_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROBED = {"interrupt-latency": 3, "reconnect": 1}
"""Notebooks on single frames, and how many figures each has."""


@pytest.mark.long
@pytest.mark.parametrize("name", PROBED)
def test_a_notebook_on_single_frames_becomes_a_report(sample, tmp_path, name):
    run = sample.write(tmp_path / "r", traffics=[sample.PACED, sample.RESTART, sample.IDLE])
    text = report.build(run, name).read_text(encoding="utf-8")
    assert "SYNTHETIC" in text
    assert "<script" not in text
    assert text.count("data:image/png") >= PROBED[name]
    assert ("One-way latency" if name == "interrupt-latency" else "came back") in text


@pytest.fixture(scope="module")
def sample():
    return module_of(SAMPLE)


@pytest.mark.long
@pytest.mark.parametrize("name", OF_OPTIONS)
def test_a_notebook_on_options_becomes_a_report(sample, tmp_path, name):
    shape = {**FLOOD, "accesses": ("vhost-user",), **OF_OPTIONS[name]}
    change = shape.pop("change", None)
    run = sample.write(tmp_path / "r", **shape)
    if change is not None:
        module_of(VHOST_SAMPLE).change(run, **change)
    text = html.unescape(report.build(run, places.ROOT / "notebooks" / f"{name}.py").read_text(encoding="utf-8"))
    for word in WORDS[name]:
        assert word in text, word
    # The model is the lab's, and says once that it counted nothing here; all else is shown.
    said = re.findall(r'<p class="not-shown">(.*?)</p>', text, re.DOTALL)
    assert not said
    assert text.count("data:image/png") >= 4


@pytest.mark.long
@pytest.mark.parametrize(("name", "last", "hottest"), [("releases", "forky", "switch_first"), ("kernels", "trixie-backports", "vhost_first")])
def test_a_notebook_on_versions_has_a_differential_profile(sample, tmp_path, name, last, hottest):
    shape, option = {"accesses": ("vhost-user",), **OF_OPTIONS[name]}, name.removesuffix("s")
    shape.pop("change", None)
    run = sample.write(tmp_path / "r", own="uarch_model", **shape, **FLOOD)
    text = html.unescape(report.build(run, name).read_text(encoding="utf-8"))
    pairs = (f"{option}=bookworm → {option}=trixie", f"{option}=trixie → {option}={last}")
    for words in (*pairs, "all functions", hottest, "Blue fell, red grew"):
        assert words in text, words
    assert "what changed by function" not in text


@pytest.mark.long
def test_the_notebook_on_nodes_becomes_a_report(sample, tmp_path):
    numa_sample = module_of(NUMA_SAMPLE)
    traffics = [*FLOOD["traffics"], sample.IDLE]
    run = sample.write(tmp_path / "r", accesses=("vhost-user",), traffics=traffics, own="uarch_model", options=numa_sample.OPTIONS)
    text = html.unescape(report.build(numa_sample.change(run), "numa").read_text(encoding="utf-8"))
    for words in ("a packet takes the thread", "224 on node 1", "of another one (right)", "which is 0.665 of the time per packet"):
        assert words in text, words
    assert "Not shown" not in text
    assert text.count("data:image/png") >= 7


@pytest.mark.long
def test_the_notebook_on_causes_becomes_a_report(sample, tmp_path):
    run = module_of(CAUSES_SAMPLE).write(sample, tmp_path / "r", {("pmd-cpu", "8K"): 0.005})
    text = html.unescape(report.build(run, OF_CHANGES).read_text(encoding="utf-8"))
    for word in ("SYNTHETIC", "as deep as published", "T2", "main thread waiting for one", "waited for its CPU 50.0 %"):
        assert word in text, word
    assert not re.findall(r'<p class="not-shown">(.*?)</p>', text, re.DOTALL)
    assert text.count("data:image/png") >= 5


def page_of_validation(folder: Path, target: Path) -> str:
    assert report.page(folder, "validation", target) == target
    return html.unescape(target.read_text(encoding="utf-8"))


def test_the_kept_validation_becomes_a_page(tmp_path):
    """A real run of `make validate-model`, on a machine without a PMU."""
    text = page_of_validation(places.ROOT / "docs" / "reference", tmp_path / "validate-model.html")
    assert "not with a processor, for there is no working PMU here (perf said <not supported>)" in text
    assert "SYNTHETIC" not in text
    assert "Not shown" not in text
    assert text.count("data:image/png") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["validate-model.html"]


def test_a_validation_by_hardware_becomes_a_page(tmp_path):
    module_of(VALIDATION_SAMPLE).hardware().write(tmp_path)
    text = page_of_validation(tmp_path, tmp_path / "validate-model.html")
    for words in ("As far as one processor tells (SYNTHETIC processor)", "<th>hardware</th>", "-10.8 % [-13.0, -9.0]", "hardware counters"):
        assert words in text, words
    assert text.count("data:image/png") == 2


def test_an_empty_validation_says_what_is_not_shown(tmp_path):
    module_of(VALIDATION_SAMPLE).by_profile(rows=[], notes=[], parts=["repeat"]).write(tmp_path)
    text = page_of_validation(tmp_path, tmp_path / "validate-model.html")
    assert "That is not known: no number of the model was compared with anything" in text
    assert text.count("Not shown: ") == 6
    assert "data:image/png" not in text


def test_a_broken_validation_is_named_by_the_notebooks_error(tmp_path):
    (tmp_path / "validation.json").write_text("{")
    with pytest.raises(VsprofError, match=r"validation\.py: cell .* is no validation"):
        report.page(tmp_path, "validation", tmp_path / "validate-model.html")
    assert not (tmp_path / "validate-model.html").exists()


def test_predicted_times_become_a_page(tmp_path):
    module_of(TIME_SAMPLE).document().write(tmp_path)
    target = report.page(tmp_path, "validation-time", tmp_path / "validate-time.html")
    text = html.unescape(target.read_text(encoding="utf-8"))
    for words in ("2 of 3 microbenchmarks are within 15 %", "OVS-DPDK", "Kernels differ", "+30.0 %"):
        assert words in text, words
    assert text.count("data:image/png") == 1
    assert "Not shown" not in text


@pytest.mark.long
def test_the_notebook_on_the_processor_becomes_a_report(sample, tmp_path):
    run = module_of(WHAT_IF_SAMPLE).write(sample, tmp_path / "r", repetitions=6, own="uarch_model")
    text = html.unescape(report.build(run, "what-if").read_text(encoding="utf-8"))
    assert "What changes each switch's rate most" in text
    assert "l2.latency 12 → 6" in text
    assert "Not shown" not in text


@pytest.mark.long
def test_the_notebook_on_growth_becomes_a_report(sample, tmp_path):
    run = module_of(GROWTH_SAMPLE).write(sample, tmp_path / "r")
    text = html.unescape(report.build(run, "scaling").read_text(encoding="utf-8"))
    assert "From the least to the most of each" in text
    assert "pairs 1 → 4: 2.2" in text
    assert "Not shown" not in text


ALONE = {"numa", "validation", "validation-time", "what-if", "scaling", OF_CHANGES}
"""Each has a test of its own."""


def test_every_notebook_is_tried():
    assert {path.stem for path in NOTEBOOKS} == SHAPES.keys() | OF_OPTIONS.keys() | PROBED.keys() | ALONE


SHARED_AT_MOST = 11


def test_no_two_notebooks_share_twelve_lines_in_a_row():
    seen: dict[tuple[str, ...], str] = {}
    for path in NOTEBOOKS:
        lines = path.read_text(encoding="utf-8").splitlines()
        for first in range(len(lines) - SHARED_AT_MOST):
            block = tuple(lines[first : first + SHARED_AT_MOST + 1])
            assert seen.setdefault(block, path.stem) == path.stem, f"{path.stem} and {seen[block]} share:\n" + "\n".join(block)


@pytest.mark.long
@pytest.mark.parametrize("notebook", [path for path in NOTEBOOKS if path.stem in SHAPES], ids=lambda path: path.stem)
def test_a_notebook_becomes_a_report(sample, tmp_path, notebook):
    run = sample.write(tmp_path / "r", own="uarch_model", **SHAPES.get(notebook.stem, {}))
    page = report.build(run, notebook)
    text = page.read_text(encoding="utf-8")
    assert page == run / "report.html"
    assert "SYNTHETIC" in text
    assert "<script" not in text
    assert text.count("data:image/png") >= 6
    assert "not-shown" not in text.partition("<main>")[2]
    assert "Not shown" not in text
    assert "switch_first (sample), switch" in text
    assert nbformat.read(run / "report.ipynb", 4).cells
    assert not list(run.glob("*.partial"))


@pytest.mark.long
def test_rates_that_were_searched_have_a_part_of_the_report(sample, tmp_path):
    run = sample.write(tmp_path / "r", accesses=("virtio-net", "vhost-user"), traffics=[*sample.TRAFFICS[:2], *sample.SEARCHED])
    text = html.unescape(report.build(run, "vm2vm").read_text(encoding="utf-8"))
    for words in ("Rates without loss", "far shorter than the 60 s of RFC 2544", "even at the lowest rate", "partial-drop rate"):
        assert words in text, words


@pytest.mark.long
def test_missing_events_and_one_repetition_leave_the_rest(sample, tmp_path):
    drop = ("cpu_idle_seconds", "rtt_p50", "context_switches_voluntary", "pmd_busy_cycles")
    run = sample.write(tmp_path / "r", repetitions=1, drop=drop)
    text = html.unescape(report.build(run, "vm2vm").read_text(encoding="utf-8"))
    assert "Not shown: What the switch's poll-mode thread does" in text
    assert "not offered here" in text
    assert "no interval" in text


def test_a_failing_cell_is_named(sample, tmp_path):
    notebook = tmp_path / "bad.py"
    notebook.write_text("# %%\nfine = 1\n\n# %%\nfine / 0\n")
    run = sample.write(tmp_path / "r", repetitions=1)
    with pytest.raises(VsprofError, match=r"cell 2 \(`fine / 0`\) failed: ZeroDivisionError"):
        report.build(run, notebook)
    assert not (run / "report.html").exists()


def test_a_reference_to_elsewhere_is_refused(sample, tmp_path):
    notebook = tmp_path / "bad.py"
    notebook.write_text("# %% [markdown]\n# ![x](https://example.org/x.png)\n")
    run = sample.write(tmp_path / "r", repetitions=1)
    with pytest.raises(VsprofError, match="from elsewhere"):
        report.build(run, notebook)


def test_an_unknown_notebook(sample, tmp_path):
    run = sample.write(tmp_path / "r", repetitions=1)
    with pytest.raises(BadInput, match="no notebook"):
        report.build(run, "nonsense")


def test_the_reference_run_becomes_a_report(tmp_path):
    """A real result of the emulated lab, kept in the repository."""
    run = tmp_path / "reference"
    shutil.copytree(places.ROOT / "results" / "reference", run)
    text = html.unescape(report.build(run, "vm2vm").read_text(encoding="utf-8"))
    assert "SYNTHETIC" not in text
    # Of modelled time alone: a flood begins and ends in the emulator's, and so nobody counted all of it.
    [lacking] = re.findall(r'<p class="not-shown">(.*?)</p>', text, re.DOTALL)
    assert lacking.startswith("Not shown: Where the UDP flood loses packets")
    assert "the flood starts and ends outside modelled time" in lacking
    assert text.count("Not shown") == 1
    assert "The functions in which each case spends most instructions" in text
    assert "TCP is slower over OVS-DPDK than over kernel OVS" in text
