"""The payment provider of the example is one a test can rely on: it counts, honours keys, and misbehaves when told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

PROVIDER = Path(__file__).resolve().parents[2] / "examples" / "provider.py"


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Start one on the test's ledger and give its address."""
    running: list[subprocess.Popen[str]] = []

    def start() -> str:
        command = [sys.executable, str(PROVIDER), "--port", "0", "--ledger", str(tmp_path / "ledger.jsonl")]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert running[-1].stdout is not None
        return running[-1].stdout.readline().strip()

    yield start
    for one in running:
        one.kill()
        one.communicate()


def test_a_port_that_is_taken_is_one_sentence(provider: Callable[[], str]) -> None:
    port = provider().rpartition(":")[2]
    command = [sys.executable, "examples/provider.py", "--port", port]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert (ran.returncode, ran.stderr) == (
        1,
        f"Port {port} cannot be listened on: Address already in use. Choose one with --port.\n",
    )


def refund(url: str, key: str | None = "k1", **changes: str) -> httpx2.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return httpx2.post(f"{url}/refunds", headers=headers, json={"bill": "b7", "amount": "40", **changes})


def book(url: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx2.get(f"{url}/refunds").json()
    return found


def test_the_same_key_is_the_same_refund(provider: Any) -> None:
    url = provider()
    assert refund(url).json() == refund(url).json() == {"id": "re_1", "key": "k1", "bill": "b7", "amount": "40"}
    assert refund(url, "k2").json()["id"] == "re_2"
    assert (book(url)["calls"], len(book(url)["refunds"])) == (3, 2)


def test_the_same_key_for_another_refund_is_refused(provider: Any) -> None:
    url = provider()
    refund(url)
    assert refund(url, amount="41").status_code == 409
    assert refund(url, None).status_code == 400
    assert len(book(url)["refunds"]) == 1


def test_a_lost_answer_is_a_refund_nobody_heard_of(provider: Any) -> None:
    url = provider()
    httpx2.post(f"{url}/faults", json={"lose_answers": 1})
    with pytest.raises(httpx2.RemoteProtocolError):
        refund(url)
    assert refund(url).json()["id"] == "re_1"
    assert len(book(url)["refunds"]) == 1


def test_a_500_is_a_refund_that_did_not_happen(provider: Any) -> None:
    url = provider()
    httpx2.post(f"{url}/faults", json={"answer_500": 2})
    assert [refund(url).status_code for _ in range(3)] == [500, 500, 200]
    assert len(book(url)["refunds"]) == 1


def test_its_ledger_survives_it(provider: Any, tmp_path: Path) -> None:
    refund(provider())
    again = provider()
    assert refund(again).json()["id"] == "re_1"
    assert refund(again, "k2").json()["id"] == "re_2"
    assert len((tmp_path / "ledger.jsonl").read_text().splitlines()) == 2


def test_nonsense_is_answered(provider: Any) -> None:
    url = provider()
    assert httpx2.post(f"{url}/refunds", content=b"{").status_code == 400
    assert httpx2.get(f"{url}/").status_code == 404
