# SPDX-License-Identifier: GPL-2.0-or-later
"""What is put under load: ``topologies`` (who talks to whom), ``endpoints`` (VM, host) and ``traffic`` (what they send)."""
