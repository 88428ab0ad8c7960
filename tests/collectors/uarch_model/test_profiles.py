# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU profiles: what the shipped ones say, what is refused in one line, and that the plug-in takes what they give."""

import copy
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.collectors.uarch_model import profiles
from vsprof.terms.errors import BadInput

ROOT = Path(__file__).resolve().parents[3]
C_FOLDER = ROOT / "collectors" / "uarch_model"
PROFILE_H = (C_FOLDER / "profile.h").read_text()
HASWELL, SKYLAKE, SAPPHIRE_RAPIDS, ZEN4, ZEN5 = "haswell-ep-e5-2695v3", "skylake-sp", "sapphire-rapids", "zen4", "zen5"
SHIPPED = (HASWELL, SKYLAKE, SAPPHIRE_RAPIDS, ZEN4, ZEN5)


# --- The contract with the plug-in ------------------------------------------------------------------------------


def test_the_keys_are_those_of_profile_h_in_its_order():
    assert list(profiles.KEYS) == re.findall(r'X\(\w+, "([\w.]+)"\)', PROFILE_H)


def test_the_policies_are_those_of_profile_h_in_its_order():
    names = re.search(r"enum llc_policy \{ (.*) \};", PROFILE_H)[1]
    assert [f"LLC_{policy.upper().replace('-', '_')}" for policy in profiles.POLICIES] == names.split(", ")


def test_the_counters_are_those_of_counters_h():
    declared = len(re.findall(r"(?<=\s)X\((?!name\))", (C_FOLDER / "counters.h").read_text()))
    assert len(profiles.counters()) == len(set(profiles.counters())) == declared
    assert {"instructions", "l1d_misses", "walk_cycles", "stall_mode"} <= set(profiles.counters())


@pytest.fixture(scope="module")
def plug_in(tmp_path_factory):
    """The plug-in's own reader of profiles: a program that says nothing, or what is wrong with its standard input."""
    if not (gcc := shutil.which("gcc")):
        pytest.skip("no gcc here: what the plug-in says to profiles is not tried")
    folder = tmp_path_factory.mktemp("profile")
    main = folder / "main.c"
    main.write_text("""
#include "profile.h"
#include <stdio.h>
int main(void)
{
    static char text[1 << 16], error[400];
    struct profile profile;
    text[fread(text, 1, sizeof(text) - 1, stdin)] = 0;
    if (profile_parse(text, &profile, error, sizeof(error)))
        puts(error);
    return 0;
}
""")
    program = folder / "read-profile"
    command = [gcc, "-Wall", "-Werror", f"-I{C_FOLDER}", str(main), str(C_FOLDER / "profile.c"), "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return lambda text: subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", SHIPPED)
def test_the_plug_in_takes_every_shipped_profile(plug_in, name):
    assert plug_in(profiles.load(name).flat()) == ""


@pytest.mark.parametrize("name", SHIPPED)
def test_the_plug_in_takes_them_with_parts_switched_off(plug_in, name):
    assert plug_in(profiles.load(name).without("model", "prefetch").flat()) == ""


@pytest.mark.parametrize(
    ("pattern", "replacement", "named"),
    [
        (r"^l2\.ways .*\n", "", "l2.ways: missing"),
        (r"^(l2\.ways .*\n)", r"\1\1", "l2.ways: given twice"),
        (r"^l2\.ways", "l2.weighs", "l2.weighs: no such key"),
        (r"^cost\.pause .*", "cost.pause -1", "cost.pause"),
        (r"^cost\.pause .*", "cost.pause 1.5", "cost.pause"),
        (r"^cost\.pause .*", "cost.pause", "cost.pause: no value"),
        (r"^l1d\.sets .*", "l1d.sets 128", "l1d.sets"),
        (r"^stlb\.ways .*", "stlb.ways 7", "stlb"),
        (r"^llc\.policy .*", "llc.policy 3", "llc.policy"),
        (r"^branch\.return_stack .*", "branch.return_stack 65", "branch.return_stack"),
    ],
)
def test_the_plug_in_names_the_key_of_a_broken_one(plug_in, pattern, replacement, named):
    broken, count = re.subn(pattern, replacement, profiles.load(HASWELL).flat(), count=1, flags=re.MULTILINE)
    assert count == 1
    assert named in plug_in(broken)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(profiles.KEYS),
        st.sampled_from(
            [0, 1, 2, 3, 4, 7, 8, 12, 16, 20, 32, 63, 64, 65, 128, 1000, 1024, 4096, 4097, 2**24, 2**32 - 1, True, False, "victim"]
        ),
        min_size=1,
        max_size=5,
    )
)
def test_what_is_accepted_here_the_plug_in_accepts(plug_in, changes):
    try:
        changed = profiles.load(ZEN5).override(changes)
    except BadInput:
        return
    assert plug_in(changed.flat()) == ""


# --- The shipped profiles ---------------------------------------------------------------------------------------


def test_the_shipped_profiles():
    assert set(SHIPPED) <= set(profiles.names())
    assert profiles.DEFAULT == HASWELL


@pytest.mark.parametrize("name", SHIPPED)
def test_every_value_says_where_it_comes_from(name):
    for key, value in profiles.load(name).to_json()["values"].items():
        if key.startswith("model."):
            continue
        assert value["source"]
        assert value["source"] != profiles.ASSUMED or len(value["why"]) > 15, key
        assert value["source"] != profiles.FITTED or key in profiles.FITTED_KEYS, key


@pytest.mark.parametrize("name", SHIPPED)
def test_every_reference_is_used_by_the_file_that_has_it(name):
    text = (profiles.FOLDER / f"{name}.yaml").read_text()
    for source in yaml.safe_load(text)["sources"]:
        assert f"source: {source}" in text, source


@pytest.mark.parametrize("name", SHIPPED)
def test_the_hardware_events_that_validation_needs_are_there(name):
    needed = {
        "instructions",
        "l1d_misses",
        "l1i_misses",
        "l2_misses",
        "llc_misses",
        "dtlb_walks",
        "itlb_walks",
        "branches",
        "branch_misses",
    }
    assert needed <= profiles.load(name).events.keys() <= set(profiles.counters())


def test_the_published_results_machine():
    haswell = profiles.load(HASWELL)
    assert haswell.values["llc.sets"] == 14 * 2048
    assert haswell.values["llc.sets"] * haswell.values["llc.ways"] * 64 == 35 << 20
    assert haswell.values["l2.sets"] * haswell.values["l2.ways"] * 64 == 256 << 10
    assert haswell.frequency_hz == 2_300_000_000
    assert haswell.events["l1d_misses"] == ["L1D.REPLACEMENT"]
    assert profiles.POLICIES[haswell.values["llc.policy"]] == "inclusive"


@pytest.mark.parametrize(
    ("name", "l1d", "l2", "llc", "frequency"),
    [
        (SKYLAKE, 32, 1024, 33 << 10, 2_100_000_000),
        (SAPPHIRE_RAPIDS, 48, 2048, 105 << 10, 2_000_000_000),
        (ZEN4, 32, 1024, 32 << 10, 3_694_000_000),
        (ZEN5, 48, 1024, 32 << 10, 4_346_000_000),
    ],
)
def test_the_sizes_of_the_others_in_kib(name, l1d, l2, llc, frequency):
    profile = profiles.load(name)
    assert [profile.values[f"{c}.sets"] * profile.values[f"{c}.ways"] // 16 for c in ("l1d", "l2", "llc")] == [l1d, l2, llc]
    assert profile.frequency_hz == frequency
    assert profiles.POLICIES[profile.values["llc.policy"]] == "victim"


def test_zen4_names_no_event_that_only_zen5_has():
    # Linux, tools/perf/pmu-events/arch/x86: in amdzen5, and not in amdzen4.
    named = {event for events in profiles.load(ZEN4).events.values() for event in events}
    assert not named & {"ls_dmnd_fills_from_sys.dram_io_all", "ls_locks.all"}
    assert not any(event.endswith(".l2_hwpf") for event in named)
    assert "atomics" not in profiles.load(ZEN4).events


def test_the_flat_text_has_each_key_once():
    lines = profiles.load(ZEN5).flat().splitlines()
    assert [line.split(" ")[0] for line in lines] == list(profiles.KEYS)
    assert "dtlb.4k.entries 96" in lines
    assert "prefetch.l1i_next 1" in lines
    assert "llc.policy 2" in lines


@pytest.mark.parametrize("name", SHIPPED)
def test_the_manifest_can_hold_a_profile(name):
    stored = json.loads(json.dumps(profiles.load(name).override({"llc.latency": 70}).to_json()))
    assert stored["id"] == name
    assert list(stored["values"]) == list(profiles.KEYS)
    assert stored["overridden"] == ["llc.latency"]
    assert stored["values"]["llc.latency"] == {"value": 70, "source": "override"}
    used = {value.get("source") for value in stored["values"].values()} - {None, "assumed", "fitted"}
    assert used <= stored["sources"].keys()


# --- Which one fits the host ------------------------------------------------------------------------------------


def cpuinfo(vendor: str, family: int, model: int) -> str:
    return f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: Some CPU: 2.30GHz\n\n"


@pytest.mark.parametrize(
    ("vendor", "family", "model", "expected"),
    [
        ("GenuineIntel", 6, 0x3F, HASWELL),
        ("GenuineIntel", 6, 0x55, SKYLAKE),
        ("GenuineIntel", 6, 0x8F, SAPPHIRE_RAPIDS),
        ("GenuineIntel", 6, 0xCF, None),  # Emerald Rapids
        ("GenuineIntel", 6, 0x3C, None),  # a Haswell of the desktop
        ("AuthenticAMD", 26, 0x02, ZEN5),
        ("AuthenticAMD", 26, 0x44, ZEN5),
        ("AuthenticAMD", 26, 0x50, None),  # Zen 6
        ("AuthenticAMD", 25, 0x11, ZEN4),
        ("AuthenticAMD", 25, 0x61, None),  # a Zen 4 of the desktop
        ("AuthenticAMD", 25, 0x01, None),  # Zen 3
        ("AuthenticAMD", 6, 0x3F, None),
    ],
)
def test_the_profile_of_a_host(vendor, family, model, expected):
    assert profiles.for_host(cpuinfo(vendor, family, model) * 2) == expected


@pytest.mark.parametrize(
    "text", ["", "processor : 0\n", "vendor_id : GenuineIntel\ncpu family : six\nmodel : 63", "CPU implementer\t: 0x41"]
)
def test_a_host_of_another_kind_has_none(text):
    assert profiles.for_host(text) is None


@given(st.text() | st.lists(st.sampled_from(["vendor_id", "cpu family", "model", ":", "GenuineIntel", "6", "²", "\n"])).map(" ".join))
def test_whatever_a_host_says_of_itself(text):
    assert profiles.for_host(text) in (None, *profiles.names())


# --- Switching parts off, and other values ----------------------------------------------------------------------


def test_single_parts_can_be_switched_off():
    whole = profiles.load(HASWELL)
    bare = whole.without("model.page_walks", "prefetch.l2_stream")
    assert {key for key in profiles.KEYS if bare.values[key] != whole.values[key]} == {"model.page_walks", "prefetch.l2_stream"}
    assert bare.values["model.page_walks"] == bare.values["prefetch.l2_stream"] == 0
    assert bare.overridden == ("model.page_walks", "prefetch.l2_stream")
    assert whole.values["model.page_walks"] == 1


def test_all_prefetchers_can_be_switched_off_at_once():
    values = profiles.load(ZEN5).without("prefetch").values
    assert not any(values[key] for key in values if key.startswith("prefetch."))
    assert values["model.coherence"] == 1


def test_a_part_that_is_none():
    with pytest.raises(BadInput, match=r"CPU profile zen5: 'llc' can't be switched off: use one of prefetch\.l1i_next, .*model"):
        profiles.load(ZEN5).without("llc")


def test_values_can_be_given_for_a_run():
    changed = profiles.load(HASWELL).override({"llc.latency": 70, "llc.policy": "victim", "dtlb.4k.ways": 2}).without("model.branches")
    assert (changed.values["llc.latency"], changed.values["llc.policy"], changed.values["dtlb.4k.ways"]) == (70, 2, 2)
    assert changed.overridden == ("dtlb.4k.ways", "llc.latency", "llc.policy", "model.branches")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"llc.latncy": 70}, "CPU profile zen5: llc.latncy: no such key (found 70); did you mean llc.latency?"),
        ({"llc.latency": "70"}, "CPU profile zen5: llc.latency: need a valid integer (found '70')"),
        ({"l1d.sets": 128}, "CPU profile zen5: l1d.sets: need at most 64: its index must lie in the offset within a page (found 128)"),
        ({"model.branches": 2}, "CPU profile zen5: model.branches: need a valid boolean (found 2)"),
    ],
)
def test_values_for_a_run_are_checked_as_those_of_a_file(changes, said):
    with pytest.raises(BadInput) as error:
        profiles.load(ZEN5).override(changes)
    assert str(error.value) == said


# --- Inheritance ------------------------------------------------------------------------------------------------


@pytest.fixture
def write(tmp_path):
    """Write a profile and return its path: a document, or text."""

    def write(document: object, name: str = "mine.yaml") -> Path:
        path = tmp_path / name
        path.write_text(document if isinstance(document, str) else yaml.safe_dump(document, sort_keys=False))
        return path

    return write


MINE = {"base": HASWELL, "name": "Mine", "description": "A test's.", "sources": {"tested": "measured by this test"}}


def given_as(value: object) -> dict[str, object]:
    return {"value": value, "source": "tested"}


def test_a_profile_gives_only_what_differs(write):
    mine = profiles.load(write({**MINE, "llc": {"sets": given_as(16384)}, "model": {"branches": False}}))
    base = profiles.load(HASWELL)
    assert {key for key in profiles.KEYS if mine.values[key] != base.values[key]} == {"llc.sets", "model.branches"}
    assert (mine.id, mine.name, mine.frequency_hz, mine.events) == ("mine", "Mine", base.frequency_hz, base.events)
    assert mine.given.cpuid is None
    assert {"tested", "cpuid-hsw"} <= mine.given.sources.keys()


def test_a_base_can_be_a_file_beside(write):
    write({**MINE, "llc": {"latency": given_as(77)}}, "first.yaml")
    second = profiles.load(write({**MINE, "base": "first.yaml", "cost": {"pause": given_as(5)}}))
    assert (second.values["llc.latency"], second.values["cost.pause"]) == (77, 5)


def test_an_event_that_the_base_has_can_be_denied(write):
    assert "walk_references" in profiles.load(HASWELL).events
    assert "walk_references" not in profiles.load(SKYLAKE).events
    assert "atomics" not in profiles.load(write({**MINE, "events": {"atomics": None}})).events


def test_a_new_value_does_not_keep_the_old_source(write):
    with pytest.raises(BadInput, match=r"mine\.yaml: llc\.latency: has no source"):
        profiles.load(write({**MINE, "llc": {"latency": {"value": 70}}}))


def test_a_source_can_not_come_to_mean_something_else(write):
    with pytest.raises(BadInput, match=r"mine\.yaml: sources\.intel-opt: stands for another reference in the base haswell"):
        profiles.load(write({**MINE, "sources": {"intel-opt": "some other manual"}}))


def test_what_is_wrong_in_a_base_is_said_of_the_base(write):
    write({**MINE, "llc": {"ways": given_as(65)}}, "first.yaml")
    with pytest.raises(BadInput, match=r"first\.yaml: llc\.ways: need .*64 \(found 65\)"):
        profiles.load(write({**MINE, "base": "first.yaml"}))


@pytest.mark.parametrize(
    ("base", "said"),
    [
        ("haswell", r"mine\.yaml: base: no CPU profile 'haswell': use one of .*haswell-ep-e5-2695v3, .*or the path of a YAML file"),
        ("../elsewhere.yaml", r"mine\.yaml: base: no CPU profile '\.\./elsewhere\.yaml'"),
        (5, r"mine\.yaml: base: need a name \(found 5\)"),
        ("mine.yaml", r"mine\.yaml: base: mine -> mine leads back to itself"),
        ("other.yaml", r"other\.yaml: base: mine -> other -> mine leads back to itself"),
    ],
)
def test_a_base_that_can_not_be(write, base, said):
    write({**MINE, "base": "mine.yaml"}, "other.yaml")
    with pytest.raises(BadInput, match=said):
        profiles.load(write({**MINE, "base": base}))


# --- What is refused --------------------------------------------------------------------------------------------


def whole() -> dict:
    """A profile without a base."""
    return yaml.safe_load((profiles.FOLDER / f"{ZEN5}.yaml").read_text())


def changed(path: str, value: object) -> dict:
    """It, with one place set; ``...`` removes it."""
    document = copy.deepcopy(whole())
    *groups, last = path.split("/")
    place = document
    for group in groups:
        place = place[group]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("l1d/latencies", 5, "l1d.latencies: no such key (found 5); did you mean l1d.latency?"),
        ("l4", {"sets": 1}, "l4: no such key (found {'sets': 1})"),
        ("l1d/sets/sorce", "chen", "l1d.sets.sorce: no such key (found 'chen'); did you mean l1d.sets.source?"),
        ("l1d/latency", ..., "l1d.latency: missing"),
        ("l1d/latency/value", ..., "l1d.latency.value: missing"),
        ("memory", ..., "memory: missing"),
        ("cost/ipi", ..., "cost.ipi: missing"),
        ("name", ..., "name: missing"),
        ("frequency_hz", ..., "frequency_hz: missing"),
        ("memory", None, "memory: need keys and values (found None)"),
        ("l1d/latency", 4, "l1d.latency: need {value: …, source: …} (found 4)"),
        ("frequency_hz", 26, "frequency_hz: need {value: …, source: …} (found 26)"),
        ("l1d/latency/source", ..., "l1d.latency: has no source: name one of `sources:`, or `assumed` and say `why`"),
        ("l1d/latency/source", "hearsay", "l1d.latency: no source 'hearsay': use one of amd-sog, "),
        ("walk/fixed/why", ..., "walk.fixed: 7 is assumed: say `why`"),
        ("l1d/latency/source", "fitted", "l1d.latency: 4 can't be `fitted`: only core.chain_permille, "),
        ("sources/assumed", "a reference, and yet none", "sources.assumed: this name is taken"),
        ("sources/amd-sog", "", "sources.amd-sog: String should have at least 10 characters (found '')"),
        ("l1d/latency/value", "four", "l1d.latency: need a valid integer (found 'four')"),
        ("l1d/latency/value", 4.5, "l1d.latency: need a valid integer (found 4.5)"),
        ("l1d/latency/value", True, "l1d.latency: need a valid integer (found True)"),
        ("l1d/latency/value", None, "l1d.latency: need a valid integer (found None)"),
        ("l1d/latency/value", -4, "l1d.latency: need greater than or equal to 0 (found -4)"),
        ("l1d/latency/value", 2**32, "l1d.latency: need less than or equal to 4294967295 (found 4294967296)"),
        ("l2/latency/value", 3, "l2.latency: need at least l1d.latency, 4 (found 3)"),
        ("l1d/sets/value", 60, "l1d.sets: need a power of two (found 60)"),
        ("l1i/sets/value", 128, "l1i.sets: need at most 64: its index must lie in the offset within a page (found 128)"),
        ("l2/ways/value", 4097, "l2.ways: need at most 4096 (found 4097)"),
        ("stlb/ways/value", 15, "stlb.ways: need ways that divide the 4096 entries (found 15)"),
        ("stlb/ways/value", 0, "stlb.ways: need ways that divide the 4096 entries (found 0)"),
        ("dtlb/4k/ways/value", 8, "dtlb.4k.entries: need a power of two of sets, not 12 (96 entries in 8 ways) (found 96)"),
        ("itlb/2m/entries/value", 0, "itlb.2m.entries: need at least 1 (found 0)"),
        ("llc/sets/value", 0, "llc.sets: need greater than or equal to 1 (found 0)"),
        ("llc/policy/value", "exclusive", "llc.policy: need 'inclusive', 'non-inclusive' or 'victim' (found 'exclusive')"),
        ("core/overlap_permille/value", 1001, "core.overlap_permille: need less than or equal to 1000 (found 1001)"),
        ("prefetch/l1i_next/value", 1, "prefetch.l1i_next: need a valid boolean (found 1)"),
        ("model/branches", "no", "model.branches: need a valid boolean (found 'no')"),
        (
            "events/l1d_mises",
            {"value": "x", "source": "chen"},
            "events.l1d_mises: no such counter: collectors/uarch_model/counters.h lists them",
        ),
        ("events/loads", "ls_dispatch", "events.loads: need {value: …, source: …} (found 'ls_dispatch')"),
        ("events/loads/value", [], "events.loads: List should have at least 1 item"),
        ("cpuid/family", "0x1a", "cpuid.family: need a valid integer (found '0x1a')"),
        ("cpuid/models", [[2, 1]], "cpuid.models: need the smaller model of a pair first (found [(2, 1)])"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_file_key_and_value(write, path, value, said):
    file = (
        write(changed(path, value))
        if value != 10**5000
        else write(yaml.safe_dump(changed(path, 0)).replace("value: 0", f"value: {hex(value)}", 1))
    )
    with pytest.raises(BadInput) as error:
        profiles.load(file)
    lines = str(error.value).splitlines()
    assert any(line.startswith(f"{file}: {said}") for line in lines), lines
    assert all(line.startswith(f"{file}: ") for line in lines)
    assert error.value.exit_status == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no CPU profile: found NoneType, need keys and values"),
        ("- a\n- b\n", "is no CPU profile: found list"),
        ("a: [1, 2\n", "is not YAML: while parsing a flow sequence"),
        ("l1d: {sets: 1, sets: 2}\n", "is not YAML: the key 'sets' is given twice"),
        ("name: a\nname: b\n", "is not YAML: the key 'name' is given twice"),
        ("name: !!python/object:os.system x\n", "is not YAML: could not determine a constructor"),
        ("name: 2026-13-45\n", "is not YAML: month must be in 1..12"),
        ("name: !!int x\n", "is not YAML: "),
        ("name: !!bool x\n", "is not YAML: "),
        ("[" * 10_000, "is not YAML: "),
        ("name: \0\n", "is not YAML: unacceptable character"),
    ],
)
def test_what_is_no_yaml(write, text, said):
    file = write(text)
    with pytest.raises(BadInput) as error:
        profiles.load(file)
    assert str(error.value).startswith(f"{file}: {said}")
    assert "\n" not in str(error.value)


def test_a_number_longer_than_python_prints(write):
    text = (profiles.FOLDER / f"{ZEN5}.yaml").read_text()
    with pytest.raises(BadInput, match=r"cost\.pause: need .* \(found a number of thousands of digits\)"):
        profiles.load(write(text.replace("pause: {value: 96", f"pause: {{value: 0x{'f' * 5000}")))


def test_what_is_no_text(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_bytes(b"name: \xff\n")
    with pytest.raises(BadInput, match=r"mine\.yaml: is not YAML: 'utf-8' codec can't decode byte 0xff"):
        profiles.load(file)


def test_merge_keys_of_yaml_are_no_repetition(write):
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\n"
    with pytest.raises(BadInput) as error:
        profiles.load(write(text))
    assert "twice" not in str(error.value)


def test_an_aliased_group_is_overridden_alone(write):
    document = whole()
    document["dtlb"]["2m"] = document["dtlb"]["4k"]  # dumped as an anchor and an alias
    given = profiles.load(write(document)).values["dtlb.4k.ways"]
    mine = profiles.load(write(document)).override({"dtlb.2m.ways": given // 2})
    assert (mine.values["dtlb.2m.ways"], mine.values["dtlb.4k.ways"]) == (given // 2, given)


@pytest.mark.parametrize("name", ["zen6", "", "../profiles/zen5", "missing.yaml", "x" * 400 + ".yaml", "a\0b.yaml"])
def test_a_name_that_is_none_lists_the_known_ones(name):
    with pytest.raises(BadInput, match=r"no CPU profile .*: use one of .*haswell-ep-e5-2695v3, .*skylake-sp, zen4, zen5"):
        profiles.load(name)


# Near misses find more than noise does.
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-1, 5000)
    | st.floats()
    | st.sampled_from(["", "assumed", "fitted", "chen", "zen5", "victim", "x"])
)
NODES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["value", "source", "why", "sets", "ways", "4k"]) | SCALARS, inner, max_size=3)
    ),
    max_leaves=5,
)
PLACES = sorted(
    {"base", "name", "sources", "cpuid", "cpuid/models", "events", "events/loads", "events/loads/value", "model", "l1d", "dtlb/4k"}
    | {key.replace(".", "/") for key in profiles.KEYS}
)


def loads_or_says_why(text: str | bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "mine.yaml")
        file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        said = ""
        try:
            assert len(profiles.load(file).flat().splitlines()) == len(profiles.KEYS)
        except BadInput as error:
            said = str(error)
        assert all(line.startswith(f"{file}: ") and len(line) < 1500 for line in said.splitlines())


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PLACES), NODES, st.sampled_from(["", "/value", "/source", "/why"]))
def test_any_one_place_can_hold_anything(place, value, leaf):
    document = whole()
    node = document
    *groups, last = (place + leaf).split("/")
    for group in groups:
        node = node[group] if isinstance(node, dict) and group in node else node
    if isinstance(node, dict):
        node[last] = value
    loads_or_says_why(yaml.safe_dump(document))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60) | st.binary(max_size=60) | st.lists(st.sampled_from([
    "base: ", "zen5", "\n", "l1d", ": ", "{", "}", "[", "]", "value", "source", "&a ", "*a", "<<: ", "!!int ", "!!timestamp ", "!!set ", "- ", "? ", "  ",
    "0x", "1:99", "2026-02-30", "'", '"', "|", "%TAG", "---\n", "assumed", "name",
]), max_size=14).map("".join))  # fmt: skip
def test_whatever_stands_in_a_file(text):
    loads_or_says_why(text)


# --- The page ---------------------------------------------------------------------------------------------------

PAGE = (ROOT / "docs" / "adding-a-cpu-profile.md").read_text()


def test_the_pages_example_works(write, plug_in):
    example = profiles.load(write(re.search(r"```yaml\n(# SPDX.*?)```", PAGE, re.DOTALL)[1], "broadwell-ep-e5-2620v4.yaml"))
    assert example.values["llc.sets"] * example.values["llc.ways"] * 64 == 20 << 20
    assert plug_in(example.flat()) == ""


def test_the_page_names_every_key():
    named = set(re.findall(r"`([\w.]+)`", PAGE))
    assert not set(profiles.KEYS) - named
