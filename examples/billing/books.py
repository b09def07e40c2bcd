"""The books of a few studios, in one SQLite file: who subscribes, what was asked of them, what came of it.

    python books.py FILE       makes the tables, and two studios to try the example with

Nothing here knows of automations. Each row that an effect writes has the effect's key as its own, so that an effect
which is tried again writes nothing twice.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

TABLES = """
CREATE TABLE IF NOT EXISTS subscriptions (
    subscription_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, member TEXT NOT NULL, email TEXT NOT NULL,
    card TEXT NOT NULL, amount INTEGER NOT NULL, since TEXT NOT NULL);      -- amount in cents; since: a month
CREATE TABLE IF NOT EXISTS invoices (
    invoice_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, subscription_id TEXT NOT NULL, month TEXT NOT NULL,
    amount INTEGER NOT NULL, status TEXT NOT NULL, failed_at TEXT);         -- status: open, paid, failed
CREATE TABLE IF NOT EXISTS charge_attempts (
    attempt_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, invoice_id TEXT NOT NULL, reference TEXT NOT NULL,
    status TEXT NOT NULL, at TEXT NOT NULL);                                -- status: succeeded, declined
CREATE TABLE IF NOT EXISTS letters (
    letter_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, kind TEXT NOT NULL, about TEXT NOT NULL, to_whom TEXT NOT NULL,
    subject TEXT NOT NULL, text TEXT NOT NULL, at TEXT NOT NULL);
"""

TO_TRY = (
    ("s1", "studio_42", "Ada", "ada@example.com", "4242424242424242", 1900),
    ("s2", "studio_42", "Ben", "ben@example.com", "4000000000000002", 1900),  # always declined
    ("s3", "studio_42", "Cleo", "cleo@example.com", "4242424242424242", 2900),
    ("d1", "studio_7", "Dan", "dan@example.com", "4242424242424242", 3500),
)


class Books:
    """One file, opened for each act: as a process that was killed would find it."""

    def __init__(self, file: Path | str) -> None:
        self.file = str(file)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.file)) as connection, connection:
            yield connection

    def create(self) -> None:
        with self._open() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(TABLES)

    def subscribe(self, *rows: tuple[str, str, str, str, str, int], since: str) -> None:
        with self._open() as connection:
            given = [(*row, since) for row in rows]
            connection.executemany("INSERT OR IGNORE INTO subscriptions VALUES (?, ?, ?, ?, ?, ?, ?)", given)

    def write(self, sql: str, **values: Any) -> None:
        with self._open() as connection:
            connection.execute(sql, values)

    def rows(self, sql: str, **values: Any) -> list[dict[str, Any]]:
        with self._open() as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(sql, values)]

    def attempted(self, attempt: Mapping[str, Any], month: str, subscription: str, amount: int) -> None:
        """An attempt and the invoice it is for, in one commit. Either may be there already."""
        with self._open() as connection:
            invoice = (attempt["invoice_id"], attempt["tenant"], subscription, month, amount)
            connection.execute("INSERT OR IGNORE INTO invoices VALUES (?, ?, ?, ?, ?, 'open', NULL)", invoice)
            connection.execute(
                "INSERT OR IGNORE INTO charge_attempts VALUES "
                "(:attempt_id, :tenant, :invoice_id, :reference, :status, :at)",
                dict(attempt),
            )

    def pay(self, invoice_id: str) -> None:
        """A member paid what had failed, at the desk."""
        self.write("UPDATE invoices SET status = 'paid', failed_at = NULL WHERE invoice_id = :id", id=invoice_id)


if __name__ == "__main__":
    books = Books(sys.argv[1])
    books.create()
    books.subscribe(*TO_TRY, since="2020-01")
    print(f"{len(TO_TRY)} subscriptions are in {sys.argv[1]}")
