"""What is written here speaks of Onefold: of no machine it was written on, no registry, no way of working.

Patterns are spelt so that they do not find themselves.
"""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.house.tree import ROOT, shown, text_files

STRANGERS = {
    "the address of a registry": r"py[p]i\.(org|io)|python[h]osted|np[m]js|crate[s]\.io|deb\.debia[n]|proxy\.golan[g]",
    "a path of one machine": r"(?<![\w.])/(wor[k]|roo[t]|hom[e]/\w+|op[t]/pypi)/",
    "how or by whom work is done": (
        r"\bissu[e] #?\d|co-authored-b[y]|signed-off-b[y]|generated wit[h]|\bsub-?agen[t]|\bagen[t] session"
        r"|\blanguage mode[l] wrote"
    ),
}
FOUND = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in STRANGERS.items()}


@pytest.mark.parametrize("kind", STRANGERS)
def test_no_file_says(kind: str) -> None:
    said = [
        f"{shown(path)}:{number} {line.strip()[:100]}"
        for path in text_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if FOUND[kind].search(line)
    ]
    assert said == []


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
