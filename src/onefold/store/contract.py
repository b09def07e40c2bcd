"""store.contract - what a room may ask of a database, as data.

For: tables by declaration, verbs as values, bodies as generators, outcomes of a commit.
Never: knows what a row means; reads a clock; lets a body await.
Was wrong once: a body as an `async` function over a connection. It could wait for the
network with the only writer open, and each verb cost a round trip.

A body is a generator. It yields tuples of verbs and is sent their answers; what it returns is `Last`: the writes that
travel together with COMMIT. It may be run again at any time, so it changes nothing outside itself before it landed.

None, everywhere: it meets no condition but "null", it equals no key, it sorts first (last in a descending order). Text
sorts by code point, bytes by value. Without `order` the order of an answer is not promised.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from onefold.terms.errors import OnefoldError

Cell: TypeAlias = "int | str | bytes | None"
Row: TypeAlias = tuple[Cell, ...]
Page: TypeAlias = "tuple[list[str], list[Row], int | None]"
Kind = Literal["int", "text", "bytes"]
Op = Literal["=", "!=", "<", "<=", ">", ">=", "in", "null"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `int` is signed 64 bit; `text` is UTF-8 without NUL."""

    name: str
    kind: Kind
    null: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """Rows that agree on `by` form one history; `prev` names the row before (by key, or None).

    Such a table is appended to and read newest first. A store that owns its file may keep the newest heads and unique
    keys in memory and read them again from the end of the table at start; a store that does not indexes (by, key).
    Numbers grow along a history. Rows are appended at its newest end and removed from its oldest: a row leaves only
    together with everything before it. `by`, `prev` and the key of a row never change. Its unique columns may: what they
    held is free for another row then.
    """

    by: str
    prev: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table by declaration.

    `key` is the primary key. With `serial` it is one integer column whose numbers come from `Space.mint`. `unique` keys
    are the exactly-once promises; a key with a None in it meets nothing. `index` serves reads only. `narrow` says that
    rows are small (under 200 bytes): a store may then keep them in the order of their key. `everywhere`: one table for
    all spaces of a world that keeps them in one database; in a world of files only the space `main` has it.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    serial: bool = False
    unique: tuple[tuple[str, ...], ...] = ()
    index: tuple[tuple[str, ...], ...] = ()
    chain: Chain | None = None
    narrow: bool = False
    everywhere: bool = False
    at: Mapping[str, int] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", {c.name: i for i, c in enumerate(self.columns)})


# --- schema: numbered, checksummed, forward only -------------------------------------------


@dataclass(frozen=True, slots=True)
class Create:
    table: Table


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Adds a nullable column at the end of a table; the declaration must list it last."""

    table: str
    column: Column


@dataclass(frozen=True, slots=True)
class AddIndex:
    """Adds an index for reads; the declaration must list it last."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Migration:
    """One step forward. `oldest` is the oldest migration number whose code may go on beside it."""

    number: int
    oldest: int
    steps: tuple[Create | AddColumn | AddIndex, ...]


@dataclass(frozen=True, slots=True)
class View:
    """Columns of a table under another name, for people who look with other tools.

    With `each`, a bytes column that holds a JSON array, there is one row per element: the columns, then `at` (0, 1, ...)
    and `item` (the element as JSON text). Nobody's code reads a view. Made anew whenever its declaration changed.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    each: str | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of one room: their declarations as they are now, and how they came to be."""

    room: str
    tables: tuple[Table, ...]
    migrations: tuple[Migration, ...]
    views: tuple[View, ...] = ()


# --- values ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Inc:
    """The column's value plus `by` (a None counts as 0)."""

    by: int


@dataclass(frozen=True, slots=True)
class DbNow:
    """The store's own clock in milliseconds, rounded down, plus `plus_ms`."""

    plus_ms: int = 0


Value: TypeAlias = "Cell | Inc | DbNow"
Condition: TypeAlias = "tuple[str, Op, Any]"  # ("at", "<=", 5) · ("kind", "in", ("a", "b")) · ("dead", "null", True)


# --- verbs ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Append:
    """Insert rows that must not meet a key, primary or unique, as tuples in declared column order, serial keys included.

    Answer: per row None, or the whole row that already holds one of its keys, the primary
    one first (nothing is changed then). Rows of one verb see each other. `met` matters in the last writes only:
    "keep" leaves the old row and goes on; "again" rolls this body back and runs it again.
    """

    table: Table
    rows: Sequence[Row]
    met: Literal["keep", "again"] = "again"


@dataclass(frozen=True, slots=True)
class Put:
    """Insert or replace by primary key. Rows that are unchanged are not written. Answer: None.

    A row that would take another's unique key runs the body again, and refuses it as `Contended` when it is met again;
    so does a Cas or Claim that would.
    """

    table: Table
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Cas:
    """Compare and set, by primary key: (key, expected columns, new columns) a row.

    An expected None is met by None. The key's own columns are not set. Answer: per row the row after, or None when it is
    absent or differs from what was expected.
    """

    table: Table
    rows: Sequence[tuple[Row, Mapping[str, Cell], Mapping[str, Value]]]


@dataclass(frozen=True, slots=True)
class Each:
    """The first `k` rows, in the query's order, for each of `values` of `column`."""

    column: str
    values: Sequence[Cell]
    k: int


@dataclass(frozen=True, slots=True)
class Query:
    """Read rows. Answer: whole rows in `order` (a column name; "-name" is descending).

    Either `where` (conditions, and-ed) or `keys`: rows whose `on` columns equal one of the given tuples (`on` is the
    primary key, a unique key, or any indexed prefix); `where` then narrows them. `each` narrows to the first k rows for
    each value; `limit` comes last. `lock` holds the rows to the end of the body and means nothing outside of one;
    `skip_locked` passes over rows that another transaction holds.
    """

    table: Table
    where: tuple[Condition, ...] = ()
    on: tuple[str, ...] = ()
    keys: Sequence[Row] | None = None
    order: tuple[str, ...] = ()
    limit: int | None = None
    each: Each | None = None
    lock: Literal["share", "update"] | None = None
    skip_locked: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """A locked, lock-skipping query and its update in one statement. Answer: the rows after, in order."""

    table: Table
    where: tuple[Condition, ...]
    order: tuple[str, ...]
    limit: int
    set: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete rows by primary key, or by `where`. Answer: how many there were."""

    table: Table
    keys: Sequence[Row] | None = None
    where: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Still:
    """Go on only while these rows are as told, to the end of the body: (key, expected columns) a row, as in `Cas`.

    Where one is not, the body is rolled back and runs again, and asks whose row it is; one that meets it each time is
    refused as `Contended`. It holds the rows as a question's lock "share" does, and writes nothing. Answer: None.
    """

    table: Table
    rows: Sequence[tuple[Row, Mapping[str, Cell]]]


Verb: TypeAlias = "Append | Put | Cas | Query | Claim | Remove | Still"
Write: TypeAlias = "Append | Put | Cas | Remove | Still"
Answer: TypeAlias = Any  # by verb, as documented at each


# --- bodies and outcomes ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Last(Generic[T]):
    """What a body returns: the writes sent with COMMIT, and the value it stands for."""

    writes: tuple[Write, ...]
    value: T


class Refusal(Exception):
    """Raised by a body: roll it back, and answer its party `Refused(error)`. Never retried."""

    def __init__(self, error: OnefoldError) -> None:
        super().__init__(str(error))
        self.error = error


Body: TypeAlias = "Callable[[], Generator[tuple[Verb, ...], tuple[Answer, ...], Last[T]]]"


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """Committed, as durably as the space promises. `answers` are those of the last writes."""

    value: T
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """Certainly not committed; nothing of it is in the store."""

    error: OnefoldError


@dataclass(frozen=True, slots=True)
class Unknown:
    """COMMIT was sent and its answer lost, and looking did not settle it. Look up by id; never retry blindly."""

    error: OnefoldError


Outcome: TypeAlias = "Done[T] | Refused | Unknown"


class Party(Protocol):
    """Who takes part in a physical commit. Called on the loop's thread, in this order, once each.

    `ask` names what must be known before it can decide; it is read outside its transaction, before any body of this
    commit runs. `body` decides and gives the transaction body, or None for nothing to write this time. `landed` is told
    the outcome, Done(None) when there was nothing to write; it is always told, and nobody is told before the commit is
    through. A party that has more to do joins again, also from within `landed`: that is another commit.

    A raise in `ask`, `body` or the transaction body that is no Refusal lands as `Refused(Broken)` with the exception as
    the error's cause; an OnefoldError lands as itself. A body that meets a key ("again"), or a row that is not as it
    still should be, runs again a few times, then lands as `Refused(Contended)`.
    """

    def ask(self) -> tuple[Query, ...]: ...
    def body(self, answers: tuple[Answer, ...], /) -> Body[Any] | None: ...
    def landed(self, outcome: Outcome[Any], /) -> None: ...


class Space(Protocol):
    """One database: a SQLite file, memory, or a part of the shared Postgres tables.

    far: whether what a party asks for is a trip of its own, over a network.
    """

    name: str

    @property
    def far(self) -> bool: ...

    def join(self, party: Party) -> None:
        """Take part in the next physical commit: the one a few turns of the loop from now. Raises: NotOpen."""

    async def transact(self, body: Body[T]) -> Outcome[T]:
        """Commit one body, in company of whatever else commits now."""

    async def look(self, *queries: Query) -> tuple[Answer, ...]:
        """Read committed rows, outside any body. Raises: StoreUnavailable."""

    def mint(self, table: Table) -> int:
        """A number for a serial key that no row has had or will have. Gaps are allowed."""


class Tx(Protocol):
    """The author's handle inside a database step. Plain calls; dead once the step ended (StepFenced)."""

    def execute(self, sql: str, /, **values: object) -> int: ...
    def fetch(self, sql: str, /, **values: object) -> list[dict[str, object]]: ...
    def fetch_one(self, sql: str, /, **values: object) -> dict[str, object] | None: ...


class AuthorSpace(Space, Protocol):
    """A space whose author has tables of their own: the one narrow door for user SQL."""

    async def author(
        self, step: Callable[[Tx], T], journal: Callable[[T], Body[Any]], *, budget_ms: int
    ) -> Outcome[Any]:
        """Run `step` in a thread inside its own physical commit, then the body `journal` makes of its result.

        Both commit or neither does; nothing else commits meanwhile. After every user statement the store checks that its
        transaction still stands. Raises: StepFenced past the budget; BadStatement; whatever `step` raised, rolled back.
        """

    async def author_migrate(self, statements: Sequence[str]) -> None:
        """Run the author's migrations once each, in order, checksummed. Raises: LoadRefused when one changed."""

    async def author_tables(self) -> list[str]: ...

    async def author_rows(self, table: str, *, limit: int, after: int | None) -> Page:
        """Columns, rows and the next `after` (rowid) of one of the author's tables. Raises: NotFound."""

    async def author_export(self, into: str, *, sql: bool) -> None:
        """The author's tables of one instant, as SQLite or this store's SQL, in a file at `into`. Raises: StoreUnavailable."""


class World(Protocol):
    """All spaces of one store: a folder of SQLite files, memory, or one Postgres database."""

    async def open(self, name: str, schemas: Sequence[Schema]) -> AuthorSpace:
        """Open a space, creating and migrating it. Idempotent for an open one. Raises: see StoreError tree."""

    async def soonest(self, name: str, query: Query) -> tuple[Answer, ...]:
        """Ask one thing of a space at rest without opening it for writing, as `look` does; () where it does not exist."""

    async def close(self) -> None:
        """Commit what waits, then let go of everything. Spaces are not used afterwards."""

    def abandon(self) -> None:
        """Let go of everything as a kill would leave it: what is not committed is gone. Nobody is told."""
