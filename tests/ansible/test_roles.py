# SPDX-License-Identifier: GPL-2.0-or-later
"""The roles are sound YAML in the shape that a reader expects, and Ansible accepts the playbooks."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

ANSIBLE = Path(__file__).resolve().parents[2] / "ansible"
ROLES = sorted(path for path in (ANSIBLE / "roles").iterdir() if path.is_dir())
by_name = pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)


def tasks(role):
    """Every task of a role, those of other entry points than ``main`` too."""
    return [task for path in sorted((role / "tasks").glob("*.yml")) for task in yaml.safe_load(path.read_text())]


@by_name
def test_every_file_of_a_role_parses(role):
    for path in role.rglob("*.yml"):
        assert yaml.safe_load(path.read_text()) is not None, f"{path} is empty"


@by_name
def test_a_role_has_tasks_and_a_reference_of_its_variables(role):
    defaults = (role / "defaults" / "main.yml").read_text()
    assert f"# Reference of the role {role.name}" in defaults
    assert all(name.startswith(f"{role.name}_") for name in yaml.safe_load(defaults))
    assert yaml.safe_load((role / "tasks" / "main.yml").read_text())


@by_name
def test_every_task_has_a_name_and_every_module_its_full_one(role):
    for task in tasks(role):
        assert task["name"][0].isupper()
        assert any(key.startswith("ansible.builtin.") for key in task), task["name"]


@by_name
def test_every_command_says_when_it_changes_something(role):
    """Otherwise the second application of the role would report a change."""
    for task in tasks(role):
        for module in ("ansible.builtin.command", "ansible.builtin.shell", "ansible.builtin.script", "ansible.builtin.raw"):
            if module in task:
                assert "changed_when" in task or "creates" in task[module], task["name"]


@pytest.mark.parametrize("role", [role for role in ROLES if role.name not in ("lab", "put")], ids=lambda path: path.name)
def test_a_role_changes_nothing_of_a_server_but_by_the_books(role):
    """Outside of vsprof's own folder: what is not in the books can't be taken back."""
    for task in tasks(role):
        assert not {f"ansible.builtin.{module}" for module in ("apt", "lineinfile", "blockinfile", "template", "systemd", "user")} & {*task}
        for module in ("ansible.builtin.copy", "ansible.builtin.file"):
            if module in task:
                where = task[module].get("dest") or task[module]["path"]
                assert where.startswith(("{{ vhost_switch_folder }}", "{{ guest_image_folder }}", "{{ put_books }}")), task["name"]


@by_name
def test_every_download_is_tried_again(role):
    for task in tasks(role):
        if "ansible.builtin.apt" in task:
            assert task["retries"] >= 3, task["name"]


def test_the_playbooks_use_every_role():
    used = {
        role
        for name in ("lab", "site", "host")
        for play in yaml.safe_load((ANSIBLE / f"{name}.yml").read_text())
        for role in play.get("roles", [])
    }
    used |= {task["ansible.builtin.import_role"]["name"] for role in ROLES for task in tasks(role) if "ansible.builtin.import_role" in task}
    assert used == {role.name for role in ROLES}


@pytest.mark.parametrize("playbook", ["lab.yml", "site.yml", "host.yml", "unhost.yml"])
def test_ansible_accepts_the_playbook(playbook, tmp_path):
    command = [sys.executable, "-m", "ansible", "playbook", "--syntax-check", "--inventory", "tree,", str(ANSIBLE / playbook)]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"), "ANSIBLE_HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    checked = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "ERROR" not in checked.stderr


# --- The connection plug-in --------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A connection into a tree whose path needs quoting; its ``asked`` are the commands given to the local connection."""
    spec = importlib.util.spec_from_file_location("vsprof_tree", ANSIBLE / "plugins/connection/tree.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    asked = []
    monkeypatch.setattr(
        module.LocalConnection, "exec_command", lambda self, cmd, in_data=None, sudoable=True: asked.append((cmd, in_data)) or (0, b"", b"")
    )
    connection = module.Connection.__new__(module.Connection)
    connection._play_context = SimpleNamespace(remote_addr=str(tmp_path / "a tree"))
    (tmp_path / "a tree" / "etc").mkdir(parents=True)
    return connection, asked


def test_a_command_runs_in_the_tree_with_a_clean_environment(tree):
    connection, asked = tree
    assert connection.exec_command("echo 'it is'", in_data=b"module") == (0, b"", b"")
    command, given = asked[0]
    assert command.startswith(f"chroot '{connection._tree}' env -i PATH=")
    assert command.endswith("""/bin/sh -c 'echo '"'"'it is'"'"''""")
    assert "DEBIAN_FRONTEND=noninteractive" in command
    assert given == b"module"


def test_files_are_copied_into_the_tree_and_out_of_it(tree, tmp_path):
    connection, _ = tree
    (tmp_path / "here").write_text("x")
    connection.put_file(str(tmp_path / "here"), "/etc/there")
    assert (connection._tree / "etc/there").read_text() == "x"
    connection.fetch_file("/etc/there", str(tmp_path / "back"))
    assert (tmp_path / "back").read_text() == "x"
