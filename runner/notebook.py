# SPDX-License-Identifier: GPL-2.0-or-later
"""A result's notebook, opened in Jupyter: a copy, so that the report stays as it was written and changes are kept."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from vsprof.runner import messages
from vsprof.terms import places

NAME, REPORT = "notebook.ipynb", "report.ipynb"


def copy(folder: Path) -> Path:
    """The user's own copy of the notebook of the result in ``folder``: made once, and never written again."""
    own = folder / NAME
    if not own.exists():
        shutil.copy(folder / REPORT, own)
    return own


def show(path: Path) -> None:
    """Become Jupyter, with this vsprof in its kernels. Raises ``BadInput`` where it is not installed beside vsprof."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise messages.no_jupyter(Path(sys.executable))
    paths = [str(places.IMPORTED_FROM), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    os.execve(sys.executable, [sys.executable, "-m", "jupyterlab", "--ip=127.0.0.1", str(path)], environment)
