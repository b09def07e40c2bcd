"""testing.host_suite.owing - what is owed leaves after its commit, under one key, with one content, until it is confirmed.

For: bytes sealed once, keys that leave, retries, answers as events, parking and the way out, doubtful sends.
Never: the alarm by itself (waking), processes that end (outcomes).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from onefold.kernel.module import Module
from onefold.kernel.tables import OWED, TURN
from onefold.kernel.words import Decision
from onefold.terms.errors import KeyConflict, NotFound, StoreUnavailable
from onefold.testing.host_suite.ground import Ground, Unfulfilled, expect, hits, promise, refused
from onefold.testing.host_suite.vault import VAULT, Act, Fact, Heard, Parcel, Promised, Reply, Vault, make

LONG = "4h"  # past the last try of whatever fails each time
TRIES = 20  # after which it is parked


@promise("what is owed leaves after its fold is committed, and its answer is an event of the same actor")
async def leaves_after(ground: Ground) -> None:
    order: list[str] = []
    ground.failpoint = lambda point: order.append(point) if point == "after-commit" else None
    ground.courier.hook = lambda step: order.append("sent")
    await ground.act("1", add=5, owe=("=",))
    await ground.settle()
    expect(order, ["after-commit", "sent", "after-commit"], "commits and sends")
    expect((await ground.facts())[1:], [Promised("1", 5), Heard("1", "ok")], "the facts")
    picture = await ground.picture()
    expect(picture["owed"], [], "what is still owed")
    expect(str(picture["turn"][-1][TURN.at["event"]]), "o/e/1", "the id of the answer: its source, and the owed key")


@promise("a fold that is not committed sends nothing")
async def nothing_leaves(ground: Ground) -> None:
    failed = ground.fail_at("before-commit")
    await refused(ground.act("1", owe=("=",)), StoreUnavailable, "a fold on a failing disk")
    expect(failed(), True, "whether the disk failed")
    ground.live_on()
    await ground.advance("1h")
    expect(ground.courier.calls, [], "what was sent")


@promise("each retry sends the bytes that were sealed in the fold, under the same key, whatever changed since")
async def sealed_once(ground: Ground) -> None:
    await ground.act("0", add=5)
    ground.courier.down(3)
    await ground.act("1", owe=("=", "named"))
    await ground.settle()
    sealed = await owed(ground, "bytes")
    await ground.act("2", add=37)  # the module would now say otherwise
    await ground.advance("2s")
    other = make(decide=_says_otherwise)
    await ground.serve(other, ground.courier.dedupes())
    expect(set(await owed(ground, "bytes")) - set(sealed), set(), "bytes in the rows that were not sealed")
    await ground.advance("1h")
    bodies = {(key, body) for key, body, _ in ground.courier.calls}
    expect(len(bodies), len(ground.courier.keys), "how many contents were sent under a key")
    expect({body for _, body in bodies}, {Parcel(5)}, "what was sent")
    expect(len(ground.courier.calls) > 3, True, "whether it was tried again")


def _says_otherwise(vault: Vault, event: Act, now: datetime) -> Decision[Fact, Reply]:
    raise RuntimeError("what is owed is never decided again")


@promise(
    "a row goes only with its confirmation: a failed send leaves it there, its cause written down, its tries counted"
)
async def stays_owed(ground: Ground) -> None:
    ground.courier.down(2)
    await ground.act("1", owe=("=",))
    await ground.settle()
    expect(await owed(ground, "tries", "state"), [(1, "ready")], "the row after one failure")
    ((error, next_at),) = await owed(ground, "error", "next_at")
    expect("down" in str(error), True, f"whether {error!r} says why")
    expect(next_at > ground.clock.now(), True, "whether it is backed off")
    row = await ground.alarm_row()
    expect(row is not None and row[0] is not None and row[0] <= next_at, True, f"whether {row} rings no later")
    await ground.advance("1m")
    expect(
        (await owed(ground), await ground.facts()), ([], [Promised("1", 0), Heard("1", "ok")]), "the row and the facts"
    )
    expect([attempt for _, _, attempt in ground.courier.calls], [1, 2, 3], "the attempts")


@promise("a confirmation, its answer and the removal of its row are one commit, wherever the process ends")
async def confirmed_at_once(ground: Ground) -> None:
    for point in ("statement", "before-commit", "after-commit"):
        for hit in hits():
            id = f"{point} {hit}"
            struck, _ = await ground.killed_in(ground.act(id, id, owe=("=",)), point, hit)
            answered = [fact for fact in await ground.facts(id) if isinstance(fact, Heard)]
            turns = await ground.facts(id)
            rows = [key for (key,) in await owed(ground, "key", also=True) if key == f"e/{id}"]
            if len(answered) + len(rows) != (1 if turns else 0):
                raise Unfulfilled(f"killed at {id}: {answered} with the rows {rows}; promised was one of the two")
            await ground.act(id, id, owe=("=",))
            await ground.advance("1m")
            expect(await ground.facts(id), [Promised(id, 0), Heard(id, "ok")], f"the facts after a kill at {id}")
            if not struck:
                break
        expect(hit > 1, True, f"whether {point} was met at all")


@promise(
    "the first answer of an owed key counts, and no other: a port that is asked again and answers otherwise is not heard"
)
async def first_answer_wins(ground: Ground) -> None:
    ground.courier.words = ["first", "second", "third"]
    for hit in (2, 1):  # the commit of the answer, then nothing
        await ground.killed_in(ground.act("1", owe=("=",)), "before-commit", hit)
    await ground.advance("1m")
    heard = [fact for fact in await ground.facts() if isinstance(fact, Heard)]
    expect(len(heard), 1, "how many answers were folded")
    await ground.crash()
    await ground.advance("1h")
    expect([fact for fact in await ground.facts() if isinstance(fact, Heard)], heard, "the answer ever after")


@promise("an event from outside whose id is an owed key is no answer, and keeps none from counting")
async def sources_stay_apart(ground: Ground) -> None:
    ground.courier.down(2)
    await ground.act("1", owe=("k",))
    await ground.act("k", add=1)
    await ground.act("o/k/k", add=1)
    await ground.act("e/1", add=1)
    await ground.advance("1m")
    facts = await ground.facts()
    expect(sum(isinstance(fact, Heard) for fact in facts), 1, "answers")
    expect((await ground.read()).total, 3, "events")


@promise("an answer may owe the next thing: a chain is fold after fold")
async def chains(ground: Ground) -> None:
    ground.courier.words = ["then second", "then third", "done"]
    await ground.act("1", owe=("first",))
    await ground.settle()
    words = [fact.word for fact in await ground.facts() if isinstance(fact, Heard)]
    expect(words, ["then second", "then third", "done"], "the answers in order")
    expect(
        [key.rpartition("/")[2] for key, _, _ in ground.courier.calls], ["k~1first", "k~1second", "k~1third"], "keys"
    )


@promise("a repeat of an event owes nothing more")
async def repeats_owe_nothing(ground: Ground) -> None:
    for _ in range(3):
        await ground.act("1", owe=("=", "k"))
        await ground.settle()
        await ground.crash()
    await ground.advance("1h")
    expect(len(ground.courier.calls), 2, "how often something was sent")


@promise("a key the module named is owed once: the same bytes again are nothing new, other bytes refuse their fold")
async def named_keys(ground: Ground) -> None:
    await ground.act("1", owe=("rent",))
    await ground.settle()
    await ground.act("2", owe=("rent",))
    await ground.crash()
    before = await ground.picture()
    conflict = await refused(ground.act("3", add=1, owe=("rent",)), KeyConflict, "the same key with other bytes")
    expect(conflict.key, "rent", "the key it names")
    expect(await ground.picture(), before, "the rows after it")
    await ground.advance("1h")
    expect(len(ground.courier.calls), 1, "how often it was sent")


@promise("the key that leaves is one actor's only: of its kind, its principal, its key")
async def keys_that_leave(ground: Ground) -> None:
    second = make("safe")
    await ground.serve(VAULT, second, ground.courier.dedupes())
    sent = 0
    for module in (VAULT, second):
        for who in (None, "a", "~", "None", "-"):
            for key in ("a", "b", "a/b", "~"):
                await ground.deliver(Act("1", key, owe=("=", "k")), who, module=module)
                sent += 2
    await ground.settle()
    expect((len(ground.courier.calls), len(ground.courier.keys)), (sent, sent), "sends, and the keys of them")


@promise("a send that fails each time is parked with its cause, is asked no more, and is listed for a person")
async def parks(ground: Ground) -> None:
    await _park(ground)
    item = await ground.one_parked()
    expect((item.kind, item.program), ("owed", "vault"), "what is parked")
    expect("courier" in item.cause and "down" in item.cause, True, f"whether {item.cause!r} names port and fault")
    calls = len(ground.courier.calls)
    await ground.crash()
    await ground.advance("4h")
    expect(len(ground.courier.calls), calls, "how often it was tried")
    expect([item.id for item in await ground.parked()], [item.id], "what is parked after a crash")


@promise("whoever the settings name is told of what parks, once, also when the process ends as it parks")
async def alerts(ground: Ground) -> None:
    ground.configure(alerts=["boss"], people={"boss": {"notify": ["mailto:boss@example.com"]}})
    await ground.restart()
    await _park(ground)
    item = await ground.one_parked()
    expect(len(ground.said), 1, "how often somebody was told")
    expect(item.id in ground.said[0] and "courier" in ground.said[0], True, f"whether {ground.said[0]!r} says of what")
    for _ in range(3):
        await ground.crash()
        await ground.advance("2h")
    expect(len(ground.said), 1, "how often somebody was told, in four lives")
    ground.courier.hook = lambda step: ground.kill_at("after-commit") if step.attempt == TRIES else None
    ground.courier.down(TRIES)
    await ground.act("1", "b", owe=("=",))
    struck, _ = await ground.killed_in(ground.advance(LONG), "none", 1)
    expect(struck, True, "whether the process ended as it parked")
    await ground.advance("1h")
    expect((len(await ground.parked()), len(ground.said)), (2, 2), "what is parked, and how often somebody was told")


@promise("a person retries what is parked, under the same key and with the same bytes")
async def retried(ground: Ground) -> None:
    await _park(ground)
    item = await ground.one_parked()
    ground.courier.down(1)
    await ground.host.parked_retry(item.id, caller=ground.caller())
    await ground.advance("1h")
    expect(await ground.parked(), [], "what is parked")
    expect((await ground.facts())[-1], Heard("1", "ok"), "the answer")
    expect(len({(key, body) for key, body, _ in ground.courier.calls}), 1, "how many contents were sent")


@promise("a person drops what is parked, and its actor hears of it as an answer; after that it is gone")
async def dropped(ground: Ground) -> None:
    await _park(ground)
    item = await ground.one_parked()
    await ground.host.parked_drop(item.id, reason="no", caller=ground.caller())
    expect((await ground.facts())[-1], Heard("1", "dropped: no"), "the answer")
    before = await ground.picture()
    for verb in (
        ground.host.parked_retry(item.id, caller=ground.caller()),
        ground.host.parked_drop(item.id, reason="again", caller=ground.caller()),
    ):
        await refused(verb, NotFound, "a second decision")
    expect(await ground.picture(), before, "the rows after a second decision")


@promise("a port that can neither dedupe nor be asked is never called twice on a doubt: a person is")
async def doubtful_and_neither(ground: Ground) -> None:
    await ground.serve(VAULT, ground.courier.neither())
    await ground.killed_in(ground.act("1", owe=("=",)), "after-send", 1)
    await ground.advance("4h")
    expect(len(ground.courier.calls), 1, "how often it was called")
    item = await ground.one_parked()
    expect(item.kind, "uncertain", "what is parked")
    ground.courier.down(1)
    await ground.act("2", "b", owe=("=",))
    await ground.advance("1 day")
    expect(len(ground.courier.calls), 2, "how often it was called, once with a fault that hides whether it acted")
    expect([item.kind for item in await ground.parked()], ["uncertain"] * 2, "what is parked")


@promise("a port that can be asked is asked after a doubtful send, and called again only when it knows of none")
async def doubtful_and_lookup(ground: Ground) -> None:
    await ground.serve(VAULT, ground.courier.lookup(["found"]))
    await ground.killed_in(ground.act("1", owe=("=",)), "after-send", 1)
    await ground.advance("1h")
    expect(len(ground.courier.calls), 1, "how often it was called")
    await ground.serve(VAULT, ground.courier.lookup([]))
    await ground.killed_in(ground.act("2", owe=("=",)), "before-send", 1)
    await ground.advance("1h")
    await ground.serve(VAULT, ground.courier.lookup(["kept"]))
    ground.courier.down(1)
    await ground.act("3", owe=("=",))
    await ground.advance("1h")
    words = [(fact.name, fact.word) for fact in await ground.facts() if isinstance(fact, Heard)]
    expect(words, [("1", "found"), ("2", "ok"), ("3", "kept")], "the answers")
    expect(len(ground.courier.calls), 3, "how often it was called")


@promise("what is owed to a port that no part provides waits, and leaves once one does")
async def waits_for_its_port(ground: Ground) -> None:
    await ground.serve(VAULT)
    await ground.act("1", owe=("=",))
    await ground.advance("5m")
    await ground.serve(VAULT, ground.courier.dedupes())
    await ground.advance("1h")
    expect((await ground.facts())[-1], Heard("1", "ok"), "the answer")


@promise("what a module does not listen to is confirmed all the same, and leaves no turn")
async def unheard(ground: Ground) -> None:
    deaf: Module[Any, Any, Any, Any, Any] = make(on_answer=None)
    await ground.serve(deaf, ground.courier.dedupes())
    await ground.act("1", owe=("=",))
    await ground.advance("1m")
    picture = await ground.picture()
    expect((picture["owed"], len(picture["turn"]), len(ground.courier.calls)), ([], 1, 1), "rows, turns and calls")


async def owed(ground: Ground, *columns: str, also: bool = False) -> list[Any]:
    """These cells of what is owed, oldest first; the cell itself where it is one, unless `also`."""
    rows = (await ground.picture())["owed"]
    cells = [tuple(row[OWED.at[column]] for column in columns) for row in rows]
    return [cell[0] for cell in cells] if len(columns) == 1 and not also else cells


async def _park(ground: Ground) -> None:
    ground.courier.down(TRIES)
    await ground.act("1", owe=("=",))
    await ground.advance(LONG)


CHECKS = (
    leaves_after,
    nothing_leaves,
    sealed_once,
    stays_owed,
    confirmed_at_once,
    first_answer_wins,
    sources_stay_apart,
    chains,
    repeats_owe_nothing,
    named_keys,
    keys_that_leave,
    parks,
    alerts,
    retried,
    dropped,
    doubtful_and_neither,
    doubtful_and_lookup,
    waits_for_its_port,
    unheard,
)
