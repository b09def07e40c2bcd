"""A file of another process is looked at through its owner, as if it lay here, and never written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.fleet.abroad import Abroad, read, shown, written
from onefold.kernel.tables import KERNEL, TURN
from onefold.store.contract import Append, Each, Query
from onefold.store.memory import MemoryWorld
from onefold.terms.codec import canonical, parse
from onefold.terms.errors import BadArguments, OwnedElsewhere
from onefold.testing import VirtualClock
from onefold.testing.store_suite.ground import done, writing

TABLES = {table.name: table for table in KERNEL.tables}
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=5
)  # no store takes a NUL, and no door lets one in
CELLS = st.one_of(st.integers(-(2**53), 2**53), TEXTS, st.binary(max_size=5))
QUERIES = st.builds(
    Query,
    st.just(TURN),
    where=st.lists(
        st.one_of(
            st.tuples(st.just("seq"), st.sampled_from(["=", "<", ">="]), CELLS),
            st.tuples(st.just("digest"), st.just("in"), st.lists(CELLS, max_size=3).map(tuple)),
            st.tuples(st.just("prev"), st.just("null"), st.booleans()),
        ),
        max_size=3,
    ).map(tuple),
    order=st.lists(st.sampled_from(["n", "-n", "seq"]), max_size=2, unique=True).map(tuple),
    limit=st.none() | st.integers(0, 9),
    each=st.none() | st.builds(Each, st.just("actor"), st.lists(CELLS, max_size=3).map(tuple), st.integers(1, 3)),
)


@given(QUERIES)
def test_a_question_arrives_as_it_was_asked(query: Query) -> None:
    assert read(parse(canonical(written(query)), "a question"), TABLES) == query


@pytest.mark.parametrize(
    "told", [None, {}, [], {"table": "nowhere"}, {**written(Query(TURN)), "where": [["n"]]}, "turn", 7]
)
def test_what_is_no_question_about_this_file_is_refused(told: Any) -> None:
    with pytest.raises(BadArguments, match="no question"):
        read(told, TABLES)


async def test_rows_come_back_as_they_lie_and_nothing_is_written_from_afar() -> None:
    world = MemoryWorld(clock=VirtualClock().now)
    space = await world.open("work", (KERNEL,))
    row = (space.mint(TURN), 1, 1, None, "d/é", b"\x00\xff", None, b"[]", None, 5, 0, b"link")
    done(await space.transact(writing(Append(TURN, [row]))))

    async def ask(name: str, queries: Any) -> Any:
        assert name == "work"
        asked = parse(canonical(queries), "questions")
        return parse(canonical(shown(await space.look(*(read(one, TABLES) for one in asked)))), "rows")

    abroad = Abroad("work", ask, lambda: OwnedElsewhere("space/work", "b", 0, 3))
    assert await abroad.look(Query(TURN), Query(TURN, on=("n",), keys=[(row[0],)])) == ([row], [row])
    with pytest.raises(OwnedElsewhere, match="space/work"):
        await abroad.transact(writing(Append(TURN, [row])))
    with pytest.raises(OwnedElsewhere):
        abroad.join(None)
    await world.close()
