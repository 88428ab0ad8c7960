# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors and warnings of ebpf: the value seen, and the next move. One function a message."""

from collections.abc import Iterable

# --- bpftrace and bcc ------------------------------------------------------------------------------------------------

PAGE = "docs/collectors/ebpf.md"


def bad_number_line(probe: str, line: str, units: Iterable[str]) -> ValueError:
    need = f"`// number: name, unit, @map[keys]`, with a unit of {', '.join(units)}"
    return ValueError(f"{probe}.bt: {line!r} is no number line, need {need}: see {PAGE}")


def bad_words_line(probe: str, line: str) -> ValueError:
    return ValueError(f"{probe}.bt: {line!r} gives a key no words, need `// key: role`, or `// key: 0 word, 1 word`: see {PAGE}")


def no_numbers(probe: str) -> ValueError:
    return ValueError(f"{probe}.bt: no number is declared, need a line `// number: name, unit, @map[keys]`: see {PAGE}")


def begin_is_taken(probe: str) -> ValueError:
    return ValueError(f"{probe}.bt: has a BEGIN or an END, which a program can have only once: leave them to the collector")


def unknown_key(probe: str, name: str, key: str, keys: Iterable[str]) -> ValueError:
    return ValueError(f"{probe}.bt: {name} names {{{key}}}, which is no key of its map ({', '.join(keys) or 'it has none'})")


def map_taken(name: str, probes: Iterable[str]) -> ValueError:
    return ValueError(f"the map {name} is in the probes {' and '.join(probes)}, which run as one program: give it another name")


def no_bpftrace(words: str) -> str:
    return f"bpftrace does not run ({words or 'it printed nothing'}): install the package bpftrace, and be root"


def no_btf(kernel: str) -> str:
    return f"kernel {kernel} has no /sys/kernel/btf/vmlinux: need one built with CONFIG_DEBUG_INFO_BTF"


def no_tracepoint(names: Iterable[str]) -> str:
    return f"the kernel has no tracepoint {', '.join(names)}: load the module that has it, if there is one"


def nothing_works(reasons: Iterable[str]) -> str:
    return f"no probe works: {'; '.join(sorted(set(reasons)))}"


def refused(words: str) -> str:
    return f"bpftrace refused the probe: {words or 'it printed nothing'}"


def window_not_seen(words: str) -> str:
    return f"bpftrace did not count the whole window: {words or 'it printed nothing'}"


def map_full(name: str, keys: int) -> str:
    return f"the map {name} was full ({keys} keys), so that new keys were not counted: use fewer keys"


def lost_events(events: int) -> str:
    return f"bpftrace lost {events} printed events"


def not_bpftrace(line: str) -> ValueError:
    return ValueError(f"not bpftrace -f json: {line[:80]!r}")


def no_description() -> ValueError:
    return ValueError("what was recorded does not begin with the description of the probes")


def wrong_keys(name: str, seen: str, keys: Iterable[str]) -> ValueError:
    return ValueError(f"{name}[{seen}] has not the keys {', '.join(keys) or '(none)'}")


def wrong_value(name: str, part: str) -> ValueError:
    return ValueError(f"{name} has not the values that its number line declares ({part or 'plain numbers'})")
