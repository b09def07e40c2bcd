"""A small payment provider to try the example against. It honours Idempotency-Key, counts, and can misbehave.

    python provider.py [--port 8601] [--ledger FILE]

    POST /refunds   Idempotency-Key: …   {"bill": "b7", "amount": "40"}   -> {"id": "re_1", …}
    GET  /refunds   -> {"calls": 3, "refunds": [{"id", "key", "bill", "amount"}]}
    POST /faults    {"lose_answers": 1}    does the next refund and hangs up without an answer
                    {"answer_500": 2}      does nothing the next two times and says so

The first line printed is its address. With --ledger every refund is on disk, one JSON line each,
before its answer leaves; a provider started again on the same file still knows them.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Refund:
    id: str
    key: str
    bill: str
    amount: str


class Book:
    """All refunds, by the key they came under. The same key is the same refund, whoever asks and how often."""

    def __init__(self, ledger: Path | None) -> None:
        self.lock = threading.Lock()
        self.calls = 0
        self.faults = {"lose_answers": 0, "answer_500": 0}
        lines = ledger.read_text().splitlines() if ledger and ledger.exists() else []
        self.refunds = {r.key: r for r in (Refund(**json.loads(line)) for line in lines)}
        self.file = ledger.open("a") if ledger else None

    def refund(self, key: str, bill: str, amount: str) -> Refund:
        """The refund under this key, done now if it is new. Raises: KeyError when the key was used for another."""
        known = self.refunds.get(key)
        if known is None:
            known = self.refunds[key] = Refund(f"re_{len(self.refunds) + 1}", key, bill, amount)
            if self.file:
                self.file.write(json.dumps(asdict(known)) + "\n")
                self.file.flush()
                os.fsync(self.file.fileno())
        if (known.bill, known.amount) != (bill, amount):
            raise KeyError(key)
        return known

    def fault(self, name: str) -> bool:
        """Whether to misbehave this time."""
        due = self.faults[name] > 0
        self.faults[name] -= due
        return due


class Door(BaseHTTPRequestHandler):
    book: Book

    def do_GET(self) -> None:
        if self.path != "/refunds":
            return self.answer(404, {"error": "there is only /refunds and /faults"})
        with self.book.lock:
            refunds = [asdict(r) for r in self.book.refunds.values()]
            self.answer(200, {"calls": self.book.calls, "refunds": refunds})

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)))
            with self.book.lock:
                if self.path == "/faults":
                    self.book.faults.update({name: int(body[name]) for name in self.book.faults if name in body})
                    self.answer(200, self.book.faults)
                elif self.path == "/refunds":
                    self.refund(self.headers["Idempotency-Key"], str(body["bill"]), str(body["amount"]))
                else:
                    self.answer(404, {"error": "there is only /refunds and /faults"})
        except (ValueError, TypeError, LookupError, AttributeError) as wrong:
            self.answer(400, {"error": f"{type(wrong).__name__}: {wrong}"})

    def refund(self, key: str | None, bill: str, amount: str) -> None:
        self.book.calls += 1
        if not key:
            return self.answer(400, {"error": "send an Idempotency-Key"})
        if self.book.fault("answer_500"):
            return self.answer(500, {"error": "nothing was done"})
        try:
            refund = self.book.refund(key, bill, amount)
        except KeyError:
            return self.answer(409, {"error": "this key was used for another refund"})
        if self.book.fault("lose_answers"):
            self.close_connection = True
            return self.log("refunded, answer lost", refund)
        self.answer(200, asdict(refund))
        self.log("refunded", refund)

    def answer(self, status: int, body: Any) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log(self, what: str, refund: Refund) -> None:
        print(f"provider: {what} {refund.id}: {refund.amount} for bill {refund.bill}", flush=True)

    def log_message(self, format: str, *args: object) -> None:
        """Only refunds are worth a line."""


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--port", type=int, default=8601, help="0 takes a free one")
    options.add_argument("--ledger", type=Path, help="keep every refund in this file")
    chosen = options.parse_args()
    Door.book = Book(chosen.ledger)
    try:
        server = ThreadingHTTPServer(("127.0.0.1", chosen.port), Door)
    except OSError as error:
        raise SystemExit(
            f"Port {chosen.port} cannot be listened on: {error.strerror}. Choose one with --port."
        ) from None
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
