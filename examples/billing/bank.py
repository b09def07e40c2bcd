"""A small card provider to try the billing example against. It honours Idempotency-Key, declines, and can misbehave.

    python bank.py [--port 8602] [--ledger FILE]

    POST /charges   Idempotency-Key: …   {"card": "4242", "amount": 1900}
                    -> {"id": "ch_1", "status": "succeeded"} or {"id": "ch_2", "status": "declined"}
    GET  /charges   -> {"calls": 3, "charges": [{"id", "key", "card", "amount", "status"}]}
    POST /faults    {"lose_answers": 1}    charges the next time and hangs up without an answer
                    {"answer_500": 2}      does nothing the next two times and says so

A card whose number ends in 0002 is declined, always. The first line printed is the address. With --ledger every
charge is on disk before its answer leaves; a provider started again on the same file still knows them.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar


class KeyReused(Exception):
    """The key came before, for another card or amount."""


@dataclass(frozen=True)
class Charge:
    id: str
    key: str
    card: str
    amount: int  # cents
    status: str  # succeeded, declined


class Ledger:
    """All charges, by the key they came under. The same key is the same charge, whoever asks and how often."""

    def __init__(self, file: Path | None = None) -> None:
        self.calls = 0
        lines = file.read_text().splitlines() if file and file.exists() else []
        self.charges = {c.key: c for c in (Charge(**json.loads(line)) for line in lines)}
        self._file = file.open("a") if file else None

    def charge(self, key: str, card: str, amount: int) -> Charge:
        """The charge under this key, made now if it is new. Raises: KeyReused."""
        self.calls += 1
        known = self.charges.get(key)
        if known is None:
            status = "declined" if card.endswith("0002") else "succeeded"
            known = self.charges[key] = Charge(f"ch_{len(self.charges) + 1}", key, card, amount, status)
            if self._file:
                self._file.write(json.dumps(asdict(known)) + "\n")
                self._file.flush()
                os.fsync(self._file.fileno())
        if (known.card, known.amount) != (card, amount):
            raise KeyReused(key)
        return known


class Door(BaseHTTPRequestHandler):
    ledger: Ledger
    lock = threading.Lock()
    faults: ClassVar = {"lose_answers": 0, "answer_500": 0}

    def do_GET(self) -> None:
        if self.path != "/charges":
            return self.answer(404, {"error": "there is only /charges and /faults"})
        with self.lock:
            self.answer(200, {"calls": self.ledger.calls, "charges": [asdict(c) for c in self.ledger.charges.values()]})

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)))
            with self.lock:
                if self.path == "/faults":
                    self.faults.update({name: int(body[name]) for name in self.faults if name in body})
                    self.answer(200, self.faults)
                elif self.path == "/charges":
                    self.charge(self.headers["Idempotency-Key"], str(body["card"]), int(body["amount"]))
                else:
                    self.answer(404, {"error": "there is only /charges and /faults"})
        except (ValueError, TypeError, LookupError, AttributeError) as wrong:
            self.answer(400, {"error": f"{type(wrong).__name__}: {wrong}"})

    def charge(self, key: str | None, card: str, amount: int) -> None:
        if not key:
            return self.answer(400, {"error": "send an Idempotency-Key"})
        if self.fault("answer_500"):
            return self.answer(500, {"error": "nothing was done"})
        try:
            charge = self.ledger.charge(key, card, amount)
        except KeyReused:
            return self.answer(409, {"error": "this key was used for another charge"})
        if self.fault("lose_answers"):
            self.close_connection = True
            return self.log("charged, answer lost", charge)
        self.answer(200, {"id": charge.id, "status": charge.status})
        self.log("charged" if charge.status == "succeeded" else "declined", charge)

    def fault(self, name: str) -> bool:
        """Whether to misbehave this time."""
        due = self.faults[name] > 0
        self.faults[name] -= due
        return due

    def answer(self, status: int, body: Any) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log(self, what: str, charge: Charge) -> None:
        print(f"bank: {what} {charge.id}: {charge.amount} cents, card {charge.card}", flush=True)

    def log_message(self, format: str, *args: object) -> None:
        """Only charges are worth a line."""


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--port", type=int, default=8602, help="0 takes a free one")
    options.add_argument("--ledger", type=Path, help="keep every charge in this file")
    chosen = options.parse_args()
    Door.ledger = Ledger(chosen.ledger)
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
