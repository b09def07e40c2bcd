"""reflex.claim - who may run which task, for how long, and when somebody has had a task too often.

For: the one statement that takes what is due and what was left lying; the leases; the parting of a batch.
Never: groups inside the claim (a serial task is ready only while it holds the baton); takes more than can start at once.
Was wrong once: one lease over a long batch, run in sequence: the last of it had lapsed before it began. And a task that
killed its process was claimed for ever, since its retries were only counted by an answer.

`claims` counts claims without an answer. A process that dies takes everything it had in flight along, so that the
innocent count with the guilty: from SUSPECT_FROM on a task is run alone, which clears an innocent one and leaves the
guilty to count by itself. Beyond CLAIMS_AT_MOST it is not run any more. docs/adr/0061 has why.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from onefold.reflex.tables import REFLEX_TEXT, TASK
from onefold.reflex.words import Policy
from onefold.store.contract import (
    Answer,
    Body,
    Cas,
    Claim,
    Condition,
    Each,
    Inc,
    Last,
    Put,
    Query,
    Row,
    Value,
    Verb,
    Write,
)
from onefold.terms import codec
from onefold.terms.instant import Instant

CLAIMS_AT_MOST: Final = 5
"""Claims without an answer after which a task is parked. Two are what a deploy and a neighbour that dies may cost it;
three alone in its process tell that it is the task."""

SUSPECT_FROM: Final = 3
"""The claim from which on a task runs alone."""

GRACE_MS: Final = 5_000
"""What a lease has beyond the timeout: for the commit that records the answer."""

EFFECTS_AT_MOST: Final = 32
"""Effects of one claim. A store looks for each by itself, so that what is due of one hides behind no other."""

_CLAIMS, _VERSION, _AT = TASK.at["claims"], TASK.at["version"], TASK.at["ready_at"]
_TOKEN, _EFFECT = TASK.at["token"], TASK.at["effect"]
_STATE, _HOLDER = TASK.at["state"], TASK.at["holder"]


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a claim came to. run: to be started at once, all of it. spent: claimed too often, to be parked. waits: a
    suspect was given back, since other tasks are under way: none is to be claimed until they have ended.
    """

    run: tuple[Row, ...] = ()
    spent: tuple[Row, ...] = ()
    waits: bool = False

    @property
    def suspect(self) -> bool:
        """Whether what is to be run may kill its process: nothing else is to be started until it has ended."""
        return any(_count(row) >= SUSPECT_FROM for row in self.run)


def claiming(
    now: Instant,
    limit: int,
    effects: Sequence[str],
    token: int,
    lease_ms: int,
    timeouts: Mapping[str, int] | None = None,
    *,
    beside: bool = False,
    life: str | None = None,
) -> Body[Claimed]:
    """Take up to `limit` due or lapsed tasks of these effects, under one token, each for long enough to time out.

    timeouts: milliseconds by version, of the definitions at hand; of others their text is asked. beside: other tasks
    are under way in this process, so that a suspect waits for their end. life: of the node that claims, of a fleet.
    """
    known = {} if timeouts is None else timeouts

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Claimed]]:
        if not effects or limit < 1:
            return Last((), Claimed())
        (rows,) = yield (_claim(now, limit, effects, token, lease_ms, life),)
        claimed, back = parted(rows, beside)
        foreign = sorted({str(row[_VERSION]) for row in claimed.run} - known.keys())
        allowed = dict(known)
        if foreign:
            (texts,) = yield (Query(REFLEX_TEXT, on=REFLEX_TEXT.key, keys=[(version,) for version in foreign]),)
            allowed.update({version: policy_of(text).timeout_ms for version, text in texts})
        return Last(
            (
                *_given_back(back, now),
                *_longer(claimed.run, allowed, now, lease_ms),
            ),
            claimed,
        )

    return body


def giving_back(rows: Sequence[Row], at: Instant) -> Body[int]:
    """Let go of tasks that cannot be run here, until `at`, as if they had not been claimed. Value: how many there were.

    A task that was claimed anew meanwhile is left alone.
    """

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[int]]:
        yield ()
        return Last(_given_back(rows, at), len(rows))

    return body


def parted(rows: Sequence[Row], beside: bool = False) -> tuple[Claimed, tuple[Row, ...]]:
    """Those to run, those to park, and those to give back: a suspect never runs beside another task."""
    spent = tuple([row for row in rows if _count(row) > CLAIMS_AT_MOST])
    left = [row for row in rows if _count(row) <= CLAIMS_AT_MOST]
    suspects = [row for row in left if _count(row) >= SUSPECT_FROM]
    if not suspects:
        return Claimed(tuple(left), spent), ()
    run = left[:1] if left[0] in suspects and not beside else [row for row in left if row not in suspects]
    return Claimed(tuple(run), spent, waits=beside), tuple([row for row in left if row not in run])


def policy_of(text: bytes) -> Policy:
    """What a definition's text says of retries, time and order; where it is silent, the defaults.

    For definitions whose effects this process does not hold: all it needs is how their tasks are to be treated.
    """
    told: Mapping[str, Any] = codec.parse(text, "a definition").get("policy") or {}
    retry: Mapping[str, Any] = told.get("retry") or {}
    given = {
        "retry_max": retry.get("max"),
        "backoff": retry.get("backoff"),
        "base_ms": retry.get("baseMs"),
        "timeout_ms": told.get("timeoutMs"),
        "order": told.get("order"),
    }
    return Policy(**{name: value for name, value in given.items() if value is not None})


def due(now: Instant, effects: Sequence[str]) -> Query:
    """The first task to be claimed of each of these effects: a question, since a claim of nothing would still be a
    commit, and one that looks for every effect of an app looks longer than it must.
    """
    return Query(TASK, where=(("ready_at", "<=", now),), order=("ready_at", "n"), each=Each("effect", effects, 1))


def wanted(rows: Sequence[Row]) -> tuple[str, ...]:
    """The effects of these first tasks, the longest waiting first; as many as a claim may name."""
    return tuple(dict.fromkeys(str(row[_EFFECT]) for row in rows))[:EFFECTS_AT_MOST]


def held_by(token: int, life: str) -> str:
    """What a claimed task says of its claimer. The token is said again: code that names nobody claims under another."""
    return f"{token} {life}"


def holder_of(row: Row) -> str | None:
    """The life that has this task; None where it is nobody's, or nobody said whose."""
    token, holder = row[_TOKEN], str(row[_HOLDER] or "")
    said, _, life = holder.partition(" ")
    return life if row[_STATE] == "claimed" and token is not None and said == str(token) else None


def _claim(now: Instant, limit: int, effects: Sequence[str], token: int, lease_ms: int, life: str | None) -> Claim:
    where: tuple[Condition, ...] = (("ready_at", "<=", now), ("effect", "in", tuple(effects)))
    until = Instant(now + lease_ms)
    taken: dict[str, Value] = {"state": "claimed", "token": token, "claims": Inc(1), "attempt": Inc(1)}
    holder = None if life is None else held_by(token, life)
    return Claim(TASK, where, ("ready_at", "n"), limit, {**taken, "ready_at": until, "holder": holder})


def _given_back(rows: Sequence[Row], at: Instant) -> tuple[Write, ...]:
    """As if they had not been claimed: nothing counts, and they are due at `at`."""
    undone = {"state": "ready", "token": None, "holder": None, "claims": Inc(-1), "attempt": Inc(-1), "ready_at": at}
    return (Cas(TASK, [((row[0],), {"token": row[_TOKEN]}, undone) for row in rows]),) if rows else ()


def _longer(rows: Sequence[Row], timeouts: Mapping[str, int], now: Instant, lease_ms: int) -> tuple[Write, ...]:
    """Leases of tasks that may run longer than the claim said."""
    needed = {version: ms + GRACE_MS for version, ms in timeouts.items() if ms + GRACE_MS > lease_ms}
    if not needed:
        return ()
    long = [(row, needed[str(row[_VERSION])]) for row in rows if row[_VERSION] in needed]
    return (Put(TASK, [(*row[:_AT], now + ms, *row[_AT + 1 :]) for row, ms in long]),) if long else ()


def _count(row: Row) -> int:
    claims = row[_CLAIMS]
    assert isinstance(claims, int)
    return claims
