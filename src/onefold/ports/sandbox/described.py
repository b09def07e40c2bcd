"""ports.sandbox.described - what a deployed file says of its actuators, and the values that stand for them here.

For: `Described`, kept beside the source; `Deployed`, an Actuator like any other whose function is elsewhere.
Never: builds a type that a file wrote; judges an input by a stranger's schema (its own process does, with its model).
Was wrong once: the input's model made again from its schema. What a validator of the file's own refused was taken.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NoReturn

import msgspec
from pydantic import RootModel

from onefold.actuators.asking import OFFER_LIMIT
from onefold.actuators.declare import HINTS, INPUT_LIMIT, Actuator, Passing
from onefold.actuators.limits import MOST, Limits
from onefold.kernel.port import Port, Step
from onefold.ports.egress import origins_of
from onefold.ports.sandbox.words import PortSaid, Said
from onefold.terms.codec import Json, canonical, parse, text_problem
from onefold.terms.errors import BadArguments, Broken, Fault, Finding, LoadRefused
from onefold.terms.limits import MAX_BODY_BYTES, MAX_DURATION_MS

ACTUATORS: Final = 50
DESCRIPTION: Final = 8_000
SCHEMA: Final = 4 * OFFER_LIMIT
ITEMS: Final = 100
VARIABLE: Final = 100


class Described(msgspec.Struct, frozen=True):
    """A file's actuators, in its own order."""

    actuators: tuple[Said, ...]

    def written(self) -> bytes:
        return canonical(parse(msgspec.json.encode(self)))

    @staticmethod
    def read(raw: bytes) -> Described:
        """Raises: LoadRefused when it is not what `written` gave."""
        try:
            return judged(msgspec.convert(parse(raw), Described))
        except (BadArguments, msgspec.ValidationError) as bad:
            raise _refused("the description", f"cannot be read: {bad}") from None

    @property
    def origins(self) -> frozenset[str]:
        """The https origins that the file may reach."""
        return origins_of((host for said in self.actuators for host in said.hosts), "capabilities")

    @property
    def variables(self) -> frozenset[str]:
        """The variables of the environment that it may see."""
        return frozenset(name for said in self.actuators for name in said.variables)


def described(actuator: Actuator[Any, Any]) -> Said:
    """What an actuator says of itself, read in the process of its file."""
    texts = [one for one in actuator.capabilities if isinstance(one, str)]
    ports = [one for one in actuator.capabilities if isinstance(one, Port)]
    return Said(
        actuator.name,
        actuator.description,
        actuator.output_schema,
        None if actuator.model is None else actuator.input_schema,
        "" if actuator.model is None else actuator.model.__name__,
        hosts=tuple(text for text in texts if not text.startswith("env:")),
        variables=tuple(text.removeprefix("env:") for text in texts if text.startswith("env:")),
        ports=tuple(PortSaid(port.name, port.promise) for port in ports),  # type: ignore[arg-type]  # none is local
        migrations=actuator.migrations,
        dedupe_by=actuator.dedupe_by,
        tool=actuator.tool,
        webhook=actuator.webhook,
        long_wait=actuator.long_wait,
        hints=actuator.hints,
        limits=actuator.limits,
    )


def judged(found: Described) -> Described:
    """The same, once what is not declared by `@actuator` itself has been looked at. Raises: LoadRefused."""
    findings: list[Finding] = []
    if not 1 <= len(found.actuators) <= ACTUATORS:
        findings.append(Finding("the file", f"must hold 1 to {ACTUATORS} actuators of its own"))
    for said in found.actuators:
        findings.extend(Finding(f"actuator {said.name[:VARIABLE]}", problem) for problem in _problems(said))
    if len({said.name for said in found.actuators}) < len(found.actuators):
        findings.append(Finding("the file", "holds two actuators of one name"))
    if findings:
        raise LoadRefused(findings)
    origins_of((host for said in found.actuators for host in said.hosts), "capabilities")
    for said in found.actuators:
        Deployed(said, _elsewhere, _elsewhere)  # what @actuator refuses is refused now
    return found


def _problems(said: Said) -> Iterable[str]:
    texts = (said.description, said.model, *said.migrations, *said.dedupe_by, *said.variables, *said.hosts)
    if any(map(text_problem, texts)) or len(said.description) > DESCRIPTION or len(said.model) > VARIABLE:
        yield f"has texts that are too long (a description: {DESCRIPTION} characters) or no text"
    if sum(map(len, said.migrations)) > MAX_BODY_BYTES:
        yield f"has migrations of more than {MAX_BODY_BYTES} bytes"
    counted = (said.hosts, said.variables, said.ports, said.dedupe_by, said.migrations)
    if max(map(len, counted)) > ITEMS:
        yield f"lists more than {ITEMS} of one thing"
    for schema in (said.output, said.input or {}):
        try:
            long = len(canonical(schema)) > SCHEMA
        except BadArguments:
            long = True
        if long:
            yield f"has a schema of more than {SCHEMA} bytes"
    properties = (said.input or {"properties": {}}).get("properties")
    if not isinstance(properties, dict) or not all(isinstance(one, dict) for one in properties.values()):
        yield "has an input that is no object"
    elif not set(said.hints) <= set(HINTS) or (said.limits is not None and not _sound(said.limits, properties)):
        yield "has hints or limits that no @actuator has"


def _sound(limits: Limits, properties: Mapping[str, Any]) -> bool:
    count, ms = limits.rate or (1, 1)
    numbers = (
        (limits.at_once or 1, MOST),
        (count, MOST),
        (ms, MAX_DURATION_MS),
        ((limits.debounce or 0) + 1, MAX_DURATION_MS),
    )
    return all(1 <= one <= most for one, most in numbers) and set(limits.per) <= set(properties)


# --- the value that stands for it -------------------------------------------------------------------------

Checking = Callable[[str, Json], Awaitable[Json]]


class Deployed(Actuator[Any, Any]):
    """An actuator of a deployed file. Its input is the JSON that its own process made of what was sent."""

    def __init__(self, said: Said, passing: Passing, checking: Checking) -> None:
        self.said = said
        super().__init__(
            _elsewhere,
            name=said.name,
            description=said.description or said.name,
            capabilities=[*said.hosts, *(f"env:{name}" for name in said.variables), *map(_port, said.ports)],
            migrations=said.migrations,
            dedupe_by=said.dedupe_by,
            tool=said.tool,
            webhook=said.webhook,
            long_wait=said.long_wait,
            hints=said.hints,
        )
        self.description = said.description
        self.limits = said.limits
        self.passing = passing
        self._checking = checking

    def _signature(self) -> tuple[Any, Any]:
        return (None if self.said.input is None else _model(self.said), Any)

    def _schemas(self) -> tuple[dict[str, Any], dict[str, Any]]:
        nothing: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
        return self.said.input or nothing, self.said.output

    def check(self, arguments: Json) -> Any:
        """As far as it can be seen from here: the names of its fields. `checked` asks the file itself. Raises: BadArguments."""
        given = {} if arguments is None else arguments
        if not isinstance(given, dict):
            raise BadArguments([Fault("", "the arguments must be one object", given)])
        known = self.input_schema.get("properties", {})
        faults = [Fault(name, "is not known") for name in given if name not in known]
        faults += [
            Fault(str(name), "is missing") for name in self.input_schema.get("required", ()) if name not in given
        ]
        if faults:
            raise BadArguments(faults)
        return None if self.model is None else self.model.model_validate(given)

    async def checked(self, arguments: Json) -> Any:
        """Asks the file's own process, whose model knows defaults and rules. Raises: BadArguments, PortFailed."""
        if len(canonical(arguments)) > INPUT_LIMIT:
            raise BadArguments([Fault("", f"must have at most {INPUT_LIMIT} bytes")])
        given = await self._checking(self.name, arguments)
        return None if self.model is None else self.model.model_validate(given)


async def _elsewhere(run: Any, *input: Any) -> NoReturn:
    raise Broken("the function of a deployed file was called in this process")


def _port(said: PortSaid) -> Port[Any, Any]:
    """Its name and what it promises. What it does is the file's, and is done there."""

    async def act(step: Step, body: Any) -> NoReturn:
        raise Broken("the port of a deployed file was called in this process")

    return Port(said.name, said.promise, act, act if said.promise == "lookup" else None)


def _model(said: Said) -> type[Any]:
    """An input as JSON. What equals its default is left out of what a repeat is known by, as pydantic leaves it out."""
    schema = said.input or {}

    class Sent(RootModel[dict[str, Any]]):
        def model_dump(self, *, exclude_defaults: bool = False, **_: Any) -> dict[str, Any]:
            return _slim(self.root, schema) if exclude_defaults else self.root

    Sent.__name__ = said.model
    return Sent


def _slim(value: Any, schema: Any) -> Any:
    if isinstance(value, list):
        items = schema.get("items") if isinstance(schema, dict) else None
        return [_slim(item, items) for item in value]
    known = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(value, dict) or not isinstance(known, dict):
        return value
    return {
        name: _slim(item, known.get(name))
        for name, item in value.items()
        if not (isinstance(known.get(name), dict) and "default" in known[name] and known[name]["default"] == item)
    }


def _refused(where: str, problem: str) -> LoadRefused:
    return LoadRefused([Finding(where, problem)])
