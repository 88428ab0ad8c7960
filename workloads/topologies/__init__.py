# SPDX-License-Identifier: GPL-2.0-or-later
"""Who talks to whom. Each file of this folder whose ``TOPOLOGY`` is set is a topology; ``base`` has the interface."""
