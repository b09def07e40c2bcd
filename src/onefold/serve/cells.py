"""serve.cells - cells over HTTP: let one exist, look at it, set fields, give it a turn, let it go.

For: /cells and below. A turn is a method with its arguments, or a program.
Never: runs a program (host does, beside the loop); begins a cell on a look.
Was wrong once: a turn of a cell that was not there began it. A slip in an id made a cell nobody asked for.
"""

from __future__ import annotations

from onefold.serve import bodies
from onefold.serve.door import Json
from onefold.serve.door_cells import HasCells, Seen, Turn
from onefold.serve.routes import LIST_LIMIT, LIST_MOST, NO_STORE, Answer, Ask, Route, answer, number
from onefold.terms.errors import BadArguments, Fault, KeyConflict

READ = frozenset({"read", "operate"})
CALL = frozenset({"call"})
EITHER = READ | CALL


def _asynchronous(ask: Ask) -> bool:
    """Whether the caller would rather not wait for the turn."""
    preferred = (each.partition(";")[0].strip().lower() for each in (ask.header(b"prefer") or "").split(","))
    return "respond-async" in preferred


class Cells:
    """The routes of cells."""

    def __init__(self, host: HasCells) -> None:
        self.host = host

    def routes(self) -> list[Route]:
        one = "/cells/{shape}/{id}"
        return [
            Route("GET", "/cells/{shape}", self.ids, READ),
            Route("PUT", one, self.spawn, CALL),
            Route("GET", one, self.read, EITHER),
            Route("PATCH", one, self.capture, CALL),
            Route("DELETE", one, self.retire, CALL),
            Route("GET", one + "/fields/{field}", self.field, EITHER),
            Route("POST", one + "/turns", self.turn, CALL),
            Route("POST", one + "/evict", self.evict, CALL),
        ]

    async def ids(self, ask: Ask) -> Answer:
        queries = ask.queries("prefix", "limit", "after")
        page = await self.host.cells.list(
            ask.params["shape"],
            prefix=queries.get("prefix", ""),
            limit=number(queries.get("limit"), "limit", LIST_LIMIT, 1, LIST_MOST),
            after=queries.get("after"),
            caller=ask.caller,
        )
        return answer({"items": [{"id": item["key"]} for item in page.items], "next": page.next})

    async def spawn(self, ask: Ask) -> Answer:
        await self._nothing(ask)
        told = await self.host.cells.spawn(*self._which(ask), key=ask.key(), caller=ask.caller)
        return answer({"outcome": told}, 201 if told == "spawned" else 200)

    async def read(self, ask: Ask) -> Answer:
        ask.queries()
        return self._state(ask, await self.host.cells.read(*self._which(ask), caller=ask.caller))

    async def capture(self, ask: Ask) -> Answer:
        ask.queries()
        body = bodies.object_of(await bodies.read(ask.scope, ask.receive), ("set",))
        if not isinstance(body.get("set"), dict):
            raise BadArguments([Fault("set", "must be an object of fields and their values")], nothing_was="kept")
        seen = await self.host.cells.capture(*self._which(ask), body["set"], key=ask.key(), caller=ask.caller)
        return self._state(ask, seen)

    async def retire(self, ask: Ask) -> Answer:
        await self._nothing(ask)
        await self.host.cells.retire(*self._which(ask), key=ask.key(), caller=ask.caller)
        return Answer(204, b"", (NO_STORE,))

    async def field(self, ask: Ask) -> Answer:
        ask.queries()
        there, value = await self.host.cells.get(*self._which(ask), ask.params["field"], caller=ask.caller)
        return answer({"outcome": "value", "value": value} if there else {"outcome": "unset"})

    async def turn(self, ask: Ask) -> Answer:
        ask.queries()
        body = bodies.object_of(await bodies.read(ask.scope, ask.receive), ("method", "arguments", "program"))
        if ("program" in body) == ("method" in body):
            raise BadArguments([Fault("program", "is sent, or `method` with its `arguments`: one of the two")])
        if "program" in body:
            if "arguments" in body:
                raise BadArguments([Fault("arguments", "belong to a method; a program has them in its text")])
            if _asynchronous(ask):
                return await self._post(ask, body["program"])
            turn = await self.host.cells.program(*self._which(ask), body["program"], key=ask.key(), caller=ask.caller)
        else:
            if not isinstance(body["method"], str):
                raise BadArguments([Fault("method", "must be text", body["method"])])
            method, arguments = body["method"], body.get("arguments", {})
            if _asynchronous(ask):
                return await self._post(ask, call_of(method, arguments))
            turn = await self._method(ask, method, arguments)
        return answer({"branch": turn.branch, "value": turn.value, "ran": turn.ran})

    async def _method(self, ask: Ask, method: str, arguments: Json) -> Turn:
        """One method. Under the key of one that was posted before it is that one's answer: what was posted is a program."""
        key = ask.key()
        try:
            return await self.host.cells.turn(*self._which(ask), method, arguments, key=key, caller=ask.caller)
        except KeyConflict:
            same = call_of(method, arguments)
            return await self.host.cells.program(*self._which(ask), same, key=key, caller=ask.caller)

    async def _post(self, ask: Ask, program: Json) -> Answer:
        """`Prefer: respond-async`: into the cell's box, and an answer as soon as it is committed there."""
        key = ask.key()
        if key is None:
            raise BadArguments([Fault("Idempotency-Key", "must be sent with what nobody waits for: it is its id")])
        posted = await self.host.cells.post(*self._which(ask), program, key=key, caller=ask.caller)
        return answer({"outcome": "posted", "id": posted.id, "owner": posted.owner}, 202)

    async def evict(self, ask: Ask) -> Answer:
        await self._nothing(ask)
        return answer({"outcome": await self.host.cells.evict(*self._which(ask), caller=ask.caller)})

    # --- inside ---------------------------------------------------------------------------------

    @staticmethod
    def _which(ask: Ask) -> tuple[str, str]:
        return ask.params["shape"], ask.params["id"]

    @staticmethod
    async def _nothing(ask: Ask) -> None:
        """A request that says all in its path. Raises: BadArguments for a body with fields."""
        ask.queries()
        bodies.object_of(await bodies.read(ask.scope, ask.receive), ())

    @staticmethod
    def _state(ask: Ask, seen: Seen) -> Answer:
        return answer({"id": ask.params["id"], "shape": ask.params["shape"], "state": seen.state})


def call_of(method: str, arguments: Json) -> str:
    """A method and its arguments as the program of one call, which is what a letter carries. Raises: BadArguments."""
    if not method.isidentifier():
        raise BadArguments([Fault("method", "is no name of a method", method)])
    if not isinstance(arguments, dict):
        raise BadArguments([Fault("arguments", "must be an object", arguments)])
    if odd := [
        Fault(f"arguments.{name}", "is no name of a parameter") for name in arguments if not name.isidentifier()
    ]:
        raise BadArguments(odd)
    return f"{method}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
