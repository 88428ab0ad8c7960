# SPDX-License-Identifier: GPL-2.0-or-later
"""OpenFlow tables for Open vSwitch, where it is to do more than to learn addresses: rules by address and with wildcards, connection
tracking, and tunnels.

Three tables: FILTER has the rules, one for each flow of a flood and one for all else; TRACK knows connections, where they are tracked;
FORWARD knows behind which port an Ethernet address is. Every frame is let through: what is asked is what it costs to find that out.
"""

from collections.abc import Iterator, Mapping

from vsprof.switches import messages, tunnel
from vsprof.terms import flows

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "rules": ("0", "1", "10", "100", "1000", "10000"),
    "masks": ("1", "2", "4", "8", "16"),
    "conntrack": ("off", "on"),
    **tunnel.OPTIONS,
}
"""For a switch to declare. ``rules``: how many rules FILTER has; ``masks``: on
how many sets of header fields they match; ``conntrack``: whether each frame's connection is looked up; ``tunnel``: whether the ends of a
pair are joined by one."""
FILTER, TRACK, FORWARD = 0, 1, 2
NAMES = {"filter": FILTER, "track": TRACK, "forward": FORWARD}
SETTINGS = {name: values[0] for name, values in OPTIONS.items()}
VENDOR_BITS = 40
"""All that endpoints' Ethernet addresses have in common, which rules can match on without telling any apart: see ``mac_prefix``."""
HIGHEST = 30_000
"""A priority above all of a rule's."""
ESTABLISHED = "+trk+est"


def wanted(chosen: Mapping[str, str]) -> bool:
    """Whether there are any tables, in a case with these options."""
    return any(chosen[name] != value for name, value in SETTINGS.items() if name != "masks")


def check(given: Mapping[str, str]) -> None:
    """Raise ``BadInput`` on values that do not go together."""
    rules, masks = (int(given.get(name, SETTINGS[name])) for name in ("rules", "masks"))
    if masks > 1 and masks > rules:
        raise messages.more_masks_than_rules(masks, rules)
    if given.get("conntrack") == "on" and (given.get("pairs", "1") != "1" or given.get("ways", "one") != "one"):
        raise messages.senders_share_connections()


def tables(chosen: Mapping[str, str], behind: Mapping[str, str]) -> Iterator[str]:
    """All of them as ``ovs-ofctl add-flows`` reads them, a line each. ``behind``: the port of each Ethernet address, first a sender's."""
    mac = next(iter(behind))
    tracked = chosen["conntrack"] == "on"
    onward = f"ct(table={TRACK})" if tracked else f"goto_table:{FORWARD}"
    for number in range(int(chosen["rules"])):
        kind = number % int(chosen["masks"])
        # The narrower match has the lower priority: else the classifier would have looked at every field when it finds the wider one, and
        # the datapath's flows would all have one mask.
        yield f"table={FILTER},priority={HIGHEST - kind},ip,{mac_prefix(mac, kind)}nw_dst={flows.address(number)},actions={onward}"
    yield f"table={FILTER},priority=1,ip,actions={onward}"
    # What is no IP has no connection.
    yield f"table={FILTER},priority=0,actions=goto_table:{FORWARD}"
    if tracked:
        yield f"table={TRACK},priority=2,ip,ct_state={ESTABLISHED},actions=goto_table:{FORWARD}"
        yield f"table={TRACK},priority=1,ip,ct_state=+trk+new,actions=ct(commit,table={FORWARD})"
        yield f"table={TRACK},priority=0,actions=goto_table:{FORWARD}"
    for target, port in behind.items():
        tunnelled = chosen["tunnel"] != tunnel.NONE
        for rule in tunnel.forward(target, port) if tunnelled else (f"priority=1,dl_dst={target},actions=output:{port}",):
            yield f"table={FORWARD},{rule}"
    yield f"table={FORWARD},priority=0,actions=NORMAL"


def mac_prefix(mac: str, kind: int) -> str:
    """A match on the first bits of the sender's address, the more the higher ``kind``; none for 0. Ends with a comma where it is any."""
    if not kind:
        return ""
    bits = kind * VENDOR_BITS // 16
    mask = ((1 << bits) - 1) << (48 - bits)
    return f"dl_src={_mac(int(mac.replace(':', ''), 16) & mask)}/{_mac(mask)},"


def _mac(number: int) -> str:
    return ":".join(f"{number:012x}"[place : place + 2] for place in range(0, 12, 2))
