"""testing.broken.reflex_seams - templates, selections and ways out with one fault each, so that their tests prove teeth.

For: `Parts`, the sound ones as a scenario calls them; `BROKEN_PARTS`, every twin by name.
Never: is broken in two places. Each is a design that somebody has shipped.
Was wrong once: a twin that refused everything. It passed each scenario that asks for a refusal.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from onefold.ports import egress
from onefold.reflex.effects import Effects
from onefold.reflex.seams import Effect, Env, Row
from onefold.reflex.selects import Databases, Selects
from onefold.reflex.templates import CelTransform
from onefold.reflex.words import Json
from onefold.terms.errors import BadArguments, Finding
from onefold.terms.ids import Principal


class Parts:
    """The sound ones, as a scenario calls them."""

    def transform(self) -> CelTransform:
        return CelTransform()

    def selects(self, parts: Iterable[Any], databases: Databases) -> Selects:
        return Selects(parts, databases)

    def effects(self, parts: Iterable[Any]) -> Mapping[str, Effect]:
        return Effects(parts)

    async def address(self, target: egress.Target, resolve: egress.Resolve) -> str:
        return await egress.address_of(target, resolve)

    def allows(self, url: str, origins: frozenset[str]) -> bool:
        try:
            egress.allowed(egress.target_of(url), origins)
        except egress.NotAllowed:
            return False
        return True


class _NullTransform(CelTransform):
    def __call__(self, template: Json, env: Env, /) -> Json:
        try:
            return super().__call__(template, env)
        except BadArguments:
            return None


class MissingIsNull(Parts):
    """A field that is not there is null, so a slip is an amount of nothing."""

    def transform(self) -> CelTransform:
        return _NullTransform()


class _UncheckedTransform(CelTransform):
    def findings(self, template: Json, path: str, known: Sequence[str] = ()) -> list[Finding]:
        return []


class ChecksWhenItRuns(Parts):
    """A template is read when it first runs, at night."""

    def transform(self) -> CelTransform:
        return _UncheckedTransform()


class _UnboundedTransform(CelTransform):
    def __init__(self) -> None:
        super().__init__(most_bytes=1 << 40)


class GivesWithoutEnd(Parts):
    """One list held a thousand times is a thousand lists."""

    def transform(self) -> CelTransform:
        return _UnboundedTransform()


class _TrustingSelects(Selects):
    async def __call__(self, query: Json, principal: Principal, now: datetime, /) -> AsyncIterator[Row]:
        given = dict(query.get("with", {}))
        principal = given.pop("principal", principal)
        async for row in super().__call__({**query, "with": given}, principal, now):
            yield row


class AsksAsWhomItIsTold(Parts):
    """A reflex may say who asks."""

    def selects(self, parts: Iterable[Any], databases: Databases) -> Selects:
        return _TrustingSelects(parts, databases)


class _NobodysSelects(Selects):
    async def __call__(self, query: Json, principal: Principal, now: datetime, /) -> AsyncIterator[Row]:
        async for row in super().__call__(query, None, now):
            yield row


class AsksForNobody(Parts):
    """Who asks is lost on the way."""

    def selects(self, parts: Iterable[Any], databases: Databases) -> Selects:
        return _NobodysSelects(parts, databases)


class _LastWins(dict[str, Effect]):
    def __init__(self, parts: Iterable[Any]) -> None:
        super().__init__({part.name: part for part in parts})


class LastEffectWins(Parts):
    """Of two effects with one name, the one that was given last acts for both."""

    def effects(self, parts: Iterable[Any]) -> Mapping[str, Effect]:
        return _LastWins(parts)


class ChecksOneAddress(Parts):
    """The first address of a name is looked at, whichever is connected to."""

    async def address(self, target: egress.Target, resolve: egress.Resolve) -> str:
        first, *rest = await resolve(target.host, target.port)
        if not egress.is_public(first):
            raise egress.NotAllowed("its name leads to an address that is not public")
        return [first, *rest][-1]


class AllowsByBeginning(Parts):
    """An address is allowed that begins as one on the list does."""

    def allows(self, url: str, origins: frozenset[str]) -> bool:
        return any(url.startswith(origin) for origin in origins)


BROKEN_PARTS: Mapping[str, type[Parts]] = {
    twin.__name__: twin
    for twin in (
        AllowsByBeginning,
        AsksAsWhomItIsTold,
        AsksForNobody,
        ChecksOneAddress,
        ChecksWhenItRuns,
        GivesWithoutEnd,
        LastEffectWins,
        MissingIsNull,
    )
}
