"""Collect what members owe for the month: charge, book, remind, and tell the owner. The automations are the JSON
files beside this one; here is only what they may do, and which rows they may ask for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import httpx2
from books import Books
from pydantic import BaseModel

from onefold.reflex import Query, Reflexes, Task, Write, effect, select

HERE = Path(__file__).parent

DUE = """
    SELECT s.subscription_id, s.member, s.card, s.amount FROM subscriptions s
    WHERE s.tenant = :principal AND s.since <= :month AND NOT EXISTS (
        SELECT 1 FROM invoices i WHERE i.subscription_id = s.subscription_id AND i.month = :month AND i.status = 'paid')
    ORDER BY s.subscription_id"""

OVERDUE = """
    SELECT i.invoice_id, i.month, i.amount, s.member, s.email
    FROM invoices i JOIN subscriptions s USING (subscription_id)
    WHERE i.tenant = :tenant AND i.status = 'failed' AND i.failed_at <= :failed_until AND NOT EXISTS (
        SELECT 1 FROM letters l WHERE l.kind = 'dunning' AND l.about = i.invoice_id AND l.at > :silent_since)
    ORDER BY i.invoice_id"""

OF_MONTH = """
    SELECT a.status, s.member, i.amount
    FROM charge_attempts a JOIN invoices i USING (invoice_id) JOIN subscriptions s USING (subscription_id)
    WHERE a.tenant = :principal AND i.month = :month ORDER BY a.attempt_id"""

ADDRESS = """
    SELECT s.member, s.email FROM subscriptions s WHERE s.tenant = :principal AND s.subscription_id = :subscription"""


class Order(BaseModel):
    subscription: str
    month: str
    card: str
    amount: int  # cents


class Charged(BaseModel):
    reference: str


class CardDeclined(BaseModel):
    reference: str


class Settle(BaseModel):
    invoice: str
    status: str  # paid, failed


class Letter(BaseModel):
    kind: str  # receipt, dunning, digest
    about: str
    to: str
    subject: str
    text: str


class Bank(Protocol):
    """Where cards are charged. The same key is the same charge. Raises whatever went wrong on the way."""

    async def charge(self, key: str, card: str, amount: int) -> dict[str, Any]: ...


class BankOverHttp:
    """bank.py, or whatever speaks as it does."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def charge(self, key: str, card: str, amount: int) -> dict[str, Any]:
        async with httpx2.AsyncClient() as http:
            answer = await http.post(
                f"{self.url}/charges", headers={"Idempotency-Key": key}, json={"card": card, "amount": amount}
            )
        answer.raise_for_status()  # raise: tried again, under the same key
        return dict(answer.json())


def effects(books: Books, bank: Bank) -> list[Any]:
    """What the automations may do."""
    return [charging(books, bank), booking(books), writing(books)]


def charging(books: Books, bank: Bank) -> Any:
    @effect("payments.charge", writes=["charge_attempts"])
    async def charge(task: Task, order: Order) -> Charged | CardDeclined:
        """A declined card is an answer: the attempt is booked as declined, and others hear of it."""
        answer = await bank.charge(task.key, order.card, order.amount)
        invoice = f"{order.subscription}/{order.month}"
        attempt = {"attempt_id": task.key, "tenant": task.principal, "invoice_id": invoice, "reference": answer["id"]}
        attempt |= {"status": answer["status"], "at": task.now.isoformat()}
        books.attempted(attempt, order.month, order.subscription, order.amount)
        task.emit(Write("charge_attempts", "insert", attempt))
        if answer["status"] == "declined":
            return CardDeclined(reference=answer["id"])
        return Charged(reference=answer["id"])

    @charge.preview
    def show_charge(order: Order) -> str:
        return f"charge {order.amount / 100:.2f} for {order.subscription}, {order.month}"

    return charge


def booking(books: Books) -> Any:
    @effect("invoices.settle", writes=["invoices"])
    async def settle(task: Task, what: Settle) -> None:
        at = task.now.isoformat() if what.status == "failed" else None
        books.write(
            "UPDATE invoices SET status = :status, failed_at = :at WHERE invoice_id = :id AND tenant = :tenant",
            status=what.status,
            at=at,
            id=what.invoice,
            tenant=task.principal,
        )
        for row in books.rows("SELECT * FROM invoices WHERE invoice_id = :id", id=what.invoice):
            task.emit(Write("invoices", "update", row))

    @settle.preview
    def show_settle(what: Settle) -> str:
        return f"book invoice {what.invoice} as {what.status}"

    return settle


def writing(books: Books) -> Any:
    @effect("mail.send", writes=[])
    async def send(task: Task, letter: Letter) -> None:
        """Yours: hand it to a mail service, with task.key against doubles. Here it is kept, and said."""
        books.write(
            "INSERT OR IGNORE INTO letters VALUES (:key, :tenant, :kind, :about, :to, :subject, :text, :at)",
            **letter.model_dump(),
            key=task.key,
            tenant=task.principal,
            at=task.now.isoformat(),
        )
        print(f"to {letter.to}: {letter.subject}", flush=True)

    @send.preview
    def show_letter(letter: Letter) -> str:
        return f"write to {letter.to}: {letter.subject}"

    return send


def selects(books: Books) -> list[Any]:
    """Which rows they may ask for. A tenant sees its own: the engine binds the principal, no automation does."""

    @select("invoices.overdue")
    async def overdue(query: Query) -> AsyncIterator[dict[str, Any]]:
        """Failed long enough ago, and not reminded of lately. Whoever paid meanwhile is no row of it."""
        failed = query.now - timedelta(days=query.params["after_days"])
        silent = query.now - timedelta(days=query.params["again_days"])
        limits = {"failed_until": failed.isoformat(), "silent_since": silent.isoformat()}
        for row in books.rows(OVERDUE, tenant=query.principal, **limits):
            yield row

    named = {"subscriptions.due": DUE, "attempts.of-month": OF_MONTH, "members.address": ADDRESS}
    return [overdue, *(select.sql(name, sql, on="env:BOOKS") for name, sql in named.items())]


def billing(books: Books, bank: Bank) -> Reflexes:
    return Reflexes(HERE / "reflexes", effects=effects(books, bank), selects=selects(books))
