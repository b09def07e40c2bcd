"""Files to deploy, and a stand-in for the sandbox, so that a test of the door starts no process.

For: `SOURCE` and what it may be made into; `stands_in`, which loads a file in this process: a test's own, never a
product's. The sandbox itself is in `tests/ports/sandbox`, and a test here that needs it says so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from onefold import Run, actuator
from onefold.actuators.declare import Actuator
from onefold.host.core import MAIN
from onefold.host.deployed import DEPLOYMENT, Version
from onefold.ports import sandbox
from onefold.ports.sandbox.described import Described, described
from onefold.store.contract import Query
from onefold.terms.errors import Finding, LoadRefused
from onefold.testing import staged
from onefold.testing.stage import Stage
from tests.contracts.backends import store_of

MIGRATIONS = '["CREATE TABLE notes (said TEXT)"]'
SOURCE = '''
from pydantic import BaseModel

from onefold import Approved, Expired, Rejected, Run, actuator


class Note(BaseModel):
    said: str


@actuator(name=NAME, migrations=MIGRATIONS, webhook="standard")
async def keep(run: Run, note: Note) -> str:
    """Keep a note, once somebody agrees."""
    if note.said == "ask":
        match await run.wait_for_approval("manager", "Keep it?", notify="ann", timeout=None):
            case Rejected(reason=reason):
                return reason
            case Approved():
                pass
    await run.db.execute("INSERT INTO notes VALUES (:said)", said=note.said)
    row = await run.db.fetch_one("SELECT count(*) AS n FROM notes")
    assert row is not None
    return f"{MARK} {row['n']}"
'''


def source(mark: str = "first", *, name: str = "keep", migrations: str = MIGRATIONS, more: str = "") -> str:
    """A file with one actuator; `mark` is in what it gives, so that a test sees which version made it."""
    top = f"MARK = {mark!r}\nNAME = {name!r}\nMIGRATIONS = {migrations}\n"
    return (
        top
        + SOURCE.replace("name=NAME", f"name={name!r}").replace("migrations=MIGRATIONS", f"migrations={migrations}")
        + more
    )


SECOND = '''

@actuator
async def second(run: Run) -> str:
    """Another tool of the file."""
    return MARK
'''


class Unboxed:
    """One version of a file, loaded here."""

    closed: ClassVar[list[Unboxed]] = []

    def __init__(self, text: str, name: str, found: Described, environment: Mapping[str, str] | None = None) -> None:
        self.described = found
        self.environment = dict(environment or {})
        self.actuators = loaded(text, name)

    async def aclose(self, grace_s: float = 0.0) -> None:
        self.closed.append(self)


def loaded(text: str, name: str) -> Sequence[Actuator[Any, Any]]:
    """Raises: LoadRefused."""
    module = ModuleType(name.removesuffix(".py"))
    try:
        exec(compile(text, name, "exec"), module.__dict__)  # noqa: S102 - a test's own text
    except LoadRefused:
        raise
    except Exception as fault:  # noqa: BLE001 - whatever a file raises refuses it
        raise LoadRefused([Finding(name, f"raised {type(fault).__name__}")]) from None
    return [one for one in vars(module).values() if isinstance(one, Actuator)]


async def describe(text: str, name: str, environment: Mapping[str, str] | None = None) -> Described:
    own = loaded(text, name)
    if not own:
        raise LoadRefused([Finding(name, "must hold 1 to 50 actuators of its own")])
    return Described(tuple(map(described, own)))


@pytest.fixture
def stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """No sandbox: what is deployed in this test is loaded in its own process."""
    monkeypatch.setattr(sandbox, "problem", lambda: None)
    monkeypatch.setattr(sandbox, "describe", describe)
    monkeypatch.setattr(sandbox, "Deployment", Unboxed)
    monkeypatch.setattr(Unboxed, "closed", [])


# --- an app that takes them ---------------------------------------------------------------------

PEOPLE: dict[str, Any] = {"people": {"ann": {"notify": []}}}


@actuator
async def trusted(run: Run) -> str:
    """The app's own."""
    return "own"


@asynccontextmanager
async def stage_on(kind: str, folder: Path, *parts: object, **settings: Any) -> AsyncIterator[Stage]:
    async with staged(*(parts or (trusted,)), store=store_of(kind, folder), settings={**PEOPLE, **settings}) as stage:
        yield stage


async def deploy(stage: Stage, text: str, file: str = "notes") -> Version:
    version, _ = await stage.host.deploy(file, text, caller=stage.caller("anna"))
    return version


async def called(stage: Stage, tool: str = "keep", said: str | None = "x", *, key: str | None = None) -> Any:
    """What a call comes to, or how far it got."""
    arguments = {} if said is None else {"said": said}
    started = await stage.host.start(tool, arguments, key=key, caller=stage.caller())
    await stage.settle()
    return (await stage.host.receipt(started.receipt.run_id, caller=stage.caller())).to_json()


async def rows(stage: Stage) -> list[Version]:
    (found,) = await (await stage.host.space(MAIN)).look(Query(DEPLOYMENT, order=("generation",)))
    return [Version.of(row) for row in found]


def files_in(folder: Path) -> list[str]:
    """The names of all that lies there."""
    return sorted(path.name for path in folder.rglob("*"))
