# SPDX-License-Identifier: GPL-2.0-or-later
"""All places that name the version of the last release name the same."""

import datetime
import re
import tomllib

import yaml

from vsprof.terms import places


def test_package_citation_and_change_log_agree():
    package = tomllib.loads((places.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = yaml.safe_load((places.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    newest = re.search(r"^## (\d+\.\d+\.\d+) \((.+)\)$", (places.ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert package["version"] == cited["version"] == newest[1]
    assert datetime.datetime.strptime(newest[2], "%B %d, %Y").date() == cited["date-released"]
