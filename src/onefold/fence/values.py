"""fence.values - what an expression may be, as far as reading tells.

For: the kinds of value, and the one spelling of a name that several modules export.
Never: evaluates (fence.meaning does); a guess. What reading cannot tell is no value at all.
Was wrong once: types and functions in two tables. `random.Random(7).random` is a method of what a call
gave, so a call is written into the path: "random.Random().random".
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from onefold.fence.scopes import Function
from onefold.fence.units import Unit


@dataclass(frozen=True, slots=True)
class Named:
    """Something of a library, by its dotted path; "()" stands for what a call gives.

    args: the annotations in the brackets of a generic type, read in `unit`.
    """

    path: str
    args: tuple[ast.expr, ...] = ()
    unit: Unit | None = None


@dataclass(frozen=True, slots=True)
class Fun:
    """A function of the user's. receiver: what it is a method of, when it was reached through an instance.

    skipped: how many of its leading parameters a partial has filled.
    """

    unit: Unit
    node: Function
    receiver: Made | Cls | None = None
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Cls:
    """A class of the user's."""

    unit: Unit
    node: ast.ClassDef


@dataclass(frozen=True, slots=True)
class Made:
    """An instance of a class of the user's."""

    cls: Cls


@dataclass(frozen=True, slots=True)
class Mod:
    """A file of the user's, imported."""

    unit: Unit


@dataclass(frozen=True, slots=True)
class Lit:
    """A list, tuple, set or dict as it is written."""

    unit: Unit
    node: ast.List | ast.Tuple | ast.Set | ast.Dict

    @property
    def path(self) -> str:
        return f"builtins.{type(self.node).__name__.lower()}()"


Value: TypeAlias = "Named | Fun | Cls | Made | Mod | Lit"
Values: TypeAlias = "tuple[Value, ...]"


Root = Literal["local", "parameter", "global"]
"""Where a thing was made: by the function itself, by whoever called, or when the file was loaded."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Something that is not the function's own to change. shown: how the sentence names it."""

    kind: Literal["sealed", "global"]
    shown: str


@dataclass(slots=True, eq=False)
class Frame:
    """One call on the way from a guarded function.

    bound: what its parameters are. origins: which of them are not its own. taints: which of them come
    from something that changes from one try to the next, and from what. made: where each was made.
    """

    node: ast.AST
    bound: dict[str, Values] = field(default_factory=dict)
    above: Frame | None = None
    origins: dict[str, Origin] = field(default_factory=dict)
    taints: dict[str, str] = field(default_factory=dict)
    made: dict[str, Root] = field(default_factory=dict)

    def of(self, node: ast.AST) -> Frame | None:
        """The nearest frame of that function."""
        frame: Frame | None = self
        while frame is not None and frame.node is not node:
            frame = frame.above
        return frame


ONEFOLD = {
    **{f"actuators.{name}": name for name in "Actuator Approved Expired Rejected Run actuator".split()},
    "actuators.declare.Actuator": "Actuator",
    "actuators.blocking.Run": "Run",
    "actuators.declare.actuator": "actuator",
    "actuators.outcomes.Approved": "Approved",
    "actuators.outcomes.Expired": "Expired",
    "actuators.outcomes.Rejected": "Rejected",
    "actuators.run.Run": "Run",
    "app.App": "App",
    "blocking.App": "App",
    "blocking.Run": "Run",
    "cell.Cell": "Cell",
    "errors.Suspended": "Suspended",
    "kernel.module.Module": "Module",
    "kernel.port": "port",
    "kernel.port.Port": "Port",
    "kernel.port.Step": "Step",
    "kernel.words.Decision": "Decision",
    "kernel.words.Owed": "Owed",
    "machine.adapter.from_machine": "machine.from_machine",
    "terms.errors.Suspended": "Suspended",
}
SAME = {
    **{f"onefold.{long}": f"onefold.{short}" for long, short in ONEFOLD.items()},
    **dict.fromkeys(("typing.Set", "typing.AbstractSet", "typing.MutableSet"), "builtins.set"),
    **dict.fromkeys(("collections.abc.Set", "collections.abc.MutableSet"), "builtins.set"),
    **dict.fromkeys(("typing.FrozenSet",), "builtins.frozenset"),
    **dict.fromkeys(("typing.List", "typing.Sequence", "typing.MutableSequence", "typing.Iterable"), "builtins.list"),
    **dict.fromkeys(("typing.Collection", "typing.Iterator"), "builtins.list"),
    **{f"collections.abc.{name}": "builtins.list" for name in "Sequence MutableSequence Iterable Collection".split()},
    **dict.fromkeys(("typing.Tuple",), "builtins.tuple"),
    **dict.fromkeys(("typing.Dict", "typing.Mapping", "typing.MutableMapping"), "builtins.dict"),
    **dict.fromkeys(("collections.abc.Mapping", "collections.abc.MutableMapping"), "builtins.dict"),
    **dict.fromkeys(
        ("collections.defaultdict()", "collections.OrderedDict()", "collections.Counter()"), "builtins.dict()"
    ),
    **dict.fromkeys(("typing.DefaultDict", "typing.OrderedDict", "collections.ChainMap"), "builtins.dict"),
    **dict.fromkeys(("collections.deque()",), "builtins.list()"),
    "typing.Deque": "builtins.list",
    "typing.Counter": "builtins.dict",
    "posixpath": "os.path",
    "ntpath": "os.path",
    "pathlib.PosixPath": "pathlib.Path",
    "pathlib.WindowsPath": "pathlib.Path",
    "pathlib.Path().parent": "pathlib.Path()",
    "onefold.Step().now": "datetime.datetime()",
    "onefold.Run().now()": "datetime.datetime()",
    "onefold.actuator()()": "onefold.Actuator()",
    **{f"onefold.port.{name}()()": "onefold.Port()" for name in ("dedupes", "lookup", "neither")},
    "builtins.dict.fromkeys()": "builtins.dict()",
    "asyncio.tasks.create_task": "asyncio.create_task",
    "numpy.random.mtrand": "numpy.random",
    **{f"pathlib.Path.{name}()": "pathlib.Path()" for name in ("cwd", "home")},
    **{
        f"pathlib.Path().{name}()": "pathlib.Path()"
        for name in "joinpath with_suffix with_name resolve absolute".split()
    },
    **{
        f"datetime.datetime.{name}()": "datetime.datetime()"
        for name in "now utcnow today combine fromisoformat fromtimestamp utcfromtimestamp strptime".split()
    },
    **{f"datetime.datetime().{name}()": "datetime.datetime()" for name in ("replace", "astimezone")},
    **{
        f"builtins.{kind}().{name}()": f"builtins.{kind}()"
        for kind in ("set", "frozenset")
        for name in "union difference intersection symmetric_difference copy".split()
    },
}
"""One spelling for each thing that has several, and what some methods give."""


def canonical(path: str) -> str:
    """The one spelling of a path."""
    return SAME.get(path, path)
