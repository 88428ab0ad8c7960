# SPDX-License-Identifier: GPL-2.0-or-later
"""Benchmarks: each module is run by ``make bench-<module>``, prints a table, and writes build/bench/bench-<module>.json."""
