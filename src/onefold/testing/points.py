"""testing.points - where a process may die, by name, and the one place where this one does.

For: counting the failpoints that a flow meets, and killing at the one a test named.
Never: restarts what it killed; kills twice for one order.
Was wrong once: a list of places written down by hand. The place that was forgotten was the one that lost a row;
now every failpoint is counted, and whoever wants all of them counts up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onefold.terms.ids import nearest
from onefold.testing.stage import Killed

POINTS = ("step-started", "step-returned", "before-commit", "after-commit", "before-send", "after-send", "before-reply")


@dataclass(frozen=True, slots=True)
class Order:
    """Die at the `hit`-th failpoint from now: of this name and step, or of any."""

    point: str | None
    step: str | None
    hit: int

    def __str__(self) -> str:
        return f"{self.point or 'any failpoint'}{f' of {self.step}' if self.step else ''}, hit {self.hit}"


class Points:
    """The failpoints of one app. met: how many so far. crashed: the name of each at which it died."""

    def __init__(self) -> None:
        self.met = 0
        self.dead = False
        self.crashed: list[str] = []
        self.order: Order | None = None
        self.expected = True  # whether an order that was never met is a fault of the test
        self.heard: list[Callable[[str], None]] = []
        self._left = 0

    def die_at(self, point: str | None, step: str | None = None, hit: int = 1) -> None:
        """Raises: ValueError for a name that no failpoint has."""
        if point is not None and point not in POINTS:
            close = nearest(point, POINTS)
            raise ValueError(f"there is no failpoint {point!r}" + (f"; did you mean {close!r}?" if close else ""))
        if step is not None and point not in ("step-started", "step-returned"):
            raise ValueError("only step-started and step-returned are of one step")
        if hit < 1:
            raise ValueError("hit counts from 1")
        self.order, self._left = Order(point, step, hit), hit

    def meet(self, point: str, step: str | None = None) -> None:
        """A failpoint is met. Raises: Killed, there and at every one after it."""
        if point not in POINTS:
            return
        if self.dead:
            raise Killed(point)
        self.met += 1
        order = self.order
        if order is None or order.point not in (None, point) or order.step not in (None, step):
            return
        self._left -= 1
        if not self._left:
            self.dead, self.order = True, None
            self.crashed.append(f"{point} of {step}" if step else point)
            for told in self.heard:
                told(self.crashed[-1])
            raise Killed(point)

    def live_on(self) -> None:
        self.dead = False
