# SPDX-License-Identifier: GPL-2.0-or-later
"""Network cards of a real server that are wired to each other: the inventory names them, a run takes them, and they are given back as they
were found. Also their virtual functions (SR-IOV), which have PCI addresses of their own.

The scripts run on the server itself, outside the namespace of a run.
"""

import re
import shlex

from vsprof.testbeds import messages
from vsprof.testbeds.inventory import Server
from vsprof.testbeds.wire import Wire

VARIABLE = "vsprof_wires"
"""Of the inventory: `0000:01:00.0,0000:01:00.1`, the card that the switch gets first; several wires with blanks between."""
WIRE = re.compile(r"([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]),([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)
# $@: PCI addresses. Says why a card can't be taken. One with an IP address, or in a bridge or bond, is the server's own: by it we may have
# come.
CHECK = """
for address; do
    cd /sys/bus/pci/devices/$address 2>/dev/null || { echo "has no device $address"; exit 1; }
    case $(cat class) in 0x02*) ;; *) echo "device $address is no network card"; exit 1 ;; esac
    for name in $(ls net 2>/dev/null); do
        [ -z "$(ip -oneline address show dev $name scope global)" ] || { echo "uses $address as $name, with an IP address"; exit 1; }
        [ ! -e net/$name/master ] || { echo "uses $address as $name, in a bridge or bond"; exit 1; }
    done
done
"""
# $@: PCI addresses. Writes down each one's driver.
REMEMBER = """
for address; do
    cd /sys/bus/pci/devices/$address || exit 1
    driver=none
    [ ! -e driver ] || driver=$(basename "$(readlink driver)")
    echo $address "$(cat driver_override)" $driver
done > /run/vsprof-cards
"""
# After all that uses them has ended. A new binding also brings an interface back that a namespace had, under its own name.
GIVE_BACK = """
while read -r card override driver; do
    cd /sys/bus/pci/devices/$card || continue
    [ "$override" != "(null)" ] || override=
    echo "$override" > driver_override
    [ ! -e driver ] || echo $card > driver/unbind
    [ $driver = none ] || echo $card > /sys/bus/pci/drivers/$driver/bind || echo $card > /sys/bus/pci/drivers_probe
done 2>/dev/null < /run/vsprof-cards
cd /
"""


def of(server: Server) -> list[Wire]:
    """The wires that the inventory names for a server. Raises ``BadInput``."""
    found, seen = [], set()
    for word in str(server.variables.get(VARIABLE, "")).split():
        ends = WIRE.fullmatch(word)
        if ends is None or ends[1].lower() == ends[2].lower() or seen & {ends[1].lower(), ends[2].lower()}:
            raise messages.bad_wire(server.name, VARIABLE, word)
        wire = Wire(ends[1].lower(), ends[2].lower())
        seen |= {wire.switch, wire.load}
        found.append(wire)
    return found


def command(script: str, wires: list[Wire]) -> str:
    """CHECK or REMEMBER of all cards at the ends of these."""
    return shlex.join(["bash", "-c", script, "bash", *(card for wire in wires for card in (wire.switch, wire.load))])
