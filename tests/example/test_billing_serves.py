"""The billing example as it is served: shown, asked for the past, killed, asked again, and nobody charged twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.example.billing import EXAMPLE, books
from tests.example.shop import Child

STUDIO = {"onefold-as": "studio_42"}
SUMMER = {"since": "2026-08-01T00:00:00Z", "until": "2026-09-30T12:00:00Z"}
AUTUMN = {"since": "2026-08-01T00:00:00Z", "until": "2026-10-31T12:00:00Z"}


class Desk:
    """The bank, the books and `onefold serve`, over one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.books = books.Books(folder / "books.db")
        self.bank: Child
        self.app: Child
        self.url = self.bank_url = ""

    async def begins(self) -> None:
        environ = {"BOOKS": f"sqlite:///{self.books.file}", "BANK_URL": self.bank_url}
        command = (
            "-c",
            "from onefold.cli import main; main()",
            "serve",
            str(EXAMPLE / "app.py"),
            "--listen",
            "127.0.0.1:0",
        )
        self.app = await Child.start(*command, folder=self.folder, **environ)
        self.url = (await self.app.hears(r"(http://127\.0\.0\.1:\d+)"))[1]

    async def asks(self, path: str, body: Any = None) -> Any:
        async with httpx2.AsyncClient(headers=STUDIO, timeout=60) as http:
            answer = await http.post(f"{self.url}{path}", json={} if body is None else body)
        assert answer.is_success, answer.text
        return answer.json()

    async def charges(self) -> list[dict[str, Any]]:
        async with httpx2.AsyncClient() as http:
            found: list[dict[str, Any]] = (await http.get(f"{self.bank_url}/charges")).json()["charges"]
        return found


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Desk]:
    desk = Desk(folder)
    desk.books.create()
    desk.books.subscribe(*books.TO_TRY, since="2020-01")
    desk.bank = await Child.start(str(EXAMPLE / "bank.py"), "--port", "0", folder=folder)
    try:
        desk.bank_url = (await desk.bank.hears(r"^(http://\S+)$"))[1]
        await desk.begins()
        yield desk
    finally:
        if hasattr(desk, "app"):
            await desk.app.kill()
        await desk.bank.kill()


async def test_it_shows_what_it_would_do_and_charges_each_month_once_across_a_kill(tmp_path: Path) -> None:
    async with opened(tmp_path) as desk:
        seen = await desk.asks("/reflexes/billing.charge-due/preview")
        assert [task["unit"] for task in seen["tasks"]] == ["s1", "s2", "s3"]
        assert seen["tasks"][2]["shows"].startswith("charge 29.00 for s3, ")
        assert await desk.charges() == []

        assert (await desk.asks("/reflexes/billing.charge-due/backfill", SUMMER))["count"] == 2
        for month in ("2026-08", "2026-09"):
            await desk.app.hears(f"to owner@example.com: Charges of {month}: 2 paid, 1 declined")
            await desk.app.hears(f"to cleo@example.com: Receipt for {month}")
        await desk.app.kill()

        await desk.begins()
        assert (await desk.asks("/reflexes/billing.charge-due/backfill", AUTUMN))["count"] == 1
        await desk.app.hears("to owner@example.com: Charges of 2026-10: 2 paid, 1 declined")
        await desk.app.hears("to cleo@example.com: Receipt for 2026-10")
        attempts = desk.books.rows("SELECT invoice_id, attempt_id FROM charge_attempts")
        months = ("2026-08", "2026-09", "2026-10")
        assert Counter(row["invoice_id"] for row in attempts) == Counter(
            f"{member}/{month}" for member in ("s1", "s2", "s3") for month in months
        )
        assert {charge["key"] for charge in await desk.charges()} == {row["attempt_id"] for row in attempts}
        about = desk.books.rows("SELECT about FROM letters WHERE kind = 'digest' ORDER BY about")
        assert [row["about"] for row in about] == list(months)
