# SPDX-License-Identifier: GPL-2.0-or-later
"""Who sends and receives: virtual machines, containers, or the host's own network stack. ``base`` has the interface."""
