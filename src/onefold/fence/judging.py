"""fence.judging - is a library's name one that reaches outside?

For: a dotted path, and the call it stands in, to the rule it breaks.
Never: knows where it stands, beyond whether that place is pure; names are judged alike everywhere.
Was wrong once: the call's arguments left out. `random.Random(seed)` gives the same numbers for ever, and
`datetime.fromtimestamp(seconds, UTC)` reads no clock.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from onefold.fence.bans import BANS, CLIENTS, HARMLESS, PURE_FREE, PURE_ONLY
from onefold.fence.values import Root

HARMLESS_ENDS: Final = ("Error", "Exception", "Warning", "Expired")
OBJECTS: Final = frozenset("threads files network process".split())
HANDLES: Final = frozenset("connect() open() socket() client() resource() local() fdopen() from_url()".split())
"""What a thing made earlier under such a rule is still a way out: a lock, a connection, an open file. Classes too."""
GENERATORS: Final = ("random.Random()", "numpy.random.default_rng()", "numpy.random.RandomState()")
MODULES: Final = frozenset(
    "concurrent.futures http.client http.server urllib.request urllib.robotparser xmlrpc.client xmlrpc.server "
    "numpy.random asgiref.sync importlib.resources importlib.metadata anyio.to_thread anyio.from_thread "
    "starlette.concurrency fastapi.concurrency asyncio.subprocess logging.handlers email.utils".split()
)
"""Dotted names that are modules: naming one does nothing."""


@dataclass(frozen=True, slots=True)
class Ban:
    """What a name breaks. verb: what it does, when the rule's own word is not close enough."""

    rule: str
    verb: str = ""


def _given(call: ast.Call, at: int, *names: str) -> bool:
    """Whether an argument is handed in, by its place or by one of its names."""
    if len(call.args) > at or any(isinstance(argument, ast.Starred) for argument in call.args):
        return True
    return any(keyword.arg is None or keyword.arg in names for keyword in call.keywords)


MACHINE = Ban("environment", "uses the machine's own time zone")
CLOCK = Ban("clock")
UNSEEDED = Ban("chance", "has no seed, so it")


def _from_timestamp(call: ast.Call) -> Ban | None:
    return None if _given(call, 1, "tz") else MACHINE


def _shown_local(call: ast.Call) -> Ban | None:
    return MACHINE if _given(call, 0) else CLOCK


def _needs(at: int, *names: str, otherwise: Ban) -> Callable[[ast.Call], Ban | None]:
    return lambda call: None if _given(call, at, *names) else otherwise


def _memory(call: ast.Call) -> Ban | None:
    """An archive in a buffer is a value; one by name is a file."""
    first = call.args[0] if call.args else None
    return Ban("files") if isinstance(first, ast.Constant | ast.JoinedStr) else None


CALLS: Final[dict[str, Callable[[ast.Call], Ban | None]]] = {
    "random.Random": _needs(0, "x", otherwise=UNSEEDED),
    "numpy.random.default_rng": _needs(0, "seed", otherwise=UNSEEDED),
    "numpy.random.RandomState": _needs(0, "seed", otherwise=UNSEEDED),
    "numpy.random.SeedSequence": _needs(0, "entropy", otherwise=UNSEEDED),
    "numpy.random.PCG64": _needs(0, "seed", otherwise=UNSEEDED),
    "datetime.datetime.fromtimestamp": _from_timestamp,
    "datetime.datetime().astimezone": _needs(0, "tz", otherwise=MACHINE),
    "time.gmtime": _needs(0, otherwise=CLOCK),
    "time.asctime": _needs(0, otherwise=CLOCK),
    "time.strftime": _needs(1, otherwise=CLOCK),
    "time.localtime": _shown_local,
    "time.ctime": _shown_local,
    "email.utils.formatdate": _needs(0, "timeval", otherwise=CLOCK),
    "arrow.get": _needs(0, otherwise=CLOCK),
    "zipfile.ZipFile": _memory,
    "tarfile.open": _memory,
}

SAYINGS: Final = {
    "builtins.hash": "differs from process to process for texts, so it",
    "builtins.id": "is an address in memory, so it",
    "builtins.input": "asks whoever sits at the terminal",
    "builtins.breakpoint": "stops for whoever sits at the terminal",
    "sys.exit": "ends the process",
    "os.cpu_count": "depends on the machine it runs on",
}


def judge(path: str, call: ast.Call | None, *, pure: bool, root: Root = "local", entered: bool = False) -> Ban | None:
    """The ban on a name; `call` when it is called there, `entered` when a `with` block enters it.

    pure: in a place where nothing may be awaited. What a banned call made here was told of where it was
    made; what was made elsewhere is told of where it is used.
    """
    if call is not None and path in CALLS:
        return CALLS[path](call)
    if path in MODULES or (pure and path in PURE_FREE):
        return None
    if root == "global" and path.startswith(GENERATORS):
        return Ban("chance", "is one generator for all calls, so what it gives is left to chance")
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        rule = BANS.get(name) or (PURE_ONLY.get(name) if pure else None)
        if rule is None:
            continue
        if rule == "free" or len(parts) == 1 or (length < len(parts) and harmless(parts[-1], call)):
            return None
        made = [part for part in parts[length:] if part.endswith("()")]
        if made and (root == "local" or rule not in OBJECTS or not _handle(made[-1])):
            return None
        if made and parts[-1] == made[-1] and not entered:
            return None
        return Ban(rule, _saying(path, rule))
    return _client(parts, root) if call is not None else None


def _handle(part: str) -> bool:
    return part[:1].isupper() or part in HANDLES


def harmless(last: str, call: ast.Call | None) -> bool:
    """Whether it is a constant or an error class by its name: those are only values."""
    return (call is None and last.isupper()) or last.endswith(HARMLESS_ENDS)


def _saying(path: str, rule: str) -> str:
    told = SAYINGS.get(path, "")
    return f"{told} is left to chance" if told and rule == "chance" else told


def _client(parts: list[str], root: Root) -> Ban | None:
    """A call of a library that talks to a service: its classes are values, its functions and methods talk."""
    if parts[0] not in CLIENTS and ".".join(parts[:2]) not in CLIENTS:
        return None
    if len(parts) < 2 or not parts[-1][:1].islower() or HARMLESS & {part.removesuffix("()") for part in parts[1:]}:
        return None
    answered = any(part.endswith("()") and part[:1].islower() for part in parts[1:-1])
    return None if answered and root == "local" else Ban("network")
