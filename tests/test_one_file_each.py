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
FILES = {
    "switches/dummy_switch.py": '''
from vsprof.switches.linux_bridge import LinuxBridge

class Dummy(LinuxBridge):
    words, rank, colour = "the dummy switch", 15, 7

SWITCH = Dummy
''',
    "workloads/traffic/dummy_traffic.py": '''
from vsprof.terms.vocabulary import Data, Headline
from vsprof.workloads.traffic.udp_flood import UdpFlood

class Dummy(UdpFlood):
    words, rank = "dummy traffic", 25
    data = Data("dummy", "dummy heard", "packet_rate_received")
    headlines = (Headline("packet_rate_received", "dummies heard", ("saturation",), "more"),)

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
        "mood": NumberWords("the mood of the host", better="more"),
    }

    @classmethod
    def numbers(cls, recorded):
        yield Number("sneezes", float(recorded.end), "events")
        yield Number("mood", 0.25, "fraction")

COLLECTOR = Dummy
''',
    "events/mine.json": json.dumps([{
        "EventName": "dummy_event", "EventCode": "0xae", "UMask": "0x02", "Better": "less", "Figure": "counts",
        "BriefDescription": "Cycles in which a dummy waited."
    }]),
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
        for number in (Number("sneezes", 6.0 * more, "events"), Number("mood", 0.25 * more, "fraction")):
            rows.append(schema.row(where, "dummy_collector", "software", number))
        rows.append(schema.row(where, "perf_stat", "hardware", Number("dummy_event", 9e5 * more, "events", cpu=1)))
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
        "the dummy switch", "dummy traffic, saturation", "dummies heard", "the dummy collector", "sneezes_per_dummy", "mood",
        "the mood of the host", "processor events", "In dummy traffic, saturation, kernel OVS delivers", "dummy_event_per_dummy", "Cycles in which a dummy waited.",
    ):  # fmt: skip
        assert words in text, words
    assert "Numbers that their collectors, or events of one's own, ask to be drawn." in text
    assert apart("load(sys.argv[1]); print(style.switch_colour('dummy-switch'))", result) == "#c51b7d"


def test_compare_has_the_same_rows_and_knows_what_is_better(result):
    code = """
[one] = of_cases(load(sys.argv[1]), "kernel-ovs", "dummy-switch")
rows = one.table[(one.table["traffic"] == "dummy_traffic") & (one.table["load"] == "saturation")]
print(json.dumps({row.metric: [row.source, row.verdict, row.better] for row in rows.itertuples()}))
"""
    found = json.loads(apart(code, result))
    assert found["mood"] == ["software", "more", "more"]
    assert found["packet_rate_received"] == ["software", "more", "more"]
    assert found["sneezes_per_dummy"][0] == "software"
    assert found["sneezes_per_dummy"][2] == "less"
    assert found["dummy_event_per_dummy"] == ["hardware", "less", "less"]
