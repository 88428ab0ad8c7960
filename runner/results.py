# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept of a campaign: results/<time>-<experiment>/ with its manifest, measurements and everything printed.

Each finished run has its numbers in raw/<run_id>/measurements.parquet; measurements.parquet joins them and is rewritten,
in one step, after each run. The same holds for functions.parquet, stacks.parquet and timeline.parquet. The manifest calls a run done only
when its own files are on the disk, and has the checksum of each: whatever happens next, nothing measured is lost, and what is damaged is
noticed.
"""

import contextlib
import datetime
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from vsprof.runner import messages
from vsprof.terms import errors, files, locks, places, schema

ROOT = places.RESULTS
"""Where campaigns are kept."""
LATEST = "latest"
MANIFEST = "manifest.json"
MEASUREMENTS = "measurements.parquet"
FUNCTIONS = "functions.parquet"
STACKS = "stacks.parquet"
TIMELINE = "timeline.parquet"
TABLES = {MEASUREMENTS: schema.NUMBER, FUNCTIONS: schema.FUNCTION, STACKS: schema.STACK, TIMELINE: schema.SPAN}
"""What a run has, and its result."""
RAW = "raw"
"""Of a result, the folder with what each run recorded."""
LOCK, SWEEP_LOCK = ".lock", ".sweep.lock"

Rows = Iterable[Mapping[str, object]]


def find(name: str | Path, root: Path = ROOT) -> Path | None:
    """The folder of a result, by its path or by its name below results/ (``latest`` too); None where there is none."""
    return next((path for path in (Path(name), root / name) if (path / MANIFEST).is_file()), None)


class Results:
    """One campaign's folder. ``manifest`` is a plain dictionary; ``save`` writes it."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest

    @classmethod
    def create(cls, manifest: dict[str, Any], root: Path = ROOT) -> Self:
        name = f"{datetime.datetime.now():%Y%m%d-%H%M%S}-{manifest['name']}"
        try:
            folder = _new_folder(root, name)
            (folder / RAW).mkdir()
        except OSError as error:
            raise messages.can_not_write(root / name, error) from error
        results = cls(folder, manifest)
        results.save()
        try:
            # The folder's own name: what is synced in it is of no use without.
            files.sync(root)
        except OSError as error:
            raise messages.can_not_write(root / name, error) from error
        return results

    @classmethod
    def open(cls, name: str | Path, root: Path = ROOT) -> Self:
        """Open a campaign by its folder, or by its name below results/ (``latest`` too). Raises ``BadInput``."""
        folder = find(name, root)
        if folder is None:
            raise messages.no_result(str(name), [folder.name for _, folder in _begun(root)])
        return cls(folder.resolve(), _manifest(folder / MANIFEST))

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """While it lasts no other vsprof changes this result. Raises ``BadInput`` where one does now."""
        try:
            lock = locks.take(self.folder / LOCK, f"the result {self.folder}")
        except OSError as error:
            raise messages.can_not_write(self.folder, error) from error
        with lock:
            # Whoever held it before may have changed it since we read it.
            self.manifest = _manifest(self.folder / MANIFEST)
            yield

    @contextlib.contextmanager
    def unswept(self) -> Iterator[None]:
        """While it lasts no other vsprof has runs of this result done, be it as jobs, which change its manifest only at their end. Raises
        ``BadInput`` where one does now."""
        try:
            lock = locks.take(self.folder / SWEEP_LOCK, f"the result {self.folder}")
        except OSError as error:
            raise messages.can_not_write(self.folder, error) from error
        with lock:
            yield

    def save(self) -> None:
        """Write the manifest; a reader, or a crash, sees the old one or the new one, never a half."""
        text = json.dumps(self.manifest, indent=1, default=str) + "\n"
        try:
            files.replace(self.folder / MANIFEST, lambda partial: partial.write_text(text))
        except OSError as error:
            raise messages.can_not_write(self.folder, error) from error

    def check_raw(self) -> None:
        """Raise ``BadInput`` where what was recorded is not kept: then the tables are all that there is of the runs that are done."""
        if any(run["status"] == "done" for run in self.manifest["runs"]) and not (self.folder / RAW).is_dir():
            raise messages.nothing_recorded(self.folder)

    def run_folder(self, run_id: str) -> Path:
        return self.folder / RAW / run_id

    def record(self, run_id: str, rows: Rows, functions: Rows = (), stacks: Rows = (), spans: Rows = ()) -> None:
        """Keep a finished run's tables; call the run done; join them with those before.

        In this order: a disk that is full at any moment leaves a run that is done and has its numbers, or one that is not done.
        """
        self.keep(run_id, rows, functions, stacks, spans)
        self.join()

    def keep(self, run_id: str, rows: Rows, functions: Rows = (), stacks: Rows = (), spans: Rows = ()) -> None:
        """The same without joining them."""
        run = next(run for run in self.manifest["runs"] if run["run_id"] == run_id)
        if run.pop("kept", None):
            # Else one that is parsed again, and interrupted now, had tables of other checksums than the manifest's: damaged, by all signs.
            self.save()
        given = dict(zip(TABLES, (rows, functions, stacks, spans), strict=True))
        try:
            run["kept"] = {name: self._keep(self.run_folder(run_id) / name, table, TABLES[name]) for name, table in given.items()}
            files.sync(self.run_folder(run_id).parent)
        except OSError as error:
            raise messages.can_not_write(self.folder, error) from error
        run["status"] = "done"
        self.save()

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """What was kept meanwhile is joined behind it, however it ends."""
        try:
            yield
        except BaseException:
            # What ended it is what must be told.
            with contextlib.suppress(errors.VsprofError):
                self.join()
            raise
        self.join()

    def _keep(self, path: Path, rows: Rows, layout: pa.Schema) -> dict[str, Any]:
        return {"rows": schema.write(path, rows, layout), "blake2b": files.checksum(path)}

    def damaged(self) -> dict[str, str]:
        """Of each run that the manifest calls done and whose numbers are not as they were kept: why not."""
        done = [run for run in self.manifest["runs"] if run["status"] == "done"]
        return {run["run_id"]: why for run in done if (why := self._damage(run))}

    def _damage(self, run: Mapping[str, Any]) -> str | None:
        # An earlier vsprof noted no checksums: then the table must be one.
        for name, kept in (run.get("kept") or {MEASUREMENTS: None}).items():
            path = self.run_folder(run["run_id"]) / name
            try:
                if kept is None:
                    schema.read(path)
                elif files.checksum(path) != kept["blake2b"]:
                    return messages.not_as_kept(path)
            except (OSError, ValueError) as error:
                return messages.can_not_read(path, error)
        return None

    def join(self) -> None:
        """Write the tables again from the runs that are done."""
        done = [self.run_folder(run["run_id"]) for run in self.manifest["runs"] if run["status"] == "done"]
        try:
            for name, layout in TABLES.items():
                # A run of an earlier vsprof has measurements alone.
                parts = [folder / name for folder in done if name == MEASUREMENTS or (folder / name).is_file()]
                schema.join(self.folder / name, parts, layout)
        except OSError as error:
            raise messages.can_not_write(self.folder, error) from error

    def find(self, text: str) -> None:
        """Note a finding in the manifest, once."""
        finding = {"level": "warning", "text": text}
        if finding not in self.manifest["findings"]:
            self.manifest["findings"].append(finding)

    def finish(self, status: str) -> None:
        """Mark the campaign ``complete`` or ``partial``; the newest complete one becomes results/latest."""
        self.manifest.update(status=status, ended=now())
        self.save()
        if status == "complete" and ROOT.is_dir() and self.folder.parent.samefile(ROOT):
            fresh = ROOT / f".{LATEST}.{os.getpid()}"
            fresh.symlink_to(self.folder.name)
            os.replace(fresh, ROOT / LATEST)


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text())
        if lacking := [name for name in ("runs", "experiment", "name") if not isinstance(manifest, dict) or name not in manifest]:
            raise ValueError(f"it has no {', no '.join(lacking)}")
    except ValueError as error:
        raise messages.bad_manifest(path, error) from error
    return manifest


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
    if not (found := _begun(ROOT)):
        raise messages.no_result("the newest", [])
    return found[-1][1]


def _begun(root: Path) -> list[tuple[datetime.datetime, Path]]:
    """The campaigns below ``root`` with the times when they began, the newest last."""
    return sorted((began, path.parent) for path in root.glob(f"*/{MANIFEST}") if path.parent.name != LATEST and (began := _began(path)))


def _began(manifest: Path) -> datetime.datetime | None:
    """When a campaign began. Not by its folder's name: that is local time, which goes back once a year, and with each journey west."""
    try:
        return datetime.datetime.fromisoformat(_manifest(manifest)["started"]).astimezone()
    except (errors.BadInput, OSError, KeyError, TypeError, ValueError):
        return None
