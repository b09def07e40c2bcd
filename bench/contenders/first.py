"""bench.contenders.first - the smallest application: opened, one answer, its memory told.

For: the start as a person's script has it.
Never: imports what such a script would not.
"""

from __future__ import annotations

import asyncio
import sys

import onefold
from bench.contenders.counting import Add, counter, notice
from bench.measures import resident_kib


async def main(store: str) -> None:
    async with onefold.App(counter, notice, store=store) as app:
        counted = await app.deliver(counter, Add("first", "c0", 3, "A-1", ""))
        print(counted.count, resident_kib(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
