# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by all packages: the words, the schema, the units and the kinds of errors."""
