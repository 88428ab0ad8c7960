# SPDX-License-Identifier: GPL-2.0-or-later
"""The emulated host behind the testbed ``lab``: its image, its snapshots and its machine.

Read ``cache`` (where things lie), ``image`` (how the root file system is built), ``machine`` (one QEMU process),
``snapshot`` (booted once, resumed from then on).
"""
