"""What the page on reflexes shows in JSON is what the grammar takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onefold.reflex.gate import Known, admit
from onefold.reflex.grammar import parse
from onefold.reflex.source import in_text, placed
from onefold.reflex.templates import CelTransform
from onefold.reflex.words import Policy
from onefold.terms import codec
from tests.house.blocks import Block, blocks
from tests.reflex.definitions import plain

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reflexes.md"
JSON = [block for block in blocks(PAGE) if block.language == "json"]
CLAUSES = ("on", "select", "policy")


def lines(block: Block) -> list[Any]:
    return [codec.parse(line.encode()) for line in block.code.splitlines()]


def clauses(word: str) -> list[Any]:
    return [clause for block in JSON if word in block.marks for clause in lines(block)]


def test_every_json_block_is_held_to_something() -> None:
    assert [block.line for block in JSON if not block.file and not {*block.marks} & {*CLAUSES}] == []
    assert all(clauses(word) for word in CLAUSES)


@pytest.mark.parametrize("word", CLAUSES)
def test_each_clause_is_taken(word: str) -> None:
    for clause in clauses(word):
        assert parse(plain(**{word: clause})).definition[word] == clause


def test_the_defaults_that_are_shown_are_the_defaults() -> None:
    shown = {word: item for clause in clauses("policy") for word, item in clause.items()}
    assert parse(plain(policy=shown)).policy == Policy()


def test_the_example_is_admitted_with_its_templates() -> None:
    text = next(block.code for block in JSON if block.file == "billing.json")
    found: list[Any] = []
    admitted = admit(placed(in_text(text.encode(), "billing.json", found)), Known(free_names=CelTransform().findings))
    assert found == []
    assert admitted.findings == ()
    assert [reflex.id for reflex in admitted.reflexes] == ["billing.charge-due", "billing.digest"]
