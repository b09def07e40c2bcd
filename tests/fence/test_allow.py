"""A person may live with a finding, on one line, for a reason, and for as long as it is there."""

from __future__ import annotations

import pytest

from onefold.fence.allow import Allow, allows, settle
from onefold.fence.words import Finding

CLOCK = Finding("a.py", 3, "clock", "It reads the clock.", "Use now.")


def test_at_the_end_of_a_line_it_covers_that_line() -> None:
    text = b"x = 1\ny = 2\nz = t()  # onefold: allow clock because it is only shown\nw = t()\n"
    assert allows(text) == [Allow(3, 3, "clock")]


def test_alone_it_covers_the_next_line_of_code() -> None:
    text = b"def f():\n    # onefold: allow clock because it is only shown\n    # and this explains why\n\n    return t()\n"
    assert allows(text) == [Allow(2, 5, "clock")]


def test_several_may_stand_above_one_line() -> None:
    text = b"# onefold: allow clock because a\n# onefold: allow terminal because b\nprint(t())\n"
    assert [(one.rule, one.covers) for one in allows(text)] == [("clock", 3), ("terminal", 3)]


@pytest.mark.parametrize(
    "said,wrong",
    [
        ("allow clock", "no reason"),
        ("allow clock because", "no reason"),
        ("allow clock: it is only shown", "no reason"),
        ("allow clok because a", "did you mean `clock`"),
        ("allow allow because a", "no rule that can be allowed"),
        ("allow syntax because a", "no rule that can be allowed"),
        ("allow", "not understood"),
        ("ignore", "not understood"),
        ("", "not understood"),
    ],
)
def test_what_it_cannot_take_it_says(said: str, wrong: str) -> None:
    (one,) = allows(f"x = 1  # onefold: {said}\n".encode())
    assert not one.rule
    assert wrong in one.wrong


def test_a_text_is_no_comment() -> None:
    assert allows(b'x = "# onefold: allow clock because a"\n') == []


def test_what_is_no_python_has_no_comments() -> None:
    assert allows(b'x = """\n# onefold: allow clock because a\n') == []


def test_it_silences_its_rule_on_its_line_and_nothing_else() -> None:
    allowed = [Allow(3, 3, "clock")]
    other = Finding("a.py", 3, "chance", "It is left to chance.", "Use run.random.")
    later = Finding("a.py", 4, "clock", "It reads the clock.", "Use now.")
    assert settle("a.py", [CLOCK, other, later], allowed, asked=True) == [other, later]


def test_one_that_silences_nothing_is_a_finding() -> None:
    (told,) = settle("a.py", [], [Allow(3, 4, "clock")], asked=True)
    assert (told.line, told.rule) == (3, "allow")
    assert settle("a.py", [], [Allow(3, 4, "clock")], asked=False) == []
