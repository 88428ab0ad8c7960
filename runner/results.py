# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept of a campaign: results/<time>-<experiment>/ with its manifest, measurements and everything printed.

Each finished run has its numbers in raw/<run_id>/measurements.parquet; measurements.parquet joins them and is rewritten,
in one step, after each run: whatever happens next, nothing measured is lost. The same holds for functions.parquet and stacks.parquet.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from terms import errors, schema

ROOT = Path(os.environ.get("VSPROF_RESULTS") or Path(__file__).resolve().parents[1] / "results").absolute()
"""Where campaigns are kept: results/ of the project, or the folder that VSPROF_RESULTS names."""
LATEST = "latest"
MANIFEST = "manifest.json"
MEASUREMENTS = "measurements.parquet"
FUNCTIONS = "functions.parquet"
STACKS = "stacks.parquet"

Rows = Iterable[Mapping[str, object]]


def find(name: str | Path, root: Path = ROOT) -> Path | None:
    """The folder of a result, by its path or by its name below results/ (``latest`` too); None where there is none."""
    return next((path for path in (Path(name), root / name) if (path / MANIFEST).is_file()), None)


class Results:
    """One campaign's folder. ``manifest`` is a plain dictionary; ``save`` writes it."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest

    @classmethod
    def create(cls, manifest: dict[str, Any], root: Path = ROOT) -> Results:
        name = f"{datetime.datetime.now():%Y%m%d-%H%M%S}-{manifest['name']}"
        try:
            folder = _new_folder(root, name)
            (folder / "raw").mkdir()
        except OSError as error:
            raise errors.can_not_write(root / name, error) from error
        results = cls(folder, manifest)
        results.save()
        return results

    @classmethod
    def open(cls, name: str | Path, root: Path = ROOT) -> Results:
        """Open a campaign by its folder, or by its name below results/ (``latest`` too). Raises ``BadInput``."""
        folder = find(name, root)
        if folder is None:
            known = [p.parent.name for p in sorted(root.glob(f"*/{MANIFEST}"))]
            raise errors.no_result(str(name), known)
        try:
            manifest = json.loads((folder / MANIFEST).read_text())
            if not isinstance(manifest, dict) or "runs" not in manifest:
                raise ValueError("it lists no runs")
        except ValueError as error:
            raise errors.bad_manifest(folder / MANIFEST, error) from error
        return cls(folder.resolve(), manifest)

    def save(self) -> None:
        """Write the manifest; a reader sees the old one or the new one, never a half."""
        partial = self.folder / f"{MANIFEST}.partial"
        try:
            partial.write_text(json.dumps(self.manifest, indent=1, default=str) + "\n")
            os.replace(partial, self.folder / MANIFEST)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise errors.can_not_write(self.folder, error) from error

    def run_folder(self, run_id: str) -> Path:
        return self.folder / "raw" / run_id

    def record(self, run_id: str, rows: Rows, functions: Rows = (), stacks: Rows = ()) -> None:
        """Keep a finished run's numbers, and those of single functions and call stacks; join them with those before."""
        try:
            schema.write(self.run_folder(run_id) / MEASUREMENTS, rows)
            schema.write(self.run_folder(run_id) / FUNCTIONS, functions, schema.FUNCTION)
            schema.write(self.run_folder(run_id) / STACKS, stacks, schema.STACK)
            self.join()
        except OSError as error:
            raise errors.can_not_write(self.folder, error) from error

    def join(self) -> None:
        """Write measurements.parquet, functions.parquet and stacks.parquet anew from the runs that are done."""
        done = [self.run_folder(run["run_id"]) for run in self.manifest["runs"] if run["status"] == "done"]
        schema.join(self.folder / MEASUREMENTS, [folder / MEASUREMENTS for folder in done])
        for name, layout in ((FUNCTIONS, schema.FUNCTION), (STACKS, schema.STACK)):
            # A run of an earlier vsprof has none.
            schema.join(self.folder / name, [path for folder in done if (path := folder / name).is_file()], layout)

    def find(self, text: str) -> None:
        """Note a finding in the manifest, once."""
        finding = {"level": "warning", "text": text}
        if finding not in self.manifest["findings"]:
            self.manifest["findings"].append(finding)

    def finish(self, status: str) -> None:
        """Mark the campaign ``complete`` or ``partial``; the newest complete one becomes results/latest."""
        self.manifest.update(status=status, ended=now())
        self.save()
        if status == "complete" and self.folder.parent == ROOT:
            fresh = ROOT / f".{LATEST}.{os.getpid()}"
            fresh.symlink_to(self.folder.name)
            os.replace(fresh, ROOT / LATEST)


def _new_folder(root: Path, name: str) -> Path:
    """Make a folder nobody has; a second campaign of the same second gets a number."""
    root.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        folder = root / (name if number == 1 else f"{name}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise AssertionError("itertools.count ended")


def now() -> str:
    """The time of day with its zone, to the second."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def newest() -> Path:
    """The campaign begun last, complete or not. Raises ``BadInput`` where there is none."""
    found = sorted(path.parent for path in ROOT.glob(f"[0-9]*/{MANIFEST}"))
    if not found:
        raise errors.no_result("the newest", [])
    return found[-1]
