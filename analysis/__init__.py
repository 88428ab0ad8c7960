# SPDX-License-Identifier: GPL-2.0-or-later
"""From a stored result to an explained report: load, metrics, stats, figures, explain, report.

Reads results and terms alone; a result can be analysed years later on a machine that has no switch.
"""
