"""What a node holds it knows from rows that belong together: a slot's newer epoch never without its exceptions."""

from __future__ import annotations

import pytest

from onefold.fleet.ownership import LIVE, Me, NodeRow, OwnerRow, Seen, actor_name, slot_name
from onefold.fleet.standing import Standing
from onefold.terms.errors import OwnedElsewhere
from onefold.terms.ids import ActorId, slot_of

ROOM = ActorId("Room", None, "lobby")
SLOT = slot_name(slot_of(ROOM, 4))
ANN, BOB = Me("ann", 1), Me("bob", 1)
NODES = {me.name: NodeRow(me.name, me.incarnation, 9_000, LIVE, None, 0) for me in (ANN, BOB)}


def seen(*rows: OwnerRow) -> Seen:
    return Seen(NODES, {row.name: row for row in rows}, {}, 1_000)


@pytest.fixture
def ann() -> Standing:
    standing = Standing(lambda: 1_000)
    standing.joined(ANN, 4, [slot_name(slot) for slot in range(4)])
    standing.look(seen(OwnerRow(SLOT, "ann", 1, 1)))
    return standing


def test_the_owner_of_a_slot_has_its_actors(ann: Standing) -> None:
    assert (ann.hold(ROOM).name, ann.hold(ROOM).epoch) == (SLOT, 1)


def test_an_actor_claimed_apart_is_elsewhere(ann: Standing) -> None:
    ann.look(seen(OwnerRow(SLOT, "ann", 1, 2), OwnerRow(actor_name(ROOM), "bob", 1, 1)))
    with pytest.raises(OwnedElsewhere):
        ann.hold(ROOM)


def test_a_look_that_was_under_way_meanwhile_makes_no_exception_forgotten(ann: Standing) -> None:
    """Two looks, answered in the other order."""
    ann.look(seen(OwnerRow(SLOT, "ann", 1, 2), OwnerRow(actor_name(ROOM), "bob", 1, 1)))
    ann.look(seen(OwnerRow(SLOT, "ann", 1, 1)))
    with pytest.raises(OwnedElsewhere):
        ann.hold(ROOM)


def test_a_name_that_fell_back_is_its_slots_again(ann: Standing) -> None:
    ann.look(seen(OwnerRow(SLOT, "ann", 1, 2), OwnerRow(actor_name(ROOM), "bob", 1, 1)))
    fell = seen(OwnerRow(SLOT, "ann", 1, 2), OwnerRow(actor_name(ROOM), "", 0, 2))
    assert ann.look(fell) == [actor_name(ROOM)]  # its alarm may have been tried while it was elsewhere
    assert ann.look(fell) == []
    assert (ann.hold(ROOM).name, ann.hold(ROOM).epoch) == (SLOT, 2)


def test_a_name_that_is_heard_to_have_fallen_back_is_told_as_well(ann: Standing) -> None:
    ann.look(seen(OwnerRow(SLOT, "ann", 1, 2), OwnerRow(actor_name(ROOM), "bob", 1, 1)))
    assert ann.changed([OwnerRow(actor_name(ROOM), "", 0, 2)]) == [actor_name(ROOM)]
    assert ann.hold(ROOM).epoch == 2
