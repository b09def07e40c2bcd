"""Every rule has its words, and stands in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from onefold.fence import RULES
from onefold.fence.words import Kind, Place

CHECK = (Path(__file__).resolve().parents[2] / "docs" / "check.md").read_text(encoding="utf-8")
KINDS: tuple[Kind, ...] = ("module", "chart", "cell", "actuator", "step")


def test_the_documentation_has_each_rule_and_no_other() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", CHECK, re.MULTILINE)
    assert rows == [(rule.name, rule.forbids) for rule in RULES.values()]


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("now", [True, False])
def test_a_rule_says_what_to_write_in_every_place(rule, kind: Kind, now: bool) -> None:
    told = rule.cure(Place(kind, "decide", "module", now))
    assert len(told) > 10
    assert "run." not in told or kind in ("actuator", "step") or rule.name in ("swallowed", "expired")


def test_where_now_is_handed_in_it_is_what_to_use() -> None:
    clock = RULES["clock"]
    assert "`now`" in clock.cure(Place("module", "decide", "", now=True))
    assert "fact" in clock.cure(Place("module", "view", "", now=False))
    assert "run.now()" in clock.cure(Place("actuator", "", ""))
