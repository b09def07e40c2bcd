"""A statement is read as the server reads it: its values stand where they were meant, and nothing hides behind a quote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.store.postgres.law import read
from onefold.terms.errors import BadStatement

# Text, and the names in it.
PIECES = (
    ("a", ()),
    (":x", ("x",)),
    (":long_name1", ("long_name1",)),
    ("b::text", ()),
    (":y::int4", ("y",)),
    ("':no'", ()),
    ("'it''s :no; -- /* $a$'", ()),
    ("E'\\':no\\\\'", ()),
    ("U&'\\0041:no'", ()),
    ("B'01'", ()),
    ('":no"', ()),
    ('"a"":no;"', ()),
    ("$$:no;$$", ()),
    ("$t$ $$ :no ' $t$", ()),
    ("-- :no ' /*\n", ()),
    ("/* :no /* ; ' */ -- */", ()),
    ("a$b$c", ()),
    ("(:z)", ("z",)),
    ("1.5e3", ()),
    ("<=", ()),
)


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_names_are_found_where_they_stand_and_nowhere_else(pieces: list[tuple[str, tuple[str, ...]]]) -> None:
    sql = "select " + " ".join(text for text, _ in pieces)
    found = read(sql)
    wanted = [name for _, names in pieces for name in names]
    assert [found.names[place] for place in found.at] == wanted
    assert found.names == tuple(dict.fromkeys(wanted))
    assert found.text(lambda place: f":{found.names[place]}") == sql


@given(st.lists(st.sampled_from(PIECES), max_size=6), st.sampled_from(("commit", "delete from t", "select 1")))
def test_a_second_statement_never_hides(pieces: list[tuple[str, tuple[str, ...]]], second: str) -> None:
    first = "select " + " ".join(text for text, _ in pieces)
    with pytest.raises(BadStatement, match="one statement"):
        read(f"{first} ; {second}")
    read(f"{first} ; -- nothing\n /* ; */ ;")


@given(st.text(alphabet="'\"$E\\:;-/*a\n ", max_size=30))
def test_whatever_is_said_it_is_read_or_refused(text: str) -> None:
    try:
        found = read(f"select {text}")
    except BadStatement:
        return
    assert found.text(lambda place: f":{found.names[place]}") == f"select {text}"


@pytest.mark.parametrize(
    "sql,shapes,changes",
    [
        ("select 1", False, False),
        ("(select 1) union (select 2)", False, False),
        ("INSERT into t values (1)", False, True),
        ("with a as (delete from t returning *) select * from a", False, True),
        ("with a as (select 1) select * from a", False, False),
        ('select "update" from t for update', False, False),
        ("select 1 as x into t2", True, False),
        ("create unique index a on b(c)", True, False),
        ("create or replace view v as select 1", True, False),
        ("drop table t", True, False),
        ("truncate t", False, False),
    ],
)
def test_what_a_statement_may_change_is_known(sql: str, shapes: bool, changes: bool) -> None:
    found = read(sql)
    assert (found.shapes, found.changes) == (shapes, changes)


def test_a_string_that_goes_on_with_escapes_is_refused() -> None:
    """The server reads what follows with escapes too, and a reader that does not would take its end for elsewhere."""
    with pytest.raises(BadStatement, match="write it as one"):
        read("select E'a'\n'b\\' ; commit; --'")
