"""What is written here speaks of Onefold: of no machine it was written on, no registry, no way of working.

Patterns are spelt so that they do not find themselves.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.house.tree import ROOT, ignored, shown, text_files

STRANGERS = {
    "the address of a registry": r"py[p]i\.(org|io)|python[h]osted|np[m]js|crate[s]\.io|deb\.debia[n]|proxy\.golan[g]",
    "a path of one machine": r"(?<![\w.])/(wor[k]|roo[t]|hom[e]/\w+|op[t]/pypi)/",
    "how or by whom work is done": (
        r"\bissu[e] #?\d|co-authored-b[y]|signed-off-b[y]|generated wit[h]|\bsub-?agen[t]|\bagen[t] session"
        r"|\blanguage mode[l] wrote"
    ),
}
FOUND = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in STRANGERS.items()}


def lines_of(path: Path) -> list[str]:
    """Its lines. Raises: AssertionError naming a file that is no text."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as unread:
        raise AssertionError(f"{path}: not UTF-8, so nobody can say what is in it ({unread})") from None


@pytest.mark.parametrize("kind", STRANGERS)
def test_no_file_says(kind: str) -> None:
    said = [
        f"{shown(path)}:{number} {line.strip()[:100]}"
        for path in text_files()
        for number, line in enumerate(lines_of(path), 1)
        if FOUND[kind].search(line)
    ]
    assert said == []


@pytest.mark.parametrize(
    "path,made",
    [
        ("examples/onefold-data/secret", True),
        ("examples/onefold-data/main.db", True),
        ("examples/provider-refunds.jsonl", True),
        ("examples/refund.py", False),
        ("docs/tour.md", False),
    ],
)
def test_what_a_run_of_the_example_leaves_is_nobodys_words(path: str, made: bool) -> None:
    assert ignored(ROOT / path) is made


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"\xff\x00")
    with pytest.raises(AssertionError, match=r"notes\.txt: not UTF-8"):
        lines_of(tmp_path / "notes.txt")


@pytest.mark.parametrize("kind", STRANGERS)
def test_no_commit_says(kind: str) -> None:
    log = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "log", "--format=%h %s%n%b"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,  # an unpacked archive has no history, and then nothing in it is wrong
    )
    assert [line for line in log.stdout.splitlines() if FOUND[kind].search(line)] == []


@pytest.mark.parametrize(
    "kind,line",
    [
        ("the address of a registry", "see https://py" + "pi.org/project/onefold"),
        ("a path of one machine", "cd /wor" + "k/main"),
        ("how or by whom work is done", "as iss" + "ue 7 asks"),
    ],
)
def test_the_patterns_have_teeth(kind: str, line: str) -> None:
    assert FOUND[kind].search(line)
