# SPDX-License-Identifier: GPL-2.0-or-later
"""The roof: the command line, and the only orchestration there is.

Read ``cli`` (what can be asked), ``experiment`` (the YAML and its cases), ``campaign`` (all runs of an experiment),
``run`` (one run), ``window`` (one measured interval), ``results`` (what is kept).
"""
