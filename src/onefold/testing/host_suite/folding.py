"""testing.host_suite.folding - an event is one fold: its parts land together, and it counts once.

For: replies, repeats, conflicts, declines, folds that fail, time within an actor, replay, reads.
Never: what is owed (owing), when an actor wakes (waking), commits that fail (outcomes).
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from onefold.kernel.tables import TURN
from onefold.terms.errors import (
    BadArguments,
    DecideFailed,
    KeyConflict,
    LoadRefused,
    OnefoldError,
    TooLarge,
    UnknownName,
)
from onefold.terms.instant import moment
from onefold.testing.host_suite.ground import Ground, Unfulfilled, at_once, expect, promise, refused
from onefold.testing.host_suite.vault import (
    VAULT,
    Act,
    Added,
    Fact,
    Fault,
    Planned,
    Promised,
    Short,
    Total,
    Vault,
    decide,
    evolve,
    make,
)


@promise("an event is folded once, answered by its own fold, and its facts are the actor's history")
async def one_fold(ground: Ground) -> None:
    expect(await ground.act("1", add=5), Total(5), "the first reply")
    expect(await ground.act("2", add=-2), Total(3), "the second reply")
    facts = [(row.seq, row.at, row.fact) for row in await ground.host.history(VAULT, "a", caller=ground.caller())]
    now = ground.clock.moment
    expect(facts, [(1, now, Added(5, now)), (2, now, Added(-2, now))], "the history")
    expect(await ground.read(), Vault(total=3), "the view")
    turns = (await ground.picture())["turn"]
    expect([row[TURN.at["event"]] for row in turns], ["d/1", "d/2"], "one row a fold")


@promise("a repeat gets the first reply and changes no row, also after later events, a crash and an eviction")
async def repeats(ground: Ground) -> None:
    ground.keep(1)
    await ground.restart()
    ground.courier.down(9)
    first = await ground.act("1", add=5, owe=("=",), wake=60_000)
    await ground.settle()
    await ground.act("2", add=7)
    await ground.act("other", "b", add=1)  # there is room for one
    for life in ("the same", "a clean end", "a crash"):
        before = await ground.picture()
        for _ in range(2):
            expect(await ground.act("1", add=5, owe=("=",), wake=60_000), first, f"the reply to a repeat after {life}")
        expect(await ground.picture(), before, f"the rows after a repeat after {life}")
        await (ground.restart() if life == "the same" else ground.crash())
    expect((await ground.read()).total, 12, "the total")


@promise("a repeat in flight waits for the first, and both get its reply")
async def repeats_in_flight(ground: Ground) -> None:
    told = await asyncio.gather(*(ground.act("1", add=5) for _ in range(20)), ground.act("2", add=1))
    expect(told, [Total(5)] * 20 + [Total(6)], "the replies")
    expect(len((await ground.picture())["turn"]), 2, "how many rows there are")


@promise("the same id with other content is a conflict, in flight and ever after, and changes no row")
async def conflicts(ground: Ground) -> None:
    told = await asyncio.gather(ground.act("1", add=5), ground.act("1", add=6), return_exceptions=True)
    expect(told[0], Total(5), "the reply of the first")
    expect(type(told[1]), KeyConflict, "what the second is told")
    before = await ground.picture()
    for life in ("the same", "the next"):
        conflict = await refused(ground.act("1", add=6), KeyConflict, f"other content in {life} life")
        expect(conflict.key, "1", "the key it names")
        await ground.crash()
    expect(await ground.picture(), before, "the rows after a conflict")


@promise("a decline counts: its id and its reply are stored, and no fact")
async def declines(ground: Ground) -> None:
    expect(await ground.act("1", add=-5), Short(5), "the decline")
    await ground.act("2", add=100)
    await ground.crash()
    expect(await ground.act("1", add=-5), Short(5), "the same event, when it would be taken")
    expect(await ground.facts(), [Added(100, ground.clock.moment)], "the facts")


@promise("a fold that fails leaves every row as it was, names its fault, and its id is free")
async def failing_folds(ground: Ground) -> None:
    ground.courier.down(9)
    await ground.act("0", add=5, owe=("=",), wake=60_000)
    await ground.settle()
    before = await ground.picture()
    told: dict[Fault, type[OnefoldError]] = {
        "decide": DecideFailed,
        "evolve": DecideFailed,
        "wake": DecideFailed,
        "facts": TooLarge,
        "reply": TooLarge,
        "owed": TooLarge,
        "key": KeyConflict,
    }
    for fault, kind in told.items():
        failing = Act("1", add=7, owe=("more",), wake=1_000, fault=fault)
        await refused(ground.deliver(failing), kind, f"a fold that fails in {fault}")
        expect(await ground.picture(), before, f"the rows after a fold that failed in {fault}")
        expect((await ground.read()).total, 5, f"the view after a fold that failed in {fault}")
    expect(await ground.act("1", add=7), Total(12), "the same id, with a fold that does not fail")


@promise("a fold that fails takes none of its company along, and leaves nothing in their state")
async def failing_in_company(ground: Ground) -> None:
    told = await asyncio.gather(
        ground.act("1", add=1),
        ground.act("2", add=10, fault="evolve"),
        ground.act("3", add=100, fault="key"),
        ground.act("4", add=1_000, fault="reply"),
        ground.act("5", add=10_000, fault="wake"),
        ground.act("6", add=2),
        ground.act("7", "b", add=3),
        return_exceptions=True,
    )
    expect([told[0], *told[5:]], [Total(1), Total(3), Total(3)], "the replies of the others")
    failed = [type(fault) for fault in told[1:5]]
    expect(failed, [DecideFailed, KeyConflict, TooLarge, DecideFailed], "what the failing are told")
    await ground.crash()
    expect([(await ground.read(key)).total for key in "ab"], [3, 3], "the totals after a crash")


@promise("who is meant and what it is called are read at the door: an empty key or id is refused, and leaves no row")
async def at_the_edge(ground: Ground) -> None:
    for event in (Act("", "a"), Act("1", ""), Act("x" * 600, "a"), Act("nul \0", "a")):
        await refused(ground.deliver(event), BadArguments, f"an event with the id {event.id[:5]!r} of {event.vault!r}")
    expect(any((await ground.picture()).values()), False, "whether any row is there")
    await ground.act("1", "a", add=1)
    await ground.act("1", "b", add=2)
    expect([(await ground.read(key)).total for key in "ab"], [1, 2], "one id at two actors")


@promise("an event as JSON is the same event, and one that cannot be read is refused by field and leaves no row")
async def as_json(ground: Ground) -> None:
    caller = ground.caller()
    raw = b'{"type":"Act","id":"1","vault":"v","add":5}'
    told = await ground.host.deliver_raw("vault", raw, caller=caller)
    expect(await ground.act("1", "v", add=5), Total(5), "the same event from code")
    again = await ground.host.deliver_raw("vault", raw, caller=caller)
    expect(again.reply, told.reply, "the reply to the same bytes again")
    expect((told.replayed, again.replayed), (False, True), "whether each says that it was given before")
    before = await ground.picture()
    for wrong in (
        b"",
        b"{",
        b'{"type":"Act","add":2}',
        raw.replace(b":5", b':"5"'),
        raw.replace(b":5", b":NaN"),
        raw * 2,
    ):
        fault = await refused(ground.host.deliver_raw("vault", wrong, caller=caller), BadArguments, f"{wrong!r}")
        expect(bool(fault.faults), True, "whether it says what is wrong")
    expect(await ground.picture(), before, "the rows after what cannot be read")


@promise("now is an argument: it is the clock's, stands in the turn's row, and never goes back within an actor")
async def time_is_an_argument(ground: Ground) -> None:
    await ground.act("1", add=1)
    first = ground.clock.moment
    await ground.advance("1h")
    await ground.act("2", add=1)
    later = ground.clock.moment
    await ground.close()
    ground.clock.set_back(1_800_000)
    await ground.open()
    await ground.act("3", add=1)
    await ground.act("1", "b", add=1)
    expect([fact.at for fact in await ground.facts()], [first, later, later], "what now was")
    expect([fact.at for fact in await ground.facts("b")], [ground.clock.moment], "what now is for another actor")


@promise("a history replays: its events, decided again at the instants of their rows, give the facts that are stored")
async def replays(ground: Ground) -> None:
    events = [Act(str(i), add=(i * 7) % 5 - 2, wake=1_000 * i if i % 3 == 0 else None) for i in range(60)]
    events += [Act(f"o{i}", owe=("=",)) for i in range(3)]
    for event in events:
        await refusing_nothing(ground, event)
        ground.clock.step_to(ground.clock.now() + 10)
    rows = [row for row in (await ground.picture())["turn"] if str(row[TURN.at["event"]]).startswith("d/")]
    by_id = {f"d/{event.id}": event for event in events}
    state = VAULT.initial
    for row in sorted(await replayed(ground), key=lambda row: row[0]):
        _, id, at, stored = row
        if id in by_id:
            expect(list(decide(state, by_id[id], moment(at)).facts), stored, f"the facts of {id}, decided again")
        for fact in stored:
            state = evolve(state, fact)
    expect(len(rows), len(events), "how many events were folded")
    expect(await ground.read(), state, "the state")


async def refusing_nothing(ground: Ground, event: Act) -> None:
    told = await ground.deliver(event)
    if not isinstance(told, Total | Short):
        raise Unfulfilled(f"{event} was answered {told!r}")


async def replayed(ground: Ground) -> list[tuple[int, str, int, list[Fact]]]:
    """Number, event, instant and facts of each turn."""
    turns = (await ground.picture())["turn"]
    at = TURN.at
    return [
        (int(row[0]), str(row[at["event"]]), int(row[at["at"]]), VAULT.codecs.fact.decode_many(row[at["facts"]]))  # type: ignore[arg-type]
        for row in turns
    ]


@promise("a read folds nothing and writes nothing, also of an actor that is not there or whose alarm is due")
async def reads_never_fold(ground: Ground) -> None:
    await ground.act("1", add=5, wake=60_000)
    await ground.close()
    ground.clock.step_to(ground.clock.now() + 120_000)
    wrote: list[str] = []
    ground.failpoint = wrote.append
    await ground.open()
    await ground.settle()  # it rings
    before, wrote[:] = await ground.picture(), []
    caller = ground.caller()
    for key in ("a", "nobody"):
        expect((await ground.read(key)).total, 5 if key == "a" else 0, "the total")
        await ground.host.read_json("vault", key, caller=caller)
        await ground.facts(key)
        await ground.host.actors("vault", caller=caller)
    await ground.settle()
    expect([point for point in wrote if "commit" in point], [], "commits")
    expect(await ground.picture(), before, "the rows after reads")


@promise("a read shows what is committed, while what was decided on top of it is not")
async def reads_are_durable(ground: Ground) -> None:
    await ground.act("1", add=5)
    seen: list[int] = []

    def look(point: str) -> None:
        if point == "before-commit":
            seen.append(at_once(ground.read()).total)

    ground.failpoint = look
    await ground.act("2", add=7)
    expect(seen, [5], "what is read while a fold is on its way")
    expect((await ground.read()).total, 12, "what is read after its commit")


@promise("a host serves the modules it was given, as values, and refuses two of one name")
async def modules_are_values(ground: Ground) -> None:
    await refused(ground.host.read_json("safe", "a", caller=ground.caller()), UnknownName, "a module it was not given")
    second = make("safe")
    await ground.serve(VAULT, second, ground.courier.dedupes())
    await ground.deliver(Act("1", "a", add=2), module=second)
    await ground.act("1", "a", add=3)
    totals = [(await ground.read("a", module=module)).total for module in (VAULT, second)]
    expect(totals, [3, 2], "one key and one id in two modules")
    await ground.close()
    ground.parts = (VAULT, make())
    await refused(ground.open(), LoadRefused, "two modules of one name")
    ground.parts = (VAULT,)
    await ground.open()
    expect((await ground.read()).total, 3, "what is there once the other module is taken away")


@promise("all parts of a fold are there after a crash: facts, what is owed, reply, id, alarm")
async def all_of_a_fold(ground: Ground) -> None:
    ground.courier.down(99)
    told = await ground.act("1", add=5, owe=("=", "k"), wake=90_000)
    await ground.crash()
    now, later = ground.clock.moment, ground.clock.moment + timedelta(seconds=90)
    facts = [Added(5, now), Promised("1", 5), Promised("k", 5), Planned(later, "")]
    expect(await ground.facts(), facts, "the facts")
    picture = await ground.picture()
    expect(sorted(str(row[3]) for row in picture["owed"]), ["e/1", "k/k"], "the keys that are owed")
    row = await ground.alarm_row()
    if row is None or row[0] is None or row[0] > ground.clock.now() + 90_000:
        raise Unfulfilled(f"the alarm row is {row}; promised was one no later than what is due")
    expect(await ground.act("1", add=5, owe=("=", "k"), wake=90_000), told, "the reply")


CHECKS = (
    one_fold,
    repeats,
    repeats_in_flight,
    conflicts,
    declines,
    failing_folds,
    failing_in_company,
    at_the_edge,
    as_json,
    time_is_an_argument,
    replays,
    reads_never_fold,
    reads_are_durable,
    modules_are_values,
    all_of_a_fold,
)
