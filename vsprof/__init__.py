# SPDX-License-Identifier: GPL-2.0-or-later
"""vsprof: why is one virtual switch faster than another, on this CPU, for this traffic?

The one name under which the code is imported. In a clone its packages (analysis, runner, …) stand beside this folder, where users look
for them; in a wheel they are in it.
"""

from pathlib import Path

_CLONE = Path(__file__).resolve().parents[1]
if (_CLONE / "pyproject.toml").is_file():
    __path__.append(str(_CLONE))


def load(result="latest"):
    """Read a result.

    Parameters
    ----------
    result : str or pathlib.Path
        Its folder, or its name below results/; ``latest`` is the newest.

    Returns
    -------
    vsprof.api.Run
        Its tables, metrics, ratios with intervals, decomposition of cycles and figures.

    Raises
    ------
    vsprof.terms.errors.BadInput
        If there is no such result, or it can't be read; the text names the file.
    """
    # Only now: the command line, which imports this, need not wait for pandas and matplotlib.
    from vsprof import api  # noqa: PLC0415

    return api.load(result)


def __getattr__(name):
    """``vsprof.__version__``, as it was installed."""
    if name != "__version__":
        raise AttributeError(f"module 'vsprof' has no attribute {name!r}")
    from importlib import metadata  # noqa: PLC0415

    return metadata.version("vsprof")
