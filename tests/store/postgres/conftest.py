"""A server that the tests of this folder may hurt, started for the first of them and ended behind the last."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import psycopg
import pytest

from tests.postgres import Server, at, in_memory


@pytest.fixture(scope="package")
def hurt() -> Iterator[Server]:
    """Its limits are short, so that a test need not wait for them."""
    with Server({"deadlock_timeout": "20ms", "wal_level": "replica"}, place=in_memory()) as server:
        yield server


@pytest.fixture
def url(hurt: Server) -> str:
    """A database of this test alone on that server."""
    name = f"t_{secrets.token_hex(4)}"
    with psycopg.connect(hurt.url(), autocommit=True) as admin:
        admin.execute(f"create database {name} template template0 strategy file_copy")
    return at(hurt.url(), name)


@pytest.fixture
def admin(url: str) -> Iterator[psycopg.Connection]:
    """Somebody else in that database."""
    with psycopg.connect(url, autocommit=True) as conn:
        yield conn
