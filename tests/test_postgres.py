"""The tests' own Postgres: a database a test, nothing left behind, whatever became of who used it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres import GIVEN, Databases, Server, at, fresh_database, in_memory

SESSION = """
import sys
from pathlib import Path
from tests import postgres
from tests.postgres import DATABASES, fresh_database
postgres.in_memory = lambda: Path(sys.argv[1])
sys.stdout.write(f"{fresh_database()} {DATABASES._server._folder} {DATABASES._server._guard.pid}\\n")
sys.stdout.flush()
sys.stdin.read()
DATABASES.close()
"""
PATIENCE_S = 20.0


def names(url: str) -> list[str]:
    with psycopg.connect(url) as conn:
        return [name for (name,) in conn.execute("select datname from pg_database where not datistemplate")]


def ended(pid: int) -> bool:
    """Wait for the end of a process that is nobody's child here."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], PATIENCE_S)[0])
    finally:
        os.close(watched)


class Session:
    """Another session of tests, in a process of its own, over a place that no third one sweeps."""

    def __init__(self, place: Path) -> None:
        environ = {name: value for name, value in os.environ.items() if name != GIVEN}
        root = Path(__file__).resolve().parents[1]
        line = [sys.executable, "-c", SESSION, str(place)]
        environ["PYTHONPATH"] = f"{root / 'src'}:{root}"
        self.process = subprocess.Popen(
            line, env=environ, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.url, folder, guard = self.process.stdout.readline().split()
        self.folder, self.guard = Path(folder), int(guard)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def server(self) -> int:
        return int((self.folder / "data/postmaster.pid").read_text().split()[0])


@pytest.fixture
def apart() -> Iterator[Path]:
    """A place of this test alone: a session of tests beside this one starts servers too, and sweeps as it does."""
    with tempfile.TemporaryDirectory(dir=in_memory()) as folder:
        place = Path(folder)
        place.chmod(0o755)  # a server is another user's where this one is root
        yield place


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_each_database_is_fresh_and_of_nobody_else(postgres: str) -> None:
    other = fresh_database()
    assert postgres != other
    with psycopg.connect(postgres) as conn:
        conn.execute("create table here (x int)")
    with psycopg.connect(other) as conn:
        assert conn.execute("select count(*) from pg_tables where schemaname = 'public'").fetchone() == (0,)


def test_what_a_test_made_is_dropped_and_what_it_kept_stays_to_the_end(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(GIVEN, postgres)
    databases = Databases()
    kept, gone = databases.fresh(keep=True), databases.fresh()
    left_open = psycopg.connect(gone)
    databases.drop()
    assert kept.split("?")[0].rpartition("/")[2] in names(postgres)
    assert gone.split("?")[0].rpartition("/")[2] not in names(postgres)
    databases.close()
    assert not [name for name in names(postgres) if name.startswith(databases._prefix)]
    left_open.close()


@pytest.mark.parametrize(
    "url,other",
    [
        ("postgres://a:b@h:1/x?sslmode=require", "postgres://a:b@h:1/y?sslmode=require"),
        ("postgres://postgres@/x?host=%2Ftmp", "postgres://postgres@/y?host=%2Ftmp"),
        ("postgresql:///x", "postgresql:///y"),
    ],
)
def test_another_database_of_one_server(url: str, other: str) -> None:
    assert at(url, "y") == other


def test_two_sessions_beside_each_other_have_a_server_each_and_leave_none(apart: Path) -> None:
    one, two = Session(apart), Session(apart)
    assert one.folder != two.folder
    for session in (one, two):
        with psycopg.connect(session.url) as conn:
            assert conn.execute("select 1").fetchone() == (1,)
    servers = one.server(), two.server()
    one.end()
    assert names(two.url)
    two.end()
    assert not any(map(alive, servers))
    assert not one.folder.exists()
    assert not two.folder.exists()


def test_a_session_that_is_killed_leaves_nothing_running(apart: Path) -> None:
    session = Session(apart)
    server = session.server()
    session.kill()
    assert ended(session.guard)
    assert not alive(server)
    assert not session.folder.exists()


def test_what_a_killed_guard_left_is_ended_by_who_comes_next(apart: Path) -> None:
    session = Session(apart)
    server = session.server()
    os.kill(session.guard, signal.SIGKILL)
    session.kill()
    assert alive(server)
    Session(apart).end()
    assert not alive(server)
    assert not session.folder.exists()


def test_a_server_of_ones_own_is_stopped_and_started_and_keeps_what_it_acknowledged() -> None:
    with Server() as server:
        with psycopg.connect(server.url()) as conn:
            conn.execute("create table kept (how text)")
            assert conn.execute("show fsync").fetchone() == ("on",)
        for number, how in enumerate(("fast", "immediate", "kill"), start=1):
            with psycopg.connect(server.url()) as conn:
                conn.execute("insert into kept values (%s)", [how])
            server.stop(how)
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(server.url())
            server.start()
            with psycopg.connect(server.url()) as conn:
                assert conn.execute("select count(*) from kept").fetchone() == (number,)


def test_a_server_that_cannot_come_up_says_why_and_leaves_nothing(apart: Path) -> None:
    with pytest.raises(RuntimeError, match="invalid value for parameter"):
        Server({"shared_buffers": "much"}, place=apart)
    assert list(apart.iterdir()) == []
