"""What is wrong is found on its line, under its rule, and nothing else is said of anything."""

from __future__ import annotations

import pytest

from onefold.fence import RULES, Source, check
from tests.fence.corpus import Snippet, snippets

BAD = snippets("bad")
GOOD = snippets("good")


def found(snippet: Snippet) -> list[tuple[int, str]]:
    return sorted({(finding.line, finding.rule) for finding in check([Source("file.py", snippet.source)])})


def named(snippet: Snippet) -> str:
    return f"{snippet.group}: {snippet.title}"


@pytest.mark.parametrize("snippet", BAD, ids=named)
def test_what_may_not_stand_there_is_found_on_its_line(snippet: Snippet) -> None:
    assert snippet.expected
    assert found(snippet) == snippet.expected


@pytest.mark.parametrize("snippet", GOOD, ids=named)
def test_what_may_stand_there_is_left_alone(snippet: Snippet) -> None:
    assert check([Source("file.py", snippet.source)]) == []


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_has_something_it_finds_and_something_it_leaves(rule: str) -> None:
    assert any(rule in {name for _, name in snippet.expected} for snippet in BAD)
    assert any(snippet.group == rule for snippet in GOOD)


def test_the_corpus_is_large_enough_to_mean_something() -> None:
    assert len(BAD) >= 60
    assert len(GOOD) >= 40


@pytest.mark.parametrize("snippet", BAD, ids=named)
def test_a_finding_says_what_why_and_what_to_write(snippet: Snippet) -> None:
    found = check([Source("file.py", snippet.source)])
    assert found
    for finding in found:
        assert finding.problem[0].isupper() or finding.problem[0] == "`"
        assert finding.problem.endswith((".", "…"))
        assert finding.instead[0].isupper() or finding.instead[0] == "`"
        assert len(finding.instead) > 10
