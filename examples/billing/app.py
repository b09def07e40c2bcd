"""The billing example as `onefold dev` and `onefold serve` take it; README.md says how to try it."""

from __future__ import annotations

import os

from billing import BankOverHttp, billing
from books import Books

import onefold

books = Books(os.environ["BOOKS"].removeprefix("sqlite:///"))  # where the selections ask, too
books.create()
app = onefold.App(billing(books, BankOverHttp(os.environ["BANK_URL"])))
