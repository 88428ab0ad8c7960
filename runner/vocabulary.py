# SPDX-License-Identifier: GPL-2.0-or-later
"""What a campaign's plug-ins say of themselves, for its manifest: reports need nothing else to name them."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from vsprof.switches.base import Switch
from vsprof.terms.vocabulary import CollectorWords, SwitchWords, TrafficWords, Vocabulary
from vsprof.workloads.traffic.base import Traffic


def of(switches: Mapping[str, type[Switch]], traffics: Mapping[str, type[Traffic]]) -> Vocabulary:
    """Of switches and traffics; collectors are added by ``note``, once they ran."""
    return Vocabulary(
        {name: SwitchWords(one.words or name, one.rank, one.colour, one.program) for name, one in switches.items()},
        {
            name: TrafficWords(one.words or name, one.rank, one.data, one.headlines, one.kind, one.saturates, one.called)
            for name, one in traffics.items()
        },
    )


def note(manifest: dict[str, Any], said: Mapping[str, CollectorWords]) -> None:
    """Add what the collectors of a run said. A result that an earlier vsprof began has no vocabulary."""
    known = manifest.setdefault("vocabulary", Vocabulary().to_json()).setdefault("collectors", {})
    known.update({name: asdict(words) for name, words in said.items()})
