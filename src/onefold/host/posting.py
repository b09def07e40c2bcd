"""host.posting - the ports from modules and timers to cells: `post.<Shape>`, and `post` for a tick.

For: what a module owes to a cell's box, and a tick as a turn of the cell that its owner names. Both dedupe on the key.
Never: waits for the turn of a posted program; begins a cell.
Was wrong once: a tick that a cell had refused tried again. A verdict is an answer, and was the same each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onefold.cell.module import Cells
from onefold.cell.words import Letter
from onefold.host.caller import inside
from onefold.host.cells import CellVerbs
from onefold.kernel.port import POST, Port, Standing, Step
from onefold.terms.errors import NotFound
from onefold.terms.turns import TurnFailed
from onefold.terms.typed import codec_of
from onefold.timers.words import Tick

NOTHING = codec_of(type(None))


def post_ports(verbs: CellVerbs, cells: Iterable[Cells]) -> dict[str, Port[Any, Any]]:
    """The ports, by name."""
    ports: dict[str, Port[Any, Any]] = {}
    for cell in cells:
        port = _box(verbs, cell.name)
        ports[port.name] = port
    return {**ports, POST: Standing(POST, _ticking(verbs), codec_of(Tick), NOTHING)}


def _box(verbs: CellVerbs, shape: str) -> Port[Letter, None]:
    async def post(step: Step, letter: Letter) -> None:
        await verbs.post(shape, letter.id, letter.program, key=step.key, caller=inside(step.principal))

    return Standing(f"{POST}.{shape}", post, codec_of(Letter), NOTHING)


def _ticking(verbs: CellVerbs) -> Any:
    async def tick(step: Step, tick: Tick) -> None:
        """Raises: NotFound where the owner names no cell, or one without a `tick`."""
        shape, slash, id = tick.owner.partition("/")
        if not slash or not id:
            raise NotFound("cell, as an owner 'Shape/id',", tick.owner)
        takes = verbs.takes(shape, "tick")
        told = codec_of(Tick).to_json(tick)
        arguments = {name: value for name, value in told.items() if name in takes}
        try:
            await verbs.turn(shape, id, "tick", arguments, key=step.key, caller=inside(step.principal))
        except TurnFailed:
            return  # its verdict is committed; the same tick would meet it again

    return tick
