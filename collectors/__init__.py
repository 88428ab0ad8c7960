# SPDX-License-Identifier: GPL-2.0-or-later
"""The instruments, one a file. Each file of this folder whose ``COLLECTOR`` is set is one; ``base`` has the interface."""
