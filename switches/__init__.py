# SPDX-License-Identifier: GPL-2.0-or-later
"""What forwards frames. Each file of this folder whose ``SWITCH`` is set is a switch; ``base`` has the interface."""
