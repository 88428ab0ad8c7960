# SPDX-License-Identifier: GPL-2.0-or-later
"""How a host is reached, and how its threads are read."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.terms.errors import RunFailed, VsprofError
from vsprof.testbeds import ssh
from vsprof.testbeds.ssh import Channel, Shell
from vsprof.testbeds.threads import cpu_list, threads_of

# --- Threads -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cpus"), [("0", (0,)), ("0,2-3", (0, 2, 3)), ("0-3\n", (0, 1, 2, 3)), ("1,3,5", (1, 3, 5)), ("10-11", (10, 11))]
)
def test_the_kernels_list_of_cpus(text, cpus):
    assert cpu_list(text) == cpus


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_list_of_single_cpus_reads_back(cpus):
    assert set(cpu_list(",".join(map(str, sorted(cpus))))) == cpus


LISTED = """\
/proc/652/task/652/status:Name:\tqemu-system-x86
/proc/652/task/652/status:Cpus_allowed_list:\t0
/proc/652/task/659/status:Name:\tvhost-652
/proc/652/task/659/status:Cpus_allowed_list:\t1
/proc/652/task/661/status:Name:\tCPU 0/KVM
/proc/652/task/661/status:Cpus_allowed_list:\t0,2-3
/proc/652/task/700/status:Name:\tended meanwhile
"""


def test_threads_are_listed_with_name_and_cpus():
    host = SimpleNamespace(run=lambda command, check: SimpleNamespace(stdout=LISTED))
    assert threads_of(host, 652) == [(652, "qemu-system-x86", (0,)), (659, "vhost-652", (1,)), (661, "CPU 0/KVM", (0, 2, 3))]


# --- SSH ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def channel(tmp_path):
    return Channel("root@127.0.0.1", 2222, tmp_path / "key", "ssh-ed25519 AAAA lab\n", tmp_path)


@pytest.fixture
def answered(monkeypatch):
    """What ssh is made to answer: status, stdout, stderr; returns it and the commands that were asked."""
    answer, asked = {"status": 0, "stdout": b"", "stderr": b""}, []

    def run(command, stdin, timeout, held_up):
        asked.append((command, stdin))
        if isinstance(answer["status"], BaseException):
            raise answer["status"]
        return subprocess.CompletedProcess(command, answer["status"], answer["stdout"], answer["stderr"])

    monkeypatch.setattr(ssh, "ran", run)
    return answer, asked


def test_a_users_own_settings_do_not_matter(channel):
    command = channel._command([], "true")
    assert command[:3] == ["ssh", "-F", "none"]
    assert {"IdentitiesOnly=yes", "BatchMode=yes", "StrictHostKeyChecking=yes"} <= set(command)
    assert command[-2:] == ["root@127.0.0.1", "true"]
    assert command[command.index("-p") + 1] == "2222"


def test_only_the_labs_own_host_key_is_trusted(channel, answered):
    channel.open(1)
    assert (channel.folder / "known_hosts").read_text() == "[127.0.0.1]:2222 ssh-ed25519 AAAA lab\n"


def test_a_command_gives_status_and_words(channel, answered):
    answered[0].update(status=3, stdout=b"out", stderr=b"\xff err")
    done = channel.run("false", timeout=1, check=False)
    assert (done.status, done.stdout) == (3, "out")
    assert done.stderr.endswith(" err")


def test_a_failed_command_is_named_with_its_words(channel, answered):
    answered[0].update(status=3, stderr=b"no such bridge")
    with pytest.raises(RunFailed, match="exit status 3: ovs-vsctl show: no such bridge"):
        channel.run("ovs-vsctl show", timeout=1, check=True)


def test_a_lost_connection_fails_even_an_unchecked_command(channel, answered):
    answered[0].update(status=255)
    with pytest.raises(RunFailed, match="255"):
        channel.run("true", timeout=1, check=False)


def test_a_command_without_an_end_is_named_with_the_seconds(channel, answered):
    answered[0].update(status=subprocess.TimeoutExpired("ssh", 7))
    with pytest.raises(RunFailed, match=r"no end after 7 s: sleep 100"):
        channel.run("sleep 100", timeout=7, check=True)


def test_content_is_pushed_through_a_quoted_path(channel, answered):
    channel.push("text", "/run/a b")
    command, given = answered[1][-1]
    assert command[-1] == "cat > '/run/a b'"
    assert given == b"text"


def test_a_socket_is_forwarded_once(channel, answered):
    first, again, other = channel.socket("/run/a.qmp"), channel.socket("/run/a.qmp"), channel.socket("/run/b.qmp")
    assert first == again != other
    assert len(answered[1]) == 2
    assert f"{first}:/run/a.qmp" in answered[1][0][0]


def test_a_host_that_never_answers_gives_sshs_last_words(channel, monkeypatch):
    local(channel, monkeypatch, "echo Connection refused >&2; exit 255")
    with pytest.raises(VsprofError, match="Connection refused"):
        channel.open(0)


def test_a_dead_machine_ends_the_wait(channel, answered):
    def dead():
        raise VsprofError("the emulator ended")

    with pytest.raises(VsprofError, match="the emulator ended"):
        channel.open(60, dead)
    assert answered[1] == []


def local(channel, monkeypatch, command):
    """Let the channel run ``command`` here, in the place of ssh."""
    monkeypatch.setattr(channel, "_command", lambda options, *asked: ["sh", "-c", command])


def test_a_folder_is_pulled(channel, monkeypatch, tmp_path):
    (tmp_path / "far" / "w").mkdir(parents=True)
    (tmp_path / "far" / "w" / "a.begin").write_text("x")
    local(channel, monkeypatch, f"tar -C {tmp_path / 'far'} -cf - w")
    channel.pull("/run/w", tmp_path / "near")
    assert (tmp_path / "near" / "w" / "a.begin").read_text() == "x"


@pytest.mark.parametrize("command", ["exit 255", "tar -cf - /does/not/exist", "echo cut short"])
def test_what_can_not_be_pulled_fails_the_run(channel, monkeypatch, tmp_path, command):
    local(channel, monkeypatch, command)
    with pytest.raises(RunFailed):
        channel.pull("/run/w", tmp_path / "near")


def test_a_full_disk_here_is_not_the_hosts_fault(channel, monkeypatch, tmp_path):
    """A file in the place of the folder stands for any write that fails."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "a").write_text("x")
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "far").write_text("")
    local(channel, monkeypatch, f"tar -C {tmp_path} -cf - far")
    with pytest.raises(OSError, match="near"):
        channel.pull("/run/far", tmp_path / "near")


def test_closing_what_is_gone_is_no_error(channel, answered):
    answered[0].update(status=subprocess.TimeoutExpired("ssh", 5))
    channel.close()


def test_the_control_socket_lies_in_the_instances_folder(channel):
    assert f"ControlPath={Path(channel.folder) / 'ssh'}" in channel._command([])


@pytest.fixture
def shell():
    """A real shell, but of this machine."""
    one = Shell(["bash"])
    yield one
    one.close()


def test_a_shell_keeps_what_it_was_told(shell):
    shell.ask("told() { [ $1 = it ]; }", 5)
    shell.ask("told it", 5)
    with pytest.raises(RunFailed, match="exit status 1"):
        shell.ask("told nothing", 5)


def test_what_a_line_prints_is_no_answer(shell):
    """A collector's own command may print what it likes."""
    shell.ask("echo hello", 5)
    with pytest.raises(RunFailed, match="exit status 1"):
        shell.ask("echo 0; false", 5)
    shell.ask("true", 5)


def test_a_shell_that_hangs_is_given_up(shell):
    with pytest.raises(RunFailed, match="no end after 0"):
        shell.ask("sleep 60", 0.2)


def test_a_shell_that_goes_on_is_waited_for(shell):
    looks = iter([True, True, False])
    with pytest.raises(RunFailed, match="no end after 0"):
        shell.ask("sleep 60", 0.05, lambda: next(looks))
    assert next(looks, None) is None


def test_a_slow_answer_is_an_answer(shell):
    shell.ask("sleep 0.3", 0.05, lambda: True)


def test_a_shell_that_is_gone_fails_the_run(shell):
    with pytest.raises(RunFailed):
        shell.ask("exit 3", 5)
    with pytest.raises(RunFailed):
        shell.ask("true", 5)
    shell.close()
