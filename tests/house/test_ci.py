"""What `.ci/run` reads of a run: the line that pytest ends with, whatever it counts."""

import re
import subprocess
from pathlib import Path

import pytest

CI = Path(__file__).parents[2] / ".ci" / "run"


@pytest.mark.parametrize(
    "line, is_closing",
    [
        ("414 passed in 3.20s", True),
        ("===== 414 passed in 3.20s =====", True),
        ("10738 passed, 69 deselected, 67 subtests passed in 623.29s (0:10:23)", True),
        ("1 failed, 5 passed, 2 skipped, 1 xfailed in 0.10s", True),
        ("    5915  alarm folded", False),
        ("1 passed by hand in the end", False),
    ],
)
def test_the_closing_line_of_a_test_run_is_found_whatever_it_counts(line: str, is_closing: bool) -> None:
    found = re.search(r"^closing\(\) \{ grep -E '([^']+)'", CI.read_text(), re.MULTILINE)
    assert found, "closing() of .ci/run no longer reads its line with one grep"
    ran = subprocess.run(["grep", "-qE", found[1]], input=line + "\n", text=True, check=False)
    assert (ran.returncode == 0) is is_closing
