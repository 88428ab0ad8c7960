# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a report takes, and how much memory, over a campaign of a million measurement rows.

The campaign is the reference result, its repetitions copied under new numbers until there are rows enough, with what was counted by
function copied alike: every figure has something to draw, and it is as wide as a real one. It is no measurement of a switch, and is
removed at the end.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vsprof.analysis.stats import Estimate
from vsprof.bench import table

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "results" / "reference"
ROWS = 1_000_000
TIMEOUT = 900
BUILD = "import sys; from vsprof.analysis import report; report.build(sys.argv[1])"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="vsprof-bench-") as folder:
        rows = enlarge(REFERENCE, Path(folder), asked.rows)
        seconds, peak = build(Path(folder))
    found = {
        "report_seconds": (Estimate(seconds, None, None, 1), "seconds"),
        "peak_rss_bytes": (Estimate(peak, None, None, 1), "bytes"),
        "measurement_rows": (Estimate(float(rows), None, None, 1), "rows"),
    }
    print(table.report("bench-analysis", found))
    return 0


def enlarge(source: Path, folder: Path, rows: int) -> int:
    """Write the result `source` into `folder`, its repetitions copied until there are at least `rows`; return how many rows it has."""
    manifest = json.loads((source / "manifest.json").read_text())
    one = pq.read_metadata(source / "measurements.parquet").num_rows
    copies = -(-rows // one)
    repetitions = max(run["repetition"] for run in manifest["runs"])
    for name in ("measurements", "functions", "stacks"):
        if (source / f"{name}.parquet").exists():
            _copy(source / f"{name}.parquet", folder / f"{name}.parquet", copies, repetitions)
    manifest["runs"] = [_run(run, number, repetitions) for number in range(copies) for run in manifest["runs"]]
    manifest["experiment"]["repetitions"] = copies * repetitions
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return one * copies


def build(folder: Path) -> tuple[float, float]:
    """Seconds that the report took in a process of its own, and the largest resident set [bytes] of it or of its notebook's kernel."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", BUILD, str(folder)], cwd=ROOT, env=os.environ, timeout=TIMEOUT, check=True)
    seconds = time.monotonic() - began
    # Of all processes that ended by now, the largest one: kilobytes, by getrusage(2).
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024.0


def _run(run: dict[str, Any], number: int, repetitions: int) -> dict[str, Any]:
    return {**run, "run_id": f"{run['run_id']}c{number}", "repetition": run["repetition"] + number * repetitions}


def _copy(source: Path, target: Path, copies: int, repetitions: int) -> None:
    """The table again and again, in row groups of their own: a million rows need not be in memory here, either."""
    whole = pq.read_table(source)
    with pq.ParquetWriter(target, whole.schema, compression="zstd") as writer:
        for number in range(copies):
            again = _set(whole, "run_id", pc.binary_join_element_wise(whole["run_id"], f"c{number}", ""))
            writer.write_table(_set(again, "repetition", pc.add(whole["repetition"], pa.scalar(number * repetitions, pa.int32()))))


def _set(whole: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    place = whole.column_names.index(name)
    return whole.set_column(place, whole.schema.field(name), values)


if __name__ == "__main__":
    sys.exit(main())
