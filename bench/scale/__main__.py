"""bench.scale.__main__ - `python -m bench.scale`: the tables; `--write` puts them into docs/scale.md; `--measure`.

For: the words of the command line.
Never: takes a constant from a measurement by itself: a person reads it first.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from bench.places import ROOT
from bench.scale.tables import every, written

DOCUMENT = ROOT / "docs" / "scale.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description="A thousand nodes, on paper.")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scale.md")
    parser.add_argument(
        "--measure", action="store_true", help="take the constants from a Postgres of its own: a minute"
    )
    asked = parser.parse_args()
    if asked.measure:
        from bench.scale.measuring import measure  # it starts a server

        asyncio.run(measure())
        return 0
    blocks = every()
    if asked.write:
        DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8"), blocks), encoding="utf-8")
    for name, text in blocks.items():
        print(f"{name}\n\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
