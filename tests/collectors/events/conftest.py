# SPDX-License-Identifier: GPL-2.0-or-later
"""These tests see the shipped files alone, whatever the user who runs them has added."""

from __future__ import annotations

import os

from vsprof.collectors.events import catalogue

os.environ[catalogue.OWN_FOLDER] = os.devnull
