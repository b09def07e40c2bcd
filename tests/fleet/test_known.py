"""What a process knows of boxes without looking is what was posted there, in order, or that somebody must look."""

from __future__ import annotations

import random

from onefold.fleet.known import Known
from onefold.fleet.mailbox import Waiting
from onefold.terms.ids import ActorId

BOXES = [ActorId("Room", None, str(n)) for n in range(4)]


def mail(to: ActorId, n: int) -> Waiting:
    return Waiting(n, to, f"d/{n}", "ada", b"{}", 0)


def test_a_box_that_nobody_looked_at_is_not_known() -> None:
    known = Known(2, 10)
    known.told(mail(BOXES[0], 1))
    assert known.take(BOXES[0], 5) is None
    assert known.letters == 0


def test_what_a_look_found_is_not_handed_out_again() -> None:
    known = Known(2, 10)
    known.begin(BOXES[0])
    for n in (1, 2, 3):
        known.told(mail(BOXES[0], n))
    known.looked(BOXES[0], {1, 2})
    assert [each.n for each in known.take(BOXES[0], 5) or ()] == [3]
    assert known.take(BOXES[0], 5) == []


def test_its_bounds_are_met_by_knowing_less() -> None:
    known = Known(2, 3)
    for to in BOXES[:3]:
        known.begin(to)
    assert known.take(BOXES[0], 5) is None, "the one that was used the longest ago makes room"
    for n in range(3):
        known.told(mail(BOXES[1], n))
    known.told(mail(BOXES[2], 3))
    assert known.take(BOXES[2], 5) is None
    assert [each.n for each in known.take(BOXES[1], 2) or ()] == [0, 1]


def test_whatever_happens_a_known_box_gives_its_letters_once_in_order_and_an_unknown_one_says_so() -> None:
    chance = random.Random(7)
    known, number = Known(3, 8), 0
    there: dict[ActorId, list[int]] = {to: [] for to in BOXES}
    for _ in range(5_000):
        to = chance.choice(BOXES)
        act = chance.randrange(4)
        if act == 0:
            number += 1
            there[to].append(number)
            known.told(mail(to, number))
        elif act == 1 and chance.random() < 0.1:
            known.doubt(to)
        else:
            taken = known.take(to, chance.randint(1, 4))
            if taken is None:
                known.begin(to)
                known.looked(to, set(there[to]))
                there[to].clear()
            else:
                assert [each.n for each in taken] == there[to][: len(taken)]
                assert taken or not there[to]
                del there[to][: len(taken)]
        assert 0 <= known.letters <= 8
