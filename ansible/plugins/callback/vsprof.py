# SPDX-License-Identifier: GPL-2.0-or-later
"""Output plug-in: what a playbook does, as one JSON object a line, for a program to read.

``{"task": name}`` when one begins; ``{"host", "task", "changed"}`` when it is done there; ``{"host", "task", "failed": why}`` and
``{"host", "unreachable": why}``; ``{"host", "task", "said": [lines]}`` where a script printed something; ``{"error": why}``; and at the
end ``{"summary": {host: {"changed", "failed", "unreachable", …}}}``.
"""

import json
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: vsprof
    type: stdout
    short_description: one JSON object a line
    description: prints what a playbook does as one JSON object a line.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "vsprof"

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        _print(task=task.get_name())

    def v2_runner_on_ok(self, result: Any) -> None:
        found = result.result
        _print(host=result.host.get_name(), task=result.task.get_name(), changed=bool(found.get("changed")))
        if result.task.action.rpartition(".")[2] == "script" or "take-back" in str(found.get("cmd")):
            _print(host=result.host.get_name(), task=result.task.get_name(), said=found.get("stdout_lines", []))

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            _print(host=result.host.get_name(), task=result.task.get_name(), failed=_why(result.result))

    def v2_runner_retry(self, result: Any) -> None:
        _print(host=result.host.get_name(), task=result.task.get_name(), retried=_why(result.result))

    def v2_runner_on_unreachable(self, result: Any) -> None:
        _print(host=result.host.get_name(), unreachable=_why(result.result))

    def v2_playbook_on_no_hosts_matched(self) -> None:
        _print(error="the inventory has no host")

    def v2_playbook_on_stats(self, stats: Any) -> None:
        _print(summary={host: stats.summarize(host) for host in stats.processed})


def _why(found: dict[str, Any]) -> str:
    """A program's own words before Ansible's."""
    return str(found.get("stderr") or found.get("module_stderr") or found.get("msg") or found.get("stdout") or found).strip()


def _print(**event: Any) -> None:
    print(json.dumps(event), flush=True)
