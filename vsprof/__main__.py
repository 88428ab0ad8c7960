# SPDX-License-Identifier: GPL-2.0-or-later
"""``python -m vsprof``: the command, of that Python."""

import sys

from vsprof.runner.entry import main

sys.exit(main())
