"""Mounts of a test's own, for disks that are full, read-only or without power. Needs root."""

from __future__ import annotations

import subprocess
import sys


def in_a_namespace(script: str, *arguments: object) -> list[str]:
    """Run a shell script with mounts of its own; its lines of output."""
    command = ["unshare", "--mount", "sh", "-euc", script, sys.executable, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()
