"""What a newcomer asks about, played on the real app, line for line as it is written down beside this file.

`pytest tests/transcripts --rewrite-transcripts` writes the files anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.transcripts.flows import FLOWS, told

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.mark.parametrize("name", FLOWS)
async def test_it_happens_as_it_is_written(name: str, request: pytest.FixtureRequest) -> None:
    file, played = HERE / f"{name}.txt", await told(name)
    if request.config.getoption("--rewrite-transcripts"):
        file.write_text(played, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == played


def test_every_file_is_a_flow_and_stands_in_the_documentation() -> None:
    files = {file.stem for file in HERE.glob("*.txt")}
    linked = re.findall(r"\]\(\.\./tests/transcripts/([a-z-]+)\.txt\)", (ROOT / "docs" / "testing.md").read_text())
    assert files == set(FLOWS) == set(linked)
    assert len(linked) == len(FLOWS) > 9


async def test_a_transcript_is_the_same_each_time() -> None:
    name = "a-crash-where-nobody-can-know"
    assert await told(name) == await told(name)
