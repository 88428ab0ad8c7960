# SPDX-License-Identifier: GPL-2.0-or-later
"""Execute a text notebook on one result and write report.ipynb and a report.html that stands alone.

Nothing but the result is needed: `make report RUN=…` works years later, on another machine.
"""

import html
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jupytext
import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbconvert import HTMLExporter

from vsprof.analysis import messages, stacks
from vsprof.analysis.load import load
from vsprof.terms import files, places

TEMPLATE = Path(__file__).with_name("template")
CELL_SECONDS = 1800
"""Many times what any cell takes, for the machine may be busy and the result long. A kernel that dies is noticed at once."""
OUTSIDE = re.compile(
    r"""(?:<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=|@import\s+|\bfrom\s+|\burl\()["']?(?:https?:)?//[^"'\s)>]*""",
    re.IGNORECASE,
)
"""What a browser would load from elsewhere."""


def build(run_dir: str | Path, notebook: str | Path | None = None) -> Path:
    """Write report.ipynb and report.html into `run_dir`, and a flame graph a case where stacks were recorded; return report.html's path.

    `notebook` is a jupytext file, or the name of one in notebooks/; without it, the experiment's own. Both files
    appear whole or not at all. VsprofError names the cell that failed; a result that can't be read is BadInput.
    """
    result = load(run_dir)
    source = find_notebook(notebook or result.manifest.get("experiment", {}).get("notebook") or result.manifest["name"])
    page = execute(source, result.path)
    text = to_html(page, source)
    _write(result.path / "report.ipynb", nbformat.writes(page) + "\n")
    for graph in stacks.of(result):
        _write(result.path / f"{graph.name}.svg", graph.svg(interactive=True))
    return _write(result.path / "report.html", text)


def page(folder: str | Path, notebook: str | Path, target: Path) -> Path:
    """Execute `notebook` on what lies in `folder`, which need be no result, and write the page `target`; return its path.

    As with `build`, it appears whole or not at all, and VsprofError names the cell that failed.
    """
    source = find_notebook(notebook)
    return _write(target, to_html(execute(source, Path(folder).resolve()), source))


def find_notebook(notebook: str | Path) -> Path:
    """The notebook's path; a bare name (`vm2vm`) is looked up in notebooks/."""
    given = Path(notebook)
    known = (folder / name for folder in places.folders("notebooks") for name in (given.name, f"{given.name}.py"))
    for path in (given, places.ROOT / given, *known):
        if path.is_file():
            return path
    raise messages.no_notebook(given)


def execute(source: Path, run_dir: Path) -> nbformat.NotebookNode:
    """Run every cell on the result in `run_dir`."""
    page = _with_parameters(jupytext.read(source), run_dir)
    page.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    # Beside vsprof's own folder, so that the kernel has this vsprof and no other.
    paths = [str(places.IMPORTED_FROM), *filter(None, [os.environ.get("PYTHONPATH")])]
    # The notebook draws no window and must not write into the user's configuration.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "MPLBACKEND": "agg"}
    # Unix sockets: no port that could be taken or reached by others.
    with tempfile.TemporaryDirectory(prefix="vsprof-") as sockets:
        manager = AsyncKernelManager(transport="ipc", ip=f"{sockets}/kernel", connection_file=f"{sockets}/kernel.json")
        client = NotebookClient(page, km=manager, timeout=CELL_SECONDS, kernel_name="python3")
        try:
            client.execute(cleanup_kc=True, env=environment, cwd=str(places.ROOT))
        except CellExecutionError as error:
            failed = [(place, cell.source) for place, cell in enumerate(page.cells, 1) if _outputs(cell, "error")]
            place, code = failed[0] if failed else (0, "")
            raise messages.notebook_failed(source, place, code, f"{error.ename}: {error.evalue}") from error
        except (DeadKernelError, TimeoutError) as error:
            raise messages.notebook_stopped(source, error) from error
    for cell in page.cells:
        # Times of execution would make two reports of one result differ.
        cell.metadata.pop("execution", None)
    return page


def to_html(page: nbformat.NotebookNode, source: Path) -> str:
    """One HTML page with everything in it; VsprofError if it would load anything from elsewhere."""
    exporter = HTMLExporter(template_name="basic", template_file=str(TEMPLATE / "report.html.j2"))
    resources = {
        "vsprof_title": html.escape(next(_headings(page, "# "), "vsprof")),
        "vsprof_style": (TEMPLATE / "style.css").read_text(encoding="utf-8"),
        # nbconvert makes anchors by replacing blanks.
        "vsprof_sections": [(html.escape(name), html.escape(name.replace(" ", "-"))) for name in _headings(page, "## ")],
    }
    text, _ = exporter.from_notebook_node(page, resources=resources)
    if outside := OUTSIDE.search(text):
        raise messages.outside_reference(source, outside.group())
    return text


def _with_parameters(page: nbformat.NotebookNode, run_dir: Path) -> nbformat.NotebookNode:
    """Set `result_dir` in a cell below the one tagged `parameters`, as papermill does: so papermill can run report.ipynb on another."""
    cells = page.cells
    if (place := next((at for at, cell in enumerate(cells, 1) if "parameters" in cell.metadata.get("tags", [])), None)) is not None:
        given = nbformat.v4.new_code_cell(f"result_dir = {str(run_dir)!r}", id="result", metadata={"tags": ["injected-parameters"]})
        cells.insert(place, given)
    for place, cell in enumerate(cells):
        cell["id"] = f"cell-{place}"  # jupytext makes random ones
    return page


def _outputs(cell: nbformat.NotebookNode, kind: str) -> list[nbformat.NotebookNode]:
    """A cell's outputs that are an error, or that hold some MIME type."""
    return [one for one in cell.get("outputs", []) if one.output_type == kind or kind in one.get("data", {})]


def _headings(page: nbformat.NotebookNode, mark: str) -> Iterator[str]:
    """The headings of a level in the page's Markdown: a cell's own, or what it displayed."""
    for cell in page.cells:
        shown = [output.data["text/markdown"] for output in _outputs(cell, "text/markdown")]
        for text in [cell.source] if cell.cell_type == "markdown" else shown:
            yield from (line.removeprefix(mark).strip() for line in text.splitlines() if line.startswith(mark))


def _write(path: Path, text: str) -> Path:
    """A reader (or a crash) sees either the old file or the whole new one."""
    files.replace(path, lambda partial: partial.write_text(text, encoding="utf-8"))
    return path
