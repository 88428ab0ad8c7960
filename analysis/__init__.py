# SPDX-License-Identifier: GPL-2.0-or-later
"""From a stored result to an explained report: load, metrics, stats, figures, explain, report.

Reads results and terms alone; a result can be analysed years later on a machine that has no switch.
"""

from pathlib import Path
from typing import Any

import yaml


def read(module: str | Path) -> Any:
    """What stands in the YAML file beside a module, whose ``__file__`` is given."""
    return yaml.safe_load(Path(module).with_suffix(".yaml").read_text(encoding="utf-8"))
