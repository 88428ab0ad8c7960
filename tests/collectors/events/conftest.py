# SPDX-License-Identifier: GPL-2.0-or-later
"""These tests see the shipped files alone, whatever the user who runs them has added."""

import os

from vsprof.terms import places

os.environ[places.EVENTS_NAMED] = os.devnull
