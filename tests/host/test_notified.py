"""A name that nobody has is told at the start, before a run has paid and then asks nobody."""

from __future__ import annotations

import re

from onefold import Run, actuator
from onefold.host.notified import nobodies


@actuator
async def pays(run: Run) -> None:
    await run.wait_for_approval("one", "Pay?", notify="bos", timeout=None)
    await run.wait_for_approval("two", "Pay?", notify=["boss", "mailto:a@example.com", "eve"], timeout=None)


def test_each_name_that_is_nobody_is_told_with_its_line_and_what_to_do() -> None:
    bos, eve = nobodies([pays], {"boss": ()})
    assert re.match(r"test_notified.py:\d+: actuator pays: notify='bos' is nobody in \[people\]", bos)
    assert bos.endswith("; did you mean 'boss'?")
    assert eve.endswith('and no address: add people.eve = { notify = ["mailto:…"] }')
