"""What the W3C and SCION say a chart does, Onefold's charts do; the document lists file by file how it went."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machine.scxml.report import DIFFERS, DOCUMENT, placed, verdicts, written

pytestmark = [pytest.mark.needs_node, pytest.mark.timeout(900)]
AT_LEAST = {"SCION": 124, "W3C, ECMAScript": 127, "W3C, Python": 120}


def test_every_chart_that_applies_passes(charts: Path) -> None:
    failed = {
        (suite, name): found.reason
        for suite, files in verdicts(charts).items()
        for name, found in files.items()
        if found.word == "failed" and name not in DIFFERS
    }
    assert failed == {}


def test_no_fewer_charts_apply_than_before(charts: Path) -> None:
    passed = {suite: sum(v.word == "passed" for v in files.values()) for suite, files in verdicts(charts).items()}
    assert {suite: count for suite, count in passed.items() if count < AT_LEAST[suite]} == {}


def test_the_list_in_the_document_is_true(charts: Path) -> None:
    """Made anew by `.venv/bin/python -m tests.machine.scxml.report`."""
    document = DOCUMENT.read_text(encoding="utf-8")
    assert placed(document, written(charts)) == document
