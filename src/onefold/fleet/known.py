"""fleet.known - boxes of which this process knows every letter, so that nobody need look.

For: letters as they were posted here, in order, for as long as nobody else can have put one there. Pure.
Never: is the truth. What it holds is in its box; whatever is forgotten here is found there.
Was wrong once: a box looked at three times for each letter. What had been posted a moment ago was read back from the
store, then what might wait before it, then whether there was more.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection

from onefold.fleet.mailbox import Waiting
from onefold.terms.ids import ActorId


class Known:
    """At most `boxes` of them, and `letters` in all."""

    def __init__(self, boxes: int, letters: int) -> None:
        self._boxes: OrderedDict[ActorId, deque[Waiting]] = OrderedDict()
        self._at_most = boxes
        self._room = letters
        self._held = 0

    @property
    def letters(self) -> int:
        """How many are here that nobody has in hand."""
        return self._held

    def begin(self, to: ActorId) -> None:
        """Its box is about to be looked at: what is posted from now on is kept here."""
        self.doubt(to)
        if len(self._boxes) >= self._at_most:
            self.doubt(next(iter(self._boxes)))
        self._boxes[to] = deque()

    def looked(self, to: ActorId, found: Collection[int]) -> None:
        """It has these letters, by number, whoever looked has them in hand, and there is nothing else in it."""
        letters = self._boxes.get(to)
        if letters:
            self._boxes[to] = left = deque(mail for mail in letters if mail.n not in found)
            self._held -= len(letters) - len(left)

    def told(self, mail: Waiting) -> None:
        """It was posted here."""
        letters = self._boxes.get(mail.to)
        if letters is None:
            return
        if self._held >= self._room:
            self.doubt(mail.to)
        else:
            letters.append(mail)
            self._held += 1

    def take(self, to: ActorId, many: int) -> list[Waiting] | None:
        """The next letters of a box, and nobody need look; None where somebody must."""
        letters = self._boxes.get(to)
        if letters is None:
            return None
        self._boxes.move_to_end(to)
        taken = [letters.popleft() for _ in range(min(many, len(letters)))]
        self._held -= len(taken)
        return taken

    def doubt(self, to: ActorId) -> None:
        """There may be a letter in its box that nobody has in hand."""
        self._held -= len(self._boxes.pop(to, ()))
