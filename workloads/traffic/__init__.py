# SPDX-License-Identifier: GPL-2.0-or-later
"""What is sent. Each file of this folder whose ``TRAFFIC`` is set is a kind of traffic; ``base`` has the interface."""
