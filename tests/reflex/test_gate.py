"""A set is admitted whole or refused with all that is wrong with any of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from onefold.reflex.findings import ReflexFinding
from onefold.reflex.gate import Known, admit, drafted, known_to, look, roots
from onefold.reflex.grammar import parse
from onefold.reflex.seams import Query
from onefold.reflex.selects import Selects, select
from onefold.reflex.source import placed
from onefold.reflex.templates import CelTransform
from onefold.reflex.words import Json
from onefold.terms.errors import Finding, LoadRefused
from onefold.terms.instant import Instant
from tests.reflex.definitions import plain, whole
from tests.reflex.ground import Act, shape

CEL = Known(free_names=CelTransform().findings)
SIGNAL = {"fact": {"signal": "x"}}
CLOCK = {"clock": {"every": "day", "at": "09:00", "tz": "UTC"}}
EACH = {"query": {"name": "due"}, "mode": "each", "unitKey": "id"}


def found(known: Known, *definitions: Any, at: int | None = None) -> list[tuple[str, str]]:
    seen = look(placed(definitions), known, None if at is None else Instant(at))
    return [(item.path, item.problem) for item in seen.findings if isinstance(item, ReflexFinding)]


def test_an_effect_that_nobody_registered_is_refused_with_the_nearest() -> None:
    known = Known(effects={"payments.charge": Act(), "mail.send": Act()})
    ((path, problem),) = found(known, plain(effect="payments.chrage"))
    assert (path, "did you mean 'payments.charge'?" in problem) == ("effect.name", True)
    assert found(known, plain(effect="mail.send")) == []
    ((_, problem),) = found(Known(effects={}), plain())
    assert "there is none at all" in problem


def test_a_selection_that_nobody_registered_is_refused_with_the_nearest() -> None:
    known = Known(selects=["subscriptions.due"])
    assert found(known, whole()) == []
    wrong = whole(select={"query": {"name": "subscription.due"}, "mode": "batch"})
    ((path, problem),) = found(known, wrong)
    assert (path, "did you mean 'subscriptions.due'?" in problem) == ("select.query.name", True)
    queries: list[Any] = ["SELECT 1", {"name": 3}, [], {}]
    for query in queries:
        ((path, problem),) = found(known, whole(select={"query": query, "mode": "batch"}))
        assert path == "select.query"
        assert "'subscriptions.due'" in problem


def test_a_select_of_ours_says_all_that_is_wrong_with_a_query() -> None:
    @select("subscriptions.due")
    async def due(query: Query) -> list[Any]:
        return []

    known = known_to({"payments.charge": Act("payments.charge")}, Selects([due]), CelTransform())
    assert found(known, whole()) == []
    ((path, problem),) = found(known, whole(select={**EACH, "query": {"name": "subscription.due"}}))
    assert (path, "did you mean 'subscriptions.due'?" in problem) == ("select.query.name", True)
    ((path, _),) = found(known, whole(select={**EACH, "query": {"nam": "subscriptions.due"}}))
    assert path == "select.query"


def test_a_query_is_nobodys_business_where_selections_have_no_names() -> None:
    assert found(Known(), whole(select={"query": {"sql": "SELECT 1"}, "mode": "batch"})) == []


@pytest.mark.parametrize(
    "definition, path",
    [
        (plain(on=SIGNAL, when={"$": "fct.name == 'x'"}), "when"),
        (plain(on=SIGNAL, when={"$": "fact.name =="}), "when"),
        (plain(effect="note", on=CLOCK, select={"query": {"name": "due", "with": {"a": {"$": "row.id"}}}, "mode": "batch"}), "select.query.with.a"),
        ({**plain(), "effect": {"name": "note", "input": {"deep": [1, {"$": "environ.HOME"}]}}}, "effect.input.deep[1]"),
        ({**plain(on=SIGNAL), "effect": {"name": "note", "input": {"$": "occurrence.key"}}}, "effect.input"),
        ({**plain(on=SIGNAL), "effect": {"name": "note", "input": {"$": "row.id"}}}, "effect.input"),
        ({**plain(select=EACH), "effect": {"name": "note", "input": {"$": "size(rows)"}}}, "effect.input"),
    ],
)  # fmt: skip
def test_a_name_that_a_template_can_never_see_is_refused_at_its_place(definition: Any, path: str) -> None:
    assert [at for at, _ in found(CEL, definition)] == [path]


@pytest.mark.parametrize(
    "definition",
    [
        plain(on=SIGNAL, when={"$": "fact.payload.open && params.on"}),
        {**plain(on=CLOCK, select=EACH), "effect": {"name": "note", "input": {"$": "row.id + occurrence.key"}}},
        {**plain(on=CLOCK), "effect": {"name": "note", "input": {"$": "has(fact.by)"}}},
        {**plain(on={"fact": {"entity": "x"}}), "effect": {"name": "note", "input": {"$": "row.id"}}},
        whole(),
    ],
)
def test_a_template_may_see_what_its_task_will_have(definition: Any) -> None:
    assert found(CEL, definition) == []


def test_a_clause_that_cannot_be_read_hides_nothing_of_the_others_and_blames_none() -> None:
    wrong = {**plain(on={"fact": {"entity": "x", "op": "y"}}), "effect": {"name": "nope", "input": {"$": "rwo.id"}}}
    known = Known(effects={}, selects=[], free_names=CEL.free_names)
    assert [path for path, _ in found(known, wrong)] == ["on.fact.op", "effect.name", "effect.input"]
    broken = plain(on="?", effect="nope", select={"query": {"$": "occurrence.key"}})
    assert [path for path, _ in found(known, broken)] == ["on", "select.mode", "effect.name"]


def test_the_names_are_those_of_the_place() -> None:
    assert roots(parse(whole()), "select.query") == ("params", "occurrence", "fact", "facts", "now")
    assert roots(parse(whole()), "effect.input") == ("params", "occurrence", "fact", "facts", "row", "now")
    assert "occurrence" not in roots(parse(plain()), "effect.input")


def test_what_a_host_shapes_itself_is_not_read() -> None:
    known = known_to({"note": Act("note")}, None, shape)
    assert known.free_names is None
    assert found(known, plain(on=SIGNAL, when={"$": "???"})) == []


def test_a_host_without_selections_takes_no_definition_with_one() -> None:
    assert [path for path, _ in found(known_to({"note": Act("note")}, None, shape), plain(select=EACH))] == [
        "select.query.name"
    ]


def test_an_id_that_stands_twice_is_refused_with_both_places() -> None:
    definitions = [(plain("a"), "one.json[0]"), (plain("b"), "one.json[1]"), (plain("a"), "two.json")]
    with pytest.raises(LoadRefused) as caught:
        admit(definitions)
    assert str(caught.value.findings[0]).startswith(
        "two.json, reflex a, id: another definition has this id, in one.json[0]"
    )


def test_everything_wrong_with_any_of_them_is_told_at_once() -> None:
    with pytest.raises(LoadRefused) as caught:
        admit(
            placed([{}, plain("a", effect="nope"), None, plain("b", {"fact": {"run": "b"}})]),
            Known(effects={"note": Act()}),
        )
    told = [str(item) for item in caught.value.findings]
    assert len(told) == 7
    assert sum("[0]" in line for line in told) == 4
    assert any("[2]" in line and "this is null" in line for line in told)
    assert any("for ever" in line for line in told)


def test_a_clock_that_is_over_before_it_is_loaded_is_told() -> None:
    once = {"clock": {"at": "2026-03-12T09:00", "tz": "UTC"}}
    ((path, problem),) = found(Known(), plain(on=once), at=1_800_000_000_000)
    assert (path, "it never fires" in problem) == ("on.clock", True)
    assert found(Known(), plain(on=once), at=0) == []
    assert admit(placed([plain(on=once)]), at=Instant(1_800_000_000_000)).reflexes


def test_very_many_wrong_definitions_are_answered_shortly() -> None:
    with pytest.raises(LoadRefused) as caught:
        admit(placed([{"id": "A" * 1_000}] * 2_000))
    assert len(caught.value.findings) == 51
    assert len(str(caught.value)) < 30_000


def test_what_nobody_is_told_is_not_worked_out() -> None:
    """A list of zeros, a definition of nothing but unknown words, a hundred runs that nothing makes: each once took
    minutes of looking for names that were near."""
    looked = []

    def names(template: Json, path: str, known: Sequence[str]) -> Iterable[Finding]:
        looked.append(path)
        return [Finding(path, "is wrong")]

    definitions = [plain(f"r{n}", {"fact": {"signal": "x"}}, when=1) for n in range(5_000)]
    assert len(look(placed(definitions), Known(free_names=names)).findings) < 110
    assert len(looked) < 110
    assert len(look(placed([0] * 500_000), Known()).findings) < 110
    unheard = [plain(f"r{n}", {"fact": {"run": f"x{n}"}}) for n in range(3_000)]
    assert len(admit(placed(unheard), Known()).findings) == 51


def test_a_draft_is_never_refused_and_says_all_that_is_wrong() -> None:
    wrong: list[Any] = [None, [], {"on": {"clock": {"in": 5}}}, plain(effect="nope")]
    for definition in wrong:
        assert drafted(definition, Known(effects={}), Instant(0)).findings
    assert drafted(plain(), Known(), Instant(0)).findings == ()


def test_a_draft_is_looked_at_beside_what_it_would_join() -> None:
    loaded = [parse(plain("a", {"fact": {"run": "b"}})), parse({**plain("other"), "as": "s"})]
    draft = drafted(plain("b", {"fact": {"run": "a"}}), Known(), Instant(0), loaded)
    assert [(item.level, "for ever" in item.problem) for item in draft.findings] == [("refused", True)]
    assert drafted(plain("c", {"fact": {"run": "a"}}), Known(), Instant(0), loaded).findings == ()


def test_a_draft_says_what_it_would_change_of_its_own_principals_reflex_alone() -> None:
    loaded = [parse(plain("a", params={"n": 1})), parse({**plain("b", params={"n": 1}), "as": "s"})]
    assert drafted(plain("a", params={"n": 2}), Known(), Instant(0), loaded).changes == ("params.n: 1 → 2",)
    assert drafted(plain("b", params={"n": 2}), Known(), Instant(0), loaded).changes == ()
    assert drafted(plain("new"), Known(), Instant(0), loaded).changes == ()


def test_a_check_of_the_hosts_own_may_warn() -> None:
    def doubts(template: Json, path: str, known: Sequence[str]) -> Iterable[Finding]:
        return [Finding(path, f"sees {len(known)} names", "warning")]

    seen = admit(placed([plain(on=SIGNAL, when=1)]), Known(free_names=doubts))
    assert [(item.path, item.level) for item in seen.findings if isinstance(item, ReflexFinding)] == [
        ("when", "warning"),
        ("effect.input", "warning"),
    ]
