# SPDX-License-Identifier: GPL-2.0-or-later
"""A real run, parsed again: kernel OVS between two VMs, 64-byte UDP frames at saturation (run/, as recorded by the lab).

The expected values were computed by hand from the files.
"""

import json
import math
import re
import shutil
from pathlib import Path

import pytest

from vsprof.collectors.base import Apart
from vsprof.runner import cli, parse
from vsprof.runner import experiment as experiments
from vsprof.terms import schema
from vsprof.terms.errors import RunFailed
from vsprof.terms.schema import FunctionCount, Number, StackCount

RUN = Path(__file__).with_name("run")
LABEL = "udp_flood-saturation"


@pytest.fixture(scope="module")
def rows():
    return parse.rows_of_run(RUN)


def value(rows, name, collector="udp_flood", **more):
    found = [row for row in rows if row["name"] == name and row["collector"] == collector and more.items() <= row.items()]
    assert len(found) == 1, f"{len(found)} rows of {name}"
    return found[0]["value"]


def test_every_row_has_every_column(rows):
    columns = {*schema.KEYS.names, *schema.NUMBER.names}
    assert all(columns <= row.keys() for row in rows)
    assert schema.table(rows).num_rows == len(rows) > 150


def test_every_row_says_where_it_belongs(rows):
    assert {row["run_id"] for row in rows} == {"r001"}
    assert {(row["switch"], row["access"], row["topology"], row["frame_bytes"]) for row in rows} == {
        ("kernel-ovs", "vhost-net", "vm2vm", 64)
    }
    assert {(row["traffic"], row["load"]) for row in rows} == {("udp_flood", "saturation")}
    assert {row["window"] for row in rows} == {"w1", "flood"}
    assert {row["source"] for row in rows} == {"software"}


def test_in_modelled_time_what_is_said_of_time_is_the_models(rows, tmp_path):
    shutil.copytree(RUN, tmp_path / "r001")
    run = json.loads((RUN / "run.json").read_text())
    (tmp_path / "r001" / "run.json").write_text(json.dumps({**run, "clock": "modelled"}))
    modelled = parse.rows_of_run(tmp_path / "r001")
    assert [row["value"] for row in modelled] == [row["value"] for row in rows]
    sources = {(row["name"], row["unit"]): row["source"] for row in modelled}
    assert (
        sources["packet_rate_received", "packets/s"]
        == sources["bit_rate_received", "bit/s"]
        == sources["window_seconds", "seconds"]
        == "model"
    )
    assert sources["packets_received", "packets"] == "software"
    assert {unit for (_, unit), source in sources.items() if source == "model"} <= {"packets/s", "bit/s", "seconds", "1/s"}


def test_the_ports_of_several_routes_count_together(rows, tmp_path):
    shutil.copytree(RUN, tmp_path / "r001")
    run = json.loads((RUN / "run.json").read_text())
    one, other = run.pop("sender_port"), run.pop("receiver_port")

    def rate(senders, receivers, name):
        (tmp_path / "r001" / "run.json").write_text(json.dumps({**run, "sender_ports": senders, "receiver_ports": receivers}))
        return value(parse.rows_of_run(tmp_path / "r001"), f"packet_rate_{name}")

    assert rate([one], [other], "out_of_switch") == value(rows, "packet_rate_out_of_switch")
    apart = [(rate([a], [b], "into_switch"), rate([a], [b], "out_of_switch")) for a, b in ((one, other), (other, one))]
    assert rate([one, other], [other, one], "into_switch") == pytest.approx(apart[0][0] + apart[1][0])
    assert rate([one, other], [other, one], "out_of_switch") == pytest.approx(apart[0][1] + apart[1][1])


def test_a_port_that_is_not_counted_among_others_that_are_is_an_error(tmp_path):
    shutil.copytree(RUN, tmp_path / "r001")
    run = json.loads((RUN / "run.json").read_text())
    (tmp_path / "r001" / "run.json").write_text(json.dumps({**run, "sender_ports": ["p1", "p9"], "receiver_ports": ["p2"]}))
    with pytest.raises(ValueError, match="not of all"):
        parse.rows_of_run(tmp_path / "r001")


def test_no_number_is_there_twice(rows):
    keys = [(row["collector"], row["name"], row["window"], row["role"], row["cpu"], row["mode"]) for row in rows]
    assert len(set(keys)) == len(keys)


def test_the_flood_lost_nothing_on_the_way_in_and_a_part_on_the_way_out(rows):
    flood = {hop: value(rows, f"packets_{hop}", window="flood") for hop in ("sent", "into_switch", "out_of_switch", "received")}
    assert flood == {"sent": 344313, "into_switch": 376572 - 32259, "out_of_switch": 362378 - 32259, "received": 362378 - 32259}


def test_rates_are_timed_by_the_clock_of_their_hop(rows):
    port_seconds = 1795237298.286525 - 1795237294.421197
    assert value(rows, "window_seconds") == pytest.approx(port_seconds, abs=1e-5)
    assert value(rows, "packet_rate_into_switch") == pytest.approx((360525 - 172404) / port_seconds, rel=1e-5)
    assert value(rows, "packet_rate_out_of_switch") == pytest.approx((346297 - 166235) / port_seconds, rel=1e-5)
    assert value(rows, "packet_rate_sent") == pytest.approx((363990 - 104260) / (1795237297.290554 - 1795237291.774766), rel=1e-5)
    assert value(rows, "bit_rate_received") == pytest.approx((21054580 - 6280960) * 8 / (1795237297.929033 - 1795237292.479241), rel=1e-5)


def test_the_collectors_numbers_are_there(rows):
    assert value(rows, "softirq_rcu", "softirqs", cpu=0) == 13315 - 13118
    assert value(rows, "softirq_net_rx", "softirqs", cpu=1) == 0
    assert value(rows, "cpu_kernel_seconds", "cpu_time", cpu=1) == pytest.approx((849 - 545) / 100)
    assert value(rows, "context_switches", "perf_software", cpu=0) == 1737
    assert {row["role"] for row in rows if row["cpu"] == 1} == {"vhost"}


def test_a_second_window_is_told_apart(tmp_path):
    run = shutil.copytree(RUN, tmp_path / "r001")
    for number in (2, 10):
        shutil.copytree(run / LABEL / "w1", run / LABEL / f"w{number}")
    windows = list(dict.fromkeys(row["window"] for row in parse.rows_of_run(run) if row["collector"] == "softirqs"))
    assert windows == ["w1", "w2", "w10"]


@pytest.fixture
def with_own(tmp_path, monkeypatch):
    """The run, with three windows that a collector had for itself."""

    class Slow(Apart):
        source = "model"

        def measure(self, seconds):
            raise AssertionError("nothing is measured when results are parsed")

        @classmethod
        def numbers(cls, recorded):
            assert recorded.begin == ""
            assert math.isnan(recorded.seconds)
            yield Number("printed", float(recorded.end), "events", recorded.placement.role_of_cpu(1), 1)

        @classmethod
        def functions(cls, recorded):
            role = recorded.placement.role_of_cpu(1)
            yield FunctionCount("instructions", float(recorded.end), "events", "kernel", "fdget", role, 1, "kernel")

        @classmethod
        def stacks(cls, recorded):
            yield StackCount("samples", float(recorded.end), "samples", "a;b (x)", recorded.placement.role_of_cpu(1), 1, "user")

    monkeypatch.setitem(experiments.COLLECTORS, "slow", Slow)
    run = shutil.copytree(RUN, tmp_path / "r001")
    for number in (1, 2, 10):
        folder = run / LABEL / f"slow-{number}"
        folder.mkdir()
        (folder / "slow.end").write_text(f"{number}")
    return run


def own(rows):
    return [row for row in rows if row["window"].startswith("slow-")]


def test_an_own_window_has_the_numbers_of_its_owner_alone(with_own):
    found = own(parse.rows_of_run(with_own))
    assert [(row["window"], row["value"]) for row in found] == [("slow-1", 1), ("slow-2", 2), ("slow-10", 10)]
    assert {(row["collector"], row["source"], row["role"], row["traffic"]) for row in found} == {("slow", "model", "vhost", "udp_flood")}


def test_own_windows_leave_all_other_numbers_as_they_were(with_own, rows):
    found = parse.rows_of_run(with_own)
    assert [row for row in found if row not in own(found)] == rows


def test_functions_are_rows_of_their_own_with_the_coordinates_of_their_window(with_own):
    found = parse.functions_of_run(with_own)
    assert [(row["window"], row["value"]) for row in found] == [("slow-1", 1), ("slow-2", 2), ("slow-10", 10)]
    shared = {
        "run_id": "r001",
        "traffic": "udp_flood",
        "load": "saturation",
        "switch": "kernel-ovs",
        "collector": "slow",
        "source": "model",
    }
    own = {"role": "vhost", "cpu": 1, "mode": "kernel", "object": "kernel", "function": "fdget", "name": "instructions", "unit": "events"}
    assert all((shared | own).items() <= row.items() for row in found)
    assert schema.table(found, schema.FUNCTION).column_names == [*schema.KEYS.names, "load", *schema.FUNCTION.names]


def test_stacks_are_rows_of_a_third_table(with_own):
    found = parse.stacks_of_run(with_own)
    assert [(row["window"], row["value"], row["stack"]) for row in found] == [(f"slow-{n}", n, "a;b (x)") for n in (1, 2, 10)]
    assert schema.table(found, schema.STACK).column_names == [*schema.KEYS.names, "load", *schema.STACK.names]


def test_a_window_may_tell_the_source_of_its_numbers(with_own, monkeypatch):
    told = lambda recorded: "hardware" if recorded.end == "2" else "software"  # noqa: E731
    monkeypatch.setattr(experiments.COLLECTORS["slow"], "source_of", told)
    for read in (parse.rows_of_run, parse.functions_of_run, parse.stacks_of_run):
        assert [row["source"] for row in own(read(with_own))] == ["software", "hardware", "software"]


def test_a_run_in_which_nobody_counts_by_function_has_no_such_rows():
    assert parse.functions_of_run(RUN) == []


@pytest.mark.parametrize("damage", ["emptied", "gone"])
def test_a_damaged_own_window_never_becomes_numbers(with_own, damage):
    piece = with_own / LABEL / "slow-2" / "slow.end"
    if damage == "emptied":
        piece.write_text("")
    else:
        piece.unlink()
    for read in (parse.rows_of_run, parse.functions_of_run):
        with pytest.raises((ValueError, OSError)):
            read(with_own)


@pytest.mark.parametrize(
    "piece", ["w1/softirqs.end", "w1/ports.end", "traffic/pktgen.txt", "traffic/hops.json", "w1/samples.json", "w1/softirqs.began"]
)
@pytest.mark.parametrize("damage", ["emptied", "gone"])
def test_a_damaged_recording_never_becomes_numbers(tmp_path, piece, damage):
    run = shutil.copytree(RUN, tmp_path / "r001")
    if damage == "emptied":
        (run / LABEL / piece).write_text("")
    else:
        (run / LABEL / piece).unlink()
    # What the runner records as a failed run.
    with pytest.raises((ValueError, KeyError, OSError)):
        parse.rows_of_run(run)


def test_what_the_model_recorded_becomes_functions_and_parsing_again_gives_the_same(tmp_path):
    run = shutil.copytree(RUN, tmp_path / "r001")
    (run / LABEL / "uarch_model-1").mkdir()
    shutil.copy(Path(__file__).parents[1] / "collectors" / "captured" / "uarch_model.end", run / LABEL / "uarch_model-1")
    found = parse.functions_of_run(run)
    fdget = [row for row in found if row["function"] == "fdget" and row["name"] == "instructions" and row["cpu"] == 0]
    assert {(row["collector"], row["source"], row["window"], row["object"]) for row in fdget} == {
        ("uarch_model", "model", "uarch_model-1", "kernel")
    }
    assert parse.functions_of_run(run) == found
    assert not {row["name"] for row in parse.rows_of_run(run) if row["window"] != "uarch_model-1"} & {"instructions"}


@pytest.mark.parametrize("count", [0, 1])
def test_the_command_parse_writes_both_tables(root, count):
    folder = root / "20261121-000000-vm2vm"
    run = shutil.copytree(RUN, folder / "raw" / "r001")
    if count:
        (run / LABEL / "uarch_model-1").mkdir()
        shutil.copy(Path(__file__).parents[1] / "collectors" / "captured" / "uarch_model.end", run / LABEL / "uarch_model-1")
    (folder / "manifest.json").write_text(
        json.dumps({"name": "vm2vm", "experiment": {}, "findings": [], "runs": [{"run_id": "r001", "status": "done"}]})
    )
    assert cli.main(["parse", str(folder)]) == 0
    assert schema.read(folder / "measurements.parquet").num_rows > 150
    for path in (folder / "functions.parquet", run / "functions.parquet"):
        assert bool(schema.read(path).num_rows) == bool(count)


def test_parsing_warns_of_a_unit_that_nobody_knows(root, capsys, monkeypatch):
    folder = root / "20261121-000000-vm2vm"
    shutil.copytree(RUN, folder / "raw" / "r001")
    (folder / "manifest.json").write_text(
        json.dumps({"name": "vm2vm", "experiment": {}, "findings": [], "runs": [{"run_id": "r001", "status": "done"}]})
    )
    monkeypatch.setattr(parse.COLLECTORS["interrupts"], "numbers", lambda recorded: [schema.Number("pages", 1, "event")])
    assert cli.main(["parse", str(folder)]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("vsprof: interrupts has pages in 'event', which is no unit that vsprof knows: ")
    assert printed.out.strip() == str(folder / "measurements.parquet")


def test_a_parser_that_is_wrong_in_any_way_is_told_with_its_place(monkeypatch):
    """A user's own may do anything: the run is called failed, and the campaign goes on."""
    monkeypatch.setattr(parse.COLLECTORS["interrupts"], "numbers", lambda recorded: [1 / 0])
    with pytest.raises(RunFailed, match=rf"ZeroDivisionError: division by zero \({re.escape(__file__)}, line \d+\)"):
        parse.tables_of_run(RUN)


def test_a_parser_that_breaks_is_told_and_is_no_crash_of_vsprof(root, capsys, monkeypatch):
    folder = root / "20261121-000000-vm2vm"
    shutil.copytree(RUN, folder / "raw" / "r001")
    (folder / "manifest.json").write_text(
        json.dumps({"name": "vm2vm", "experiment": {}, "findings": [], "runs": [{"run_id": "r001", "status": "done"}]})
    )

    def numbers(recorded):
        yield schema.Number("pages", 1, "events", "all")

    monkeypatch.setattr(parse.COLLECTORS["interrupts"], "numbers", numbers)
    assert cli.main(["parse", str(folder)]) == 1
    assert "what run r001 recorded can't be parsed: ValueError: pages: role 'all' is none of switch" in " ".join(
        capsys.readouterr().err.split()
    )
