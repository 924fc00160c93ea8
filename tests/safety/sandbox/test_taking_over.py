"""G9, SAFETY 12: kill -9 while effects are applied; bench/taking_over.py tries hundreds of points."""

import subprocess
import sys

import pytest

from fakes.faults import can_inject
from source_tree import ROOT


@pytest.mark.skipif(not can_inject(), reason="needs strace and the right to trace")
async def test_G9_a_kill_while_effects_are_taken_over_tears_and_loses_nothing(folder, open_shell):
    await open_shell(folder, "namespaces")
    command = [sys.executable, str(ROOT / "bench" / "taking_over.py"), "--kills", "8", "--seed", "3"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "kills: 8, 0 went wrong" in ran.stdout
