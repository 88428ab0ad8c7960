# SPDX-License-Identifier: GPL-2.0-or-later
"""This machine as a testbed: enough of one for collectors that run commands."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from terms import errors
from testbeds.base import Completed, Testbed


class Here(Testbed):
    name = "here"
    cpus = os.cpu_count() or 1

    def open(self):
        pass

    def close(self):
        pass

    def facts(self):
        return {}

    def run(self, command, *, timeout=60, check=True):
        ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=timeout, check=False)
        if check and ran.returncode:
            raise errors.command_failed(command, ran.returncode, ran.stderr)
        return Completed(command, ran.returncode, ran.stdout, ran.stderr)

    def start(self, name, command, *, cpus, environment=None):
        raise NotImplementedError

    def push(self, content, path):
        raise NotImplementedError

    def pull(self, path, to):
        raise NotImplementedError

    def socket(self, path):
        raise NotImplementedError

    def files(self):
        return Path("/")


@pytest.fixture
def here():
    return Here()
