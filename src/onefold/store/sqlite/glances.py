"""store.sqlite.glances - what files at rest were asked, and what they answered.

For: one question to a file that nobody has open, without taking it; the same answer again for as long as
the file is the same.
Never: keeps a file open; answers for a file that this process has open (its space does).
Was wrong once: each beat of the driver opened each of a thousand files at rest, to read what nobody could have
changed.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import TypeAlias

import apsw

from onefold.store.contract import Answer, Query, Table
from onefold.store.sqlite.connect import glance, unusable
from onefold.store.sqlite.tables import Plan
from onefold.terms.errors import StoreUnavailable

QUESTIONS = 32  # remembered of one file; more are asked only by who lists, and those differ each time
ROWS = 4  # of an answer that is remembered; a file at rest has one soonest alarm, and most other answers are empty

Look: TypeAlias = "tuple[int, ...]"


class Glances:
    """Answers by space and question. `forget` a space before its file is opened."""

    def __init__(self, vfs: str | None) -> None:
        self._vfs = vfs
        self._known: dict[str, tuple[Look, dict[Hashable, tuple[Answer, ...]]]] = {}
        self._plans: dict[int, Plan] = {}

    def forget(self, name: str) -> None:
        self._known.pop(name, None)

    def ask(self, path: str, name: str, query: Query) -> tuple[Answer, ...]:
        """One query's answer, () where the file or the table is not there. Raises: StoreUnavailable."""
        try:
            look = _look(path)
        except OSError as error:
            raise StoreUnavailable(name, f"its disk reported an error ({error.strerror})") from error
        if not look:
            return ()
        known = self._known.get(name)
        if known is None or known[0] != look:
            known = self._known[name] = (look, {})
        answers = known[1]
        key = _key(query)
        if key in answers:
            return answers[key]
        answer = self._read(path, name, query)
        if len(answers) < QUESTIONS and (not answer or len(answer[0] or ()) <= ROWS):
            answers[key] = answer
        return answer

    def _read(self, path: str, name: str, query: Query) -> tuple[Answer, ...]:
        db = None
        plan = self._glancing(query.table)
        try:
            db = plan.db = glance(path, self._vfs)
            return (plan.find(query),)
        except apsw.SQLError:
            return ()  # the table is not there yet
        except (apsw.Error, OSError) as error:
            told = unusable(name, error)
            if told is None:
                raise
            raise told from error
        finally:
            plan.db = None
            if db is not None:
                db.close()

    def _glancing(self, table: Table) -> Plan:
        """The statements of one table, written once: a start glances at each of a thousand files."""
        plan = self._plans.get(id(table))
        if plan is None:
            plan = self._plans[id(table)] = Plan(table)  # it keeps the table, so that its id stays its own
        return plan


def _look(path: str) -> Look:
    """What a file and its WAL look like from outside; () for no file. Whoever writes to one changes that."""
    try:
        file = os.stat(path)
    except FileNotFoundError:
        return ()
    try:
        wal = os.stat(f"{path}-wal")
    except FileNotFoundError:
        return (file.st_ino, file.st_size, file.st_mtime_ns)
    return (file.st_ino, file.st_size, file.st_mtime_ns, wal.st_ino, wal.st_size, wal.st_mtime_ns)


def _key(query: Query) -> Hashable:
    """A question by its content; its parts may be lists."""
    each = query.each
    return (
        query.table.name,
        tuple((column, op, tuple(value) if isinstance(value, list) else value) for column, op, value in query.where),
        tuple(query.on),
        None if query.keys is None else tuple(tuple(key) for key in query.keys),
        tuple(query.order),
        query.limit,
        None if each is None else (each.column, tuple(each.values), each.k),
    )
