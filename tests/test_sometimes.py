"""A run of all tests that never met what it is there for fails, and says what it never met."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sometimes import BESIDE

CONFTEST = """
from collections import Counter
from pathlib import Path

from tests.sometimes import Sometimes

COUNTS = Counter({"parked": 3})
STATES = {"retry": "a send failed", "parked": "it was given up on"}


def pytest_configure(config):
    config.pluginmanager.register(Sometimes(STATES, COUNTS, Path(__file__).parent), "sometimes")
"""
TESTS = """
from conftest import COUNTS


def test_one():
    COUNTS["retry"] += {retries}


def test_two():
    pass
"""


def run(folder: Path, *choice: str, retries: int = 1) -> subprocess.CompletedProcess[str]:
    """All tests of a small project, or those chosen. `retries`: how often one of them meets a state."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(TESTS.replace("{retries}", str(retries)))
    root = Path(__file__).resolve().parent.parent
    told = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(folder)]
    env = {"PYTHONPATH": f"{root / 'src'}:{root}"}
    return subprocess.run(
        [*told, *choice], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_run_that_reached_everything_passes_and_shows_the_counts(tmp_path: Path) -> None:
    done = run(tmp_path, ".")

    assert done.returncode == 0, done.stdout
    assert "3  parked" in done.stdout
    assert "1  retry" in done.stdout


def test_a_run_that_missed_a_state_fails_and_names_it(tmp_path: Path) -> None:
    done = run(tmp_path, ".", retries=0)

    assert done.returncode == 1
    assert "2 passed" in done.stdout
    assert "VACUOUS: never reached: retry, a send failed" in done.stdout
    assert "never reached: parked" not in done.stdout


@pytest.mark.parametrize(
    "choice", [("-k", "two"), ("test_it.py",), ("test_it.py::test_two",), (".", "--deselect", "x"), (".", "--ignore=y")]
)
def test_a_run_of_some_tests_is_not_judged(tmp_path: Path, choice: tuple[str, ...]) -> None:
    done = run(tmp_path, *choice, retries=0)

    assert done.returncode == 0, done.stdout
    assert "never reached" not in done.stdout


def test_a_run_beside_another_is_judged_for_all_that_the_other_has_not(tmp_path: Path) -> None:
    script = (Path(__file__).parents[1] / "build_support" / "tests.sh").read_text(encoding="utf-8")
    apart = re.search(r'^apart="(.+)"$', script, re.MULTILINE)
    assert apart
    assert apart[1].split() == [f"tests/{name}" for name in BESIDE]

    done = run(tmp_path, ".", *(f"--ignore={name}" for name in BESIDE), retries=0)
    assert done.returncode == 1
    assert "VACUOUS: never reached: retry" in done.stdout
