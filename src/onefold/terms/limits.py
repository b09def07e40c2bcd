"""terms.limits - how much is too much, each with its reason.

For: the one place where a bound is a number. A bound that is refused names itself in the refusal.
Never: reads configuration; a limit that an operator may move lives in host.
Was wrong once: limits beside the code that meets them. Two doors then took different sizes, and
what one had accepted the next could not store.
"""

from __future__ import annotations

MAX_DEPTH = 64
"""Levels of lists and objects in JSON. 100,000 brackets end a recursive reader; real documents stay under 20."""

MIN_INT, MAX_INT = -(2**63), 2**63 - 1
"""Whole numbers. Both stores hold signed 64 bits; some readers turn longer ones into floats without a word."""

MAX_DECIMAL_EXPONENT = 6_144
"""Powers of ten in a Decimal, as in decimal128. `int(Decimal("1E+999999999"))` fills the memory."""

MAX_ID_BYTES = 512
"""An id or key that somebody else chose. A Postgres index entry ends near 2,700 bytes and may hold three of them."""

MAX_KEY_BYTES = 200
"""A key that leaves the process; longer ones leave as their SHA-256. Payment providers take 255 characters."""

MAX_FAULTS = 50
"""Faults told of one value. A list of 100,000 wrong items would be answered with ten times its size."""

MAX_BODY_BYTES = 1 << 20
"""A request's body at a door, refused before it is read."""

MAX_ROW_BYTES = 1 << 20
"""A turn's facts, an owed body, a reply, wherever its bytes are kept. Another host took rows of 3 MB and refused
12 MiB; a Postgres statement over 2 MB can hang its pipeline, so one row must fit into half of that. What is bigger is
put into a blob by whoever has it, and its digest is what is said."""

INLINE_BYTES = 4_096
"""A reply, a step's result, a run's input or output, an owed body kept in its row; longer ones go to the blobs.
1 KB replies measured 4.7 KB a row in the wrong table and 1.1 in the right one; past a few database pages every later
read of the row pays for it. docs/adr/0041 has what a blob costs at 4 KB."""

MAX_BLOB_BYTES = 16 << 20
"""One blob. Its put is one commit that everybody waits for: 10 MB measured 0.1 s on a busy machine, 63 MB a second."""

BLOB_PART_BYTES = 256 << 10
"""A blob's bytes as rows of the database take them. A bulk statement of Postgres is held to 1 MB: three fit."""

BLOB_GRACE_MS = 24 * 3_600_000
"""How long a blob that was put may wait for the first row that refers to it. A retry over night still finds it."""

BLOB_DELAY_MS = 3_600_000
"""How long a blob that nobody refers to stays condemned before it goes: longer than any fold is on its way."""

BLOBS_A_BEAT = 128
"""Blobs that the janitor looks at in one beat and space: about 2 ms, and a million are seen within three days."""

MAX_DURATION_MS = 3_653 * 86_400_000
"""Ten years, leap days included. What is longer is a unit mistaken for another."""

MAX_DURATION_CHARS = 100
"""The text of a duration. The longest sensible one has 40."""

QUEUE_PER_ACTOR = 1_000
"""Events that wait for one actor. At 1 ms each the last of them already waits a second."""

QUEUE_PER_SPACE = 100_000
"""Events that wait for one space: two seconds of folding at 50,000 a second, and about 100 MB of memory."""
