# SPDX-License-Identifier: GPL-2.0-or-later
"""What a lab prints of its timers and clocks, and what is wrong with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.testbeds.emulator import soundness

# As a sound lab printed it.
SOUND = """\
handler 0 hrtimer_interrupt
handler 1 hrtimer_interrupt
handler 2 hrtimer_interrupt
handler 3 hrtimer_interrupt
kvm
ticks 1 14
ticks 0 15
ticks 3 5
ticks 2 35
clock 0 1795471954.929330
clock 1 1795471954.954837
clock 2 1795471954.977378
clock 3 1795471955.022518
clock 0 1795471955.083851
"""


def test_a_sound_lab_has_no_faults():
    assert soundness.faults(SOUND, 4) == []


@pytest.mark.parametrize(
    ("line", "instead", "said"),
    [
        # The dead timer that was seen: handled by the boot's periodic handler, and never heard of again.
        ("handler 3 hrtimer_interrupt", "handler 3 tick_handle_periodic", "CPU 3's timer is handled by tick_handle_periodic"),
        ("handler 2 hrtimer_interrupt\n", "", "CPU 2's timer is handled by nothing"),
        ("ticks 3 5", "ticks 3 0", "CPU 3 took 0 timer interrupts"),
        ("ticks 2 35\n", "", "CPU 2 took no timer interrupts"),
        ("kvm\n", "", "/dev/kvm is missing"),
        ("1795471954.977378", "1795471954.954836", "CPU 2's clock is -0.000001 s from CPU 1's"),
        ("1795471955.022518", "1795471965.022518", "CPU 3's clock is +10.045140 s from CPU 2's"),
        ("clock 3 1795471955.022518\n", "", "got 4 stamps"),
    ],
)
def test_each_fault_is_named_with_what_was_seen(line, instead, said):
    assert line in SOUND
    found = soundness.faults(SOUND.replace(line, instead), 4)
    assert any(said in one for one in found), found


@given(st.text())
def test_whatever_is_printed_a_lab_that_did_not_answer_is_unsound(text):
    assert soundness.faults(text, 4)


@given(st.integers(0, SOUND.rindex("clock")))
def test_an_answer_cut_short_is_never_sound(length):
    assert soundness.faults(SOUND[:length], 4)
