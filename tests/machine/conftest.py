"""What charts are held to, from outside: the archives that fetch.sh unpacks into .setup/charts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHARTS = ROOT / ".setup" / "charts"


@pytest.fixture(scope="session")
def charts() -> Path:
    """The folder with `xstate`, `scion` and `statemachine`. For tests marked needs_node."""
    ran = subprocess.run(
        ["sh", str(ROOT / "tests/machine/fetch.sh")], cwd=ROOT, capture_output=True, text=True, check=False, timeout=900
    )
    if ran.returncode:
        pytest.fail(f"tests/machine/fetch.sh: {ran.stderr[-800:]}", pytrace=False)
    return CHARTS
