# SPDX-License-Identifier: GPL-2.0-or-later
"""The ground floor: the words, the schema, the units and the messages that all rooms share."""
