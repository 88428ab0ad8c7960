# SPDX-License-Identifier: GPL-2.0-or-later
"""What an event outside the cores is programmed with beside code and masks: perf's words, by the keys of vendors' lists.

Each kind of unit has registers of its own: which queue of a socket's input and output counts, reads or writes of a channel of memory,
which kind of node of a mesh.
"""

import re

from vsprof.collectors.events import messages

UNITS = {
    **{"L3PMC": "amd_l3", "DFPMC": "amd_df", "UMCPMC": "amd_umc", "arm_cmn": "arm_cmn"},
    **{"CBO": "uncore_cbox", "SBO": "uncore_sbox", "QPI LL": "uncore_qpi", "UPI LL": "uncore_upi", "iMPH-U": "uncore_arb"},
}
"""The kernel's name of a PMU outside the cores, by the vendors' word; any other is ``uncore_`` and the word in small letters."""
TERMS = {
    **{"port_mask": "ch_mask", "fc_mask": "fc_mask", "read_write": "rdwrmask", "all_cores": "enallcores"},
    **{"all_slices": "enallslices", "slice_id": "sliceid", "threads": "threadmask", "node_type": "type"},
}
"""perf's word for what an entry has under this name."""
_REGISTERS = ("cbofilter", "chafilter", "pcufilter", "qpimask", "uboxfilter", "fc, chnl", "chnl", "ctrctrl")
"""Filters that Intel names without a value. perf's own lists leave them out: the register stays as it is."""
_NEEDED = ("ha_addrmatch", "ha_opcodematch", "irpfilter")
"""Filters without which an event counts nothing of use, and for which perf has no word."""
_TERM = r"[a-z][a-z0-9_]*=(0[xX][0-9a-fA-F]+|[0-9]+)"


def pmu(unit: str) -> str:
    """The kernel's name of a unit."""
    return UNITS.get(unit, f"uncore_{unit.lower()}")


def is_needed(text: str) -> bool:
    """Whether an event can't be counted, for this filter is what it counts by."""
    return text.lower().startswith(_NEEDED)


def filter_terms(text: object) -> str:
    """A ``Filter`` as perf takes it: ``config1=0x4033``. Raises ``ValueError`` on what is neither that nor a register's name."""
    if text in (None, "null", "na", "", "0"):
        return ""
    if isinstance(text, str) and re.fullmatch(rf"{_TERM}(,{_TERM})*", text.strip()):
        return text.strip()
    if isinstance(text, str) and text.strip().lower().startswith(_REGISTERS):
        return ""
    raise ValueError(messages.need_filter())
