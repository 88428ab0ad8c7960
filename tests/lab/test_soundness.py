# SPDX-License-Identifier: GPL-2.0-or-later
"""The check of a real lab: it passes a sound one, and sees what is taken away from it."""

from collections.abc import Iterator

import pytest

from vsprof.terms import errors
from vsprof.testbeds.emulator import snapshot
from vsprof.testbeds.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("lab_can_run")]

# Masks the timer of the local APIC of the CPU that runs it (bit 16 of its entry), again and again, because the kernel sets the entry
# when it starts its tick. So the kernel goes on to set the timer's count, as in the lab that was seen with a dead one, and no interrupt comes.
MASK_TIMER = r"""
cat > /tmp/mask-timer.c << 'END'
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
int main(void)
{
    volatile uint32_t *apic = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open("/dev/mem", O_RDWR | O_SYNC), 0xfee00000);
    if (apic == MAP_FAILED)
        return 1;
    for (;;) {
        apic[0x320 / 4] = 0x100ec;
        sched_yield();
    }
}
END
gcc -o /tmp/mask-timer /tmp/mask-timer.c
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as host:
        yield host


def test_a_resumed_lab_is_sound(lab: Lab) -> None:
    snapshot.check(lab.channel, lab.cpus)


def test_a_dead_timer_is_seen_and_only_that_cpus(lab: Lab) -> None:
    lab.run(MASK_TIMER)
    masking = lab.start("mask-timer", "/tmp/mask-timer", cpus=[3])
    with pytest.raises(errors.LabUnsound, match=r"CPU 3 took [0-4] timer interrupts") as seen:
        snapshot.check(lab.channel, lab.cpus)
    assert "CPU 2" not in str(seen.value)
    masking.stop()


def test_a_lab_without_kvm_is_unsound(lab: Lab) -> None:
    lab.run("mv /dev/kvm /dev/kvm.away")
    with pytest.raises(errors.LabUnsound, match="/dev/kvm is missing"):
        snapshot.check(lab.channel, lab.cpus)
    lab.run("mv /dev/kvm.away /dev/kvm")
