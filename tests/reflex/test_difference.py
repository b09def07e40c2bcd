"""What changed between two versions is said place by place, and nothing is said of what did not."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import given, settings

from onefold.reflex.difference import changes
from onefold.terms.codec import canonical
from tests.reflex.definitions import definitions, objects, whole

EXAMPLES = int(os.environ.get("ONEFOLD_REFLEX_EXAMPLES", "60"))


def test_each_change_is_a_line_with_its_place() -> None:
    old = whole()
    new = whole(params={"graceDays": 7}, select=None, when={"$": "fact.row.open"})
    new["policy"]["retry"]["max"] = 5
    shown = [str(change) for change in changes(old, new)]
    assert shown[:2] == ["params.graceDays: 5 → 7", "policy.retry.max: 3 → 5"]
    assert shown[2].startswith('select: removed, was {"mode":"each","query":{"name":"subscriptions.due"')
    assert shown[3] == 'when: added {"$":"fact.row.open"}'
    assert len(shown) == 4


def test_a_long_value_is_shown_by_its_beginning() -> None:
    (shown,) = [str(change) for change in changes({}, {"a": "x" * 1_000})]
    assert shown.startswith('a: added "xxx')
    assert len(shown) < 140


def test_an_item_that_came_into_a_list_is_the_only_change() -> None:
    assert [str(change) for change in changes({"a": [1, 2, 3]}, {"a": [1, 9, 2, 3]})] == ["a[1]: added 9"]
    assert [str(change) for change in changes({"a": [1, 2, 3]}, {"a": [1, 3]})] == ["a[1]: removed, was 2"]
    assert [str(change) for change in changes({"a": [{"b": 1}]}, {"a": [{"b": 2}]})] == ["a[0].b: 1 → 2"]


def test_a_number_that_became_another_kind_of_number_is_a_change() -> None:
    assert [str(change) for change in changes({"a": 1}, {"a": 1.0})] == ["a: 1 → 1.0"]


@settings(max_examples=EXAMPLES)
@given(definitions(), definitions())
def test_no_change_is_told_where_the_versions_are_the_same_and_some_where_not(one: Any, other: Any) -> None:
    assert changes(one, one) == []
    assert bool(changes(one, other)) is (canonical(one) != canonical(other))


@settings(max_examples=EXAMPLES)
@given(objects, objects)
def test_the_way_back_has_the_same_places(one: Any, other: Any) -> None:
    kinds = {"added": "removed", "removed": "added", "changed": "changed"}
    there = sorted((change.path.split("[")[0], kinds[change.kind]) for change in changes(one, other))
    back = sorted((change.path.split("[")[0], change.kind) for change in changes(other, one))
    assert there == back
