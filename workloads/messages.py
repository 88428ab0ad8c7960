# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors and warnings of endpoints, topologies and traffic: the value seen, and the next move. One function a message."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from vsprof.terms import units
from vsprof.terms.errors import BadInput, NotOffered, RunFailed

# --- General ---------------------------------------------------------------------------------------------------------


def not_in_modelled_time(what: str) -> str:
    return f"{what} takes longer than modelled time can last: to measure it in the emulator's time, add --clock emulated"


def counted_in_two_times() -> str:
    return "the flood starts and ends outside modelled time, so it has no totals there; the windows have each hop's packet rate"


def gap_in_two_times() -> str:
    return "the stream starts and ends outside modelled time, and its longest gap may be there"


def reports_too_long(seconds: float) -> str:
    return f"iperf3 reports every {seconds:g} s, which is longer than a window of modelled time"


def no_cpu_for_generator(topology: str, cpus: int) -> RunFailed:
    return RunFailed(
        f"{topology} takes a CPU for the generator alone, and with {cpus} CPUs it has none: add --cpus 4 (or 6 with two nodes)"
    )


def no_wire_there(topology: str, why: str) -> RunFailed:
    return RunFailed(f"{topology} can't be measured here: {why}")


def no_whole_milliseconds(rate_hz: float) -> str:
    milliseconds = 1000 / rate_hz
    near = " or ".join(f"{1000 / whole:.4g} ({whole} ms)" for whole in (int(milliseconds), int(milliseconds) + 1) if whole)
    return f"rate_hz {rate_hz:g} is a request each {milliseconds:.4g} ms, and ping takes whole milliseconds: use {near}"


def died(name: str, log: str) -> RunFailed:
    return RunFailed(f"{name} ended during the run; its log ends with:\n{log.strip()[-1500:] or '(nothing)'}")


def no_stack(endpoint: str) -> str:
    return (
        f"{endpoint} has no network stack (DPDK serves its interface), which this traffic's programs need: "
        "use another traffic, or a virtual machine with endpoint kernel"
    )


def no_pace(endpoint: str) -> str:
    return f"{endpoint} floods by testpmd, which sends as fast as it can and at no given rate; the kernel's pktgen could"


def only_paced(endpoint: str) -> str:
    return f"{endpoint} sends by frame-probe, at a given rate and not as fast as it can: use endpoint testpmd, or another load"


def only_paced_on_wire(endpoint: str) -> str:
    return (
        f"{endpoint} sends by frame-probe, at a given rate and not as fast as it can: use the loads equal, ndr or pdr; or, for all that"
        " goes through, topology pvp_wire with traffic forward"
    )


def no_interrupts_taken(options: Sequence[str]) -> BadInput:
    return BadInput(
        f"{' and '.join(options)}: they are about a network card's interrupts, and a switch that polls takes none: use rx interrupt or"
        " adaptive (vhost-switch), or list the combination in except"
    )


def guest_takes_no_interrupts() -> BadInput:
    return BadInput("guest_irq_cpu=other needs a program that sleeps, and guest_rx=poll never does: use guest_rx interrupt or adaptive")


def port_not_counted() -> str:
    return "the switch does not count this port (OVS-DPDK does not, where it is server of the port's socket)"


def end_not_asked() -> str:
    return "the endpoints were not asked what they count: in modelled time that takes too long, and each of several has its own clock"


def no_connection(sender: str, receiver: str, seconds: float) -> RunFailed:
    return RunFailed(
        f"{sender} got no TCP connection to {receiver} in {seconds:.0f} s, though they reach each other (ping): where a path breaks "
        "checksums, TCP alone is lost. Try the endpoints' option offloads: off, and look at raw/ for the switch's log"
    )


def endpoint_failed(name: str, what: str, words: str) -> RunFailed:
    return RunFailed(f"{name}: {what}{': ' + words.strip()[-1500:] if words.strip() else ''}")


def no_path(sender: str, receiver: str, seconds: float) -> RunFailed:
    return RunFailed(f"{sender} got no answer from {receiver} through the switch in {seconds:.0f} s: look at raw/ for the switch's log")


# --- Options ---------------------------------------------------------------------------------------------------------


def nothing_returns(topology: str) -> str:
    return f"forward counts what is sent back of frames that come by themselves, and in {topology} none do: use topology pvp or pvp_wire"


def comes_as_one_flow(flows: int) -> str:
    return f"frames come from a device in memory, and all are alike: of flows {flows} there would be one; use topology pvp_wire, or flows 1"


def nothing_is_sent(topology: str) -> str:
    return (
        f"in {topology} frames come by themselves, as fast as they can, and endpoints send them back: use traffic forward; or, for frames"
        " at a given rate, topology pvp_paced"
    )


def path_not_taken(endpoint: str, path: str, seen: str) -> NotOffered:
    taken = f"its driver takes the path {seen!r}" if seen else "its driver names none"
    return NotOffered(
        f"{endpoint}: asked for path {path}, and {taken}: the switch does not offer what it needs, or the processor can't do it;"
        " choose another path, or list the pair in except"
    )


def not_negotiated(endpoint: str, wanted: Mapping[str, str]) -> NotOffered:
    asked = ", ".join(f"{name} {value}" for name, value in wanted.items())
    return NotOffered(
        f"{endpoint}: asked for {asked}, and its driver did not agree to that with the device: the switch does not offer it, or the driver"
        " does not know it; leave the option out, or list the pair in except"
    )


def tx_interrupts_stay(endpoint: str, wanted: str) -> NotOffered:
    return NotOffered(f"{endpoint}: asked for tx_interrupts {wanted}, and its driver did not take that (ethtool -C tx-frames)")


def offloads_stay_on(endpoint: str, features: Iterable[str]) -> RunFailed:
    return RunFailed(f"{endpoint}: asked for offloads off, and ethtool still has {', '.join(features)} on: leave out offloads: off here")


# --- frame-probe -----------------------------------------------------------------------------------------------------


def not_probed(sender: str, receiver: str) -> str:
    return (
        f"{sender} and {receiver} can't be served by frame-probe, which takes both ends of a path: "
        "use topology vm2vm with access virtio-user, or a virtual machine with endpoint probe"
    )


def one_flow(sender: str, flows: int) -> str:
    return f"{sender} sends a flood at a given rate by frame-probe, which sends one flow and not {flows}: use flows 1, or load saturation"


def too_many_flows(sender: str, flows: int, most: int) -> str:
    return f"{sender} sends a flood from a file, which holds at most {most} flows, not {flows}: use fewer, or virtual machines"


def one_queue(sender: str) -> str:
    return (
        f"{sender} sends several flows, at a rate, or both ways by frame-probe, which serves one queue: use `queues: 1`, or flows 1, "
        "`ways: one` and load saturation"
    )


def cards_have_one_cpu() -> BadInput:
    return BadInput(
        "p2p_paced with several switch_cpus: its options say which CPU takes the cards' interrupts, and there is one: use `switch_cpus: 1`"
    )


def which_of_the_switchs_cpus() -> BadInput:
    return BadInput(
        "guest_cpu: switch with several switch_cpus: the switch itself chooses who moves a guest's frames: use `switch_cpus: 1`"
    )


def one_route(traffic: str, routes: int) -> str:
    return f"{traffic} has one sender and one receiver, and this case has {routes} of each: use `pairs: 1` and `ways: one` for it"


def not_searched_on_routes(routes: int) -> str:
    return f"a rate is searched between one sender and one receiver, and this case has {routes} of each: use load saturation or equal"


def not_installed(program: str, sources: str, variable: str) -> str:
    return f"this host has no {program}: run `make -C {sources} install` on it, or let {variable} name the program on this machine"


def not_a_file(variable: str, path: Path, sources: str) -> BadInput:
    return BadInput(f"{variable} is {path}, which is no file: build {sources}, or unset it")


def no_pace_by_frame_flood(sender: str) -> str:
    return f"{sender} is served by frame-flood, which sends as fast as it goes: use `driver: dpdk`"


def too_many_flows_of_a_ring(sender: str, flows: int, most: int) -> str:
    return f"{sender} is served by frame-flood, which sends at most {most} flows, not {flows}: use fewer, or `driver: dpdk`"


def no_path_of_frame_flood(path: str) -> BadInput:
    return BadInput(f"path: {path} with driver: frame-flood, which does not ask for that feature: choose another path, or `driver: dpdk`")


def refused(words: str) -> RunFailed:
    return RunFailed(f"frame-probe did not follow its command: {words.strip()[-1500:] or '(no word)'}")


def nothing_arrives(seconds: float, words: str) -> RunFailed:
    return RunFailed(f"no frame of frame-probe arrived within {seconds:.0f} s; its log ends with:\n{words.strip()[-1500:] or '(nothing)'}")


def nothing_arrived(window: str) -> str:
    return f"no frame of {window} arrived undisturbed"


def not_back(seconds: float) -> str:
    return f"did not come back: no frame arrived within {seconds:g} s after the switch ran again"


def starved(skipped: int, due: int) -> str:
    return f"frame-probe had no CPU when {skipped} of {due} frames were due, so the loss says nothing: repeat it on a quieter host"


def blinked(longest_s: float, gap_s: float) -> str:
    return f"frame-probe itself was away for {longest_s:.3f} s of {gap_s:.3f} s without a frame: repeat it on a quieter host"


def other_gap(began_s: float, killed_s: float) -> str:
    after = began_s - killed_s
    return f"the longest time without a frame began {after:.3f} s after the switch was killed, so it is another: take a quieter host"


# --- Searches for a rate ---------------------------------------------------------------------------------------------


def trial(rate_pps: int) -> str:
    return f"trial at {units.si(rate_pps, 'packets/s')}"


def fastest() -> str:
    return "how fast the sender is"


def no_burst(name: str) -> str:
    return f"{name} can't send a given number of frames, and in modelled time the trials of a search need that: add --clock emulated"


def no_end(frames: int) -> str:
    return f"a trial of {frames} packets did not end"


def nothing_sent(rate_pps: int | None) -> str:
    return f"a trial at {rate_pps or 'any number of'} packets/s sent nothing at all"


def not_in_time(limit_s: float) -> str:
    return (
        f"the search did not end within {limit_s:g} s: its bounds are those that it had then; give it more time (limit_seconds), or a "
        "wider goal (width)"
    )


def gave_up(error: object) -> str:
    return f"MLRsearch stopped the search early ({error}): its bounds are those that it had then"


def fails_at_the_lowest(min_pps: int, bad: int, trials: int, ratio: float) -> str:
    return (
        f"even at the lowest rate, {min_pps} packets/s, {bad} of {trials} trials lost more than {ratio:g} of their frames: there is no "
        "such rate from there on; try a lower one (min_pps)"
    )


def carried_the_highest(max_pps: int) -> str:
    return (
        f"the highest rate that the search may offer, {max_pps} packets/s, lost no more than is allowed: the limit lies above it (max_pps)"
    )


def no_bound(which: str) -> str:
    return f"no rate was tried long enough to be a {which} bound"


def no_throughput() -> str:
    return "without a lower bound, no rate is known that the path can deliver"


# --- Settings of traffics --------------------------------------------------------------------------------------------


def other_load(load: str, traffic: str, known: str) -> str:
    return f"load {load!r}: {traffic} knows only {known}"


def unknown_load(load: str, known: Iterable[str]) -> str:
    return f"load {load!r}: use one of {', '.join(known)}"


def rate_of_equal_load() -> str:
    return "load equal needs rate_pps, and no other load takes it"


def not_searched(load: str, searched: Iterable[str]) -> str:
    return f"load {load!r} has no search: only the loads {', '.join(searched)} are searched"


def sum_below_trial(prefix: str, whole: float, trial: float) -> str:
    return f"{prefix}sum_seconds {whole:g} is shorter than one trial, {prefix}trial_seconds {trial:g}"


def rates_too_close(lowest: int, highest: int, width: float) -> str:
    return f"min_pps {lowest} is not below max_pps {highest} by more than the width {width:g}"
