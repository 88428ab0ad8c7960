# SPDX-License-Identifier: GPL-2.0-or-later
"""The promise of plug-ins: a switch, a traffic, a collector and a PMU event are one file each, and the report and `vsprof compare` name all
four. The files lie in a temporary folder, are found as any plug-in is, and no other file knows of them. The numbers are SYNTHETIC."""

import html
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.analysis import sample
from vsprof.analysis import report
from vsprof.collectors.events import catalogue
from vsprof.collectors.events.processor import Processor
from vsprof.runner import vocabulary
from vsprof.terms import plugins, schema
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import CollectorWords

ROOT = Path(__file__).parents[1]
COLOUR = "#c51b7d"
"""The palette's slot 7 (analysis/style.yaml), which no shipped switch has."""
FILES = {
    "switches/dummy_switch.py": '''
from vsprof.switches.base import Switch

class Dummy(Switch):
    words, rank, colour, program = "the dummy switch", 55, 7, "dummyd"
    accesses = ("vhost-user",)

SWITCH = Dummy
''',
    "workloads/traffic/dummy_traffic.py": '''
from vsprof.terms.vocabulary import Data, Headline
from vsprof.workloads.traffic.base import Traffic

class Dummy(Traffic):
    words, rank, kind = "dummy traffic", 25, "flood"
    data = Data("parcel", "parcel heard", "packet_rate_received")
    headlines = (
        Headline("packet_rate_received", "parcels heard", ("saturation",), "more"),
        Headline("context_switches_per_parcel", "context switches per parcel", ("saturation",), "less"),
    )

TRAFFIC = Dummy
''',
    "collectors/dummy_collector.py": '''
from vsprof.collectors.base import Snapshot
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords

class Dummy(Snapshot):
    words, command = "the dummy collector", "echo 6"
    says = {
        "sneezes": NumberWords("sneezes of the host", better="less", figure="counts"),
        "nap": NumberWords("how long the host naps", better="more"),
    }

    @classmethod
    def numbers(cls, recorded):
        yield Number("sneezes", float(recorded.end), "events")
        yield Number("nap", 0.25, "seconds")

COLLECTOR = Dummy
''',
    "events/mine.json": json.dumps([
        {
            "EventName": "dummy_event", "EventCode": "0xae", "UMask": "0x02", "Better": "less", "Figure": "counts",
            "BriefDescription": "Cycles in which a dummy waited."
        },
        {
            "MetricName": "dummy_stalls_per_packet", "MetricExpr": "dummy_event / packets", "ScaleUnit": "1cycles/packet", "Better": "less",
            "Figure": "counts", "BriefDescription": "Waiting cycles of a dummy."
        },
    ]),
}  # fmt: skip
RENAMED = {"ovs-dpdk": "dummy-switch", "udp_flood": "dummy_traffic"}


@pytest.fixture
def found(tmp_path, monkeypatch):
    """The four plug-ins, as vsprof finds them."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for package in ("switches", "workloads.traffic", "collectors"):
        module = importlib.import_module(f"vsprof.{package}")
        monkeypatch.setattr(module, "__path__", [*module.__path__, str(tmp_path / package.replace(".", "/"))])
    mine = catalogue.read([tmp_path / "events" / "mine.json"], Processor("made-up"), "made-up", "cpu")
    kinds = {"switches": "SWITCH", "workloads.traffic": "TRAFFIC", "collectors": "COLLECTOR"}
    yield {package: plugins.find(f"vsprof.{package}", marker, hyphens=package == "switches") for package, marker in kinds.items()} | {
        "events": mine
    }
    for name in ("switches.dummy_switch", "workloads.traffic.dummy_traffic", "collectors.dummy_collector"):
        sys.modules.pop(f"vsprof.{name}", None)


def say_so(found, manifest):
    """As the runner writes it into the manifest."""
    switches, traffics = found["switches"], found["workloads.traffic"]
    manifest["vocabulary"] = vocabulary.of(
        {name: switches[name] for name in ("kernel-ovs", "dummy-switch")},
        {name: traffics[name] for name in ("dummy_traffic", "tcp_stream")},
    ).to_json()
    words = {
        "dummy_collector": found["collectors"]["dummy_collector"](None).vocabulary(),
        "perf_stat": CollectorWords("processor events", found["events"].says()),
    }
    vocabulary.note(manifest, words)
    own = found["events"].metrics["dummy_stalls_per_packet"]
    # As perf_stat's facts have it.
    metrics = {own.name: {"expression": own.text, "unit": own.unit, "factor": own.factor, "description": own.description}}
    manifest["facts"]["collectors"]["perf_stat"] = {"processor_name": "Made-up 2", "metrics": metrics}


def renamed(text):
    for name, other in RENAMED.items():
        text = text.replace(name, other) if text else text
    return text


@pytest.fixture
def result(found, tmp_path):
    """The usual synthetic result, of the dummies."""
    path = sample.write(tmp_path / "r")
    table = schema.read(path / "measurements.parquet")
    for column in ("case_id", "run_id", "switch", "traffic", "collector"):
        field = table.schema.field(column)
        values = pa.array([renamed(word) for word in table[column].to_pylist()], field.type)
        table = table.set_column(table.schema.get_field_index(column), field, values)
    rows = table.to_pylist()
    windows = {tuple(row[key] for key in ("run_id", "traffic", "load", "window")): row for row in rows if row["window"].startswith("w")}
    for row in windows.values():
        where = {key: row[key] for key in (*schema.KEYS.names, "load")}
        more = 2.0 if row["switch"] == "dummy-switch" else 1.0
        for number in (Number("sneezes", 6.0 * more, "events"), Number("nap", 0.25 * more, "seconds")):
            rows.append(schema.row(where, "dummy_collector", "software", number))
        counted = Number("dummy_event", 9e5 * more, "events", "switch", 1, "all", sample.SECONDS, sample.SECONDS)
        rows.append(schema.row(where, "perf_stat", "hardware", counted))
    schema.write(path / "measurements.parquet", rows)
    manifest = json.loads(renamed((path / "manifest.json").read_text()))
    say_so(found, manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def apart(code: str, result: Path) -> str:
    """What code prints in a process of its own: what one result teaches the analysis must not be known to the other tests."""
    begin = "import json, sys\nfrom analysis import style\nfrom analysis.compare import of_cases\nfrom analysis.load import load\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + code, str(result)], cwd=ROOT, check=True, capture_output=True, text=True, timeout=300
    )
    return done.stdout.strip()


def test_the_report_names_all_four_with_units_and_colours(result):
    text = html.unescape(report.build(result, "vm2vm").read_text(encoding="utf-8"))
    for words in (
        # The answer, by what the traffic carries.
        "In dummy traffic, saturation, the dummy switch delivers 2.20 times as many parcels as kernel OVS", "as many context switches per parcel of dummy traffic",
        # Findings of its kind, and of a poll-mode switch: in their own names.
        "the dummy switch delivers more parcels of dummy traffic than kernel OVS.", "Where dummy traffic loses packets.",
        "At the same offered rate, the dummy switch makes fewer context switches per parcel than kernel OVS.",
        "the dummy switch's poll-mode thread never sleeps.", "all threads of dummyd together gave up a CPU",
        # All that was counted, each with words and a unit.
        "dummy traffic, saturation: parcels heard", "the dummy collector", "sneezes_per_parcel", "sneezes of the host", "nap", "how long the host naps", "250 ms",
        "processor events (hardware)", "dummy_event_per_parcel", "Cycles in which a dummy waited.", "dummy_stalls_per_parcel", "Waiting cycles of a dummy.",
    ):  # fmt: skip
        assert words in text, words
    assert "Numbers that their collectors, or events of one's own, ask to be drawn." in text
    for another in ("OVS-DPDK's poll-mode thread", "threads of ovs-vswitchd", "UDP flood at saturation", "*received*"):
        assert another not in text, another


@pytest.mark.long
def test_figures_draw_them_in_the_switchs_colour_with_units(result):
    code = """
from matplotlib.colors import to_hex
from vsprof.analysis import figures
result, drawn = load(sys.argv[1]), {}
for name in ("throughput", "counts", "context_switches"):
    shown = figures.show(result, name)
    axes = shown.figure.axes
    drawn[name] = [sorted({to_hex(bar.get_facecolor()) for one in axes for bar in one.patches}),
                   [one.get_xlabel() for one in axes], sorted(set(shown.table["metric"]))]
print(json.dumps([style.switch_colour("dummy-switch"), drawn]))
"""
    colour, drawn = json.loads(apart(code, result))
    assert colour == COLOUR
    assert COLOUR in drawn["throughput"][0]
    assert COLOUR in drawn["counts"][0]
    assert any("parcels heard (" in label and "pps)" in label for label in drawn["throughput"][1])
    assert {"sneezes_per_parcel", "dummy_event_per_parcel", "dummy_stalls_per_parcel"} <= set(drawn["counts"][2])
    assert any("dummy stalls per parcel" in label and "cycles/parcel" in label for label in drawn["counts"][1])
    assert "context_switches_per_parcel" in drawn["context_switches"][2]


@pytest.mark.long
def test_compare_has_the_same_rows_and_knows_what_is_better(result):
    code = """
[one] = of_cases(load(sys.argv[1]), "kernel-ovs", "dummy-switch")
rows = one.table[(one.table["traffic"] == "dummy_traffic") & (one.table["load"] == "saturation")]
print(json.dumps({row.metric: [row.source, row.verdict, row.better] for row in rows.itertuples()}))
"""
    found = json.loads(apart(code, result))
    assert found["nap"] == ["software", "more", "more"]
    assert found["packet_rate_received"] == ["software", "more", "more"]
    assert found["sneezes_per_parcel"][0] == "software"
    assert found["sneezes_per_parcel"][2] == "less"
    assert found["dummy_event_per_parcel"] == ["hardware", "less", "less"]
    assert found["hardware_dummy_stalls_per_parcel"] == ["hardware", "less", "less"]
