"""What a node believes to hold ends with its lease and its epoch, and what it did itself counts more than an older look."""

from __future__ import annotations

import pytest

from onefold.fleet.ownership import CLOSED, LIVE, NOBODY, Me, NodeRow, OwnerRow, Seen, actor_name, slot_name, space_name
from onefold.fleet.standing import Standing
from onefold.terms.errors import OwnedElsewhere
from onefold.terms.ids import ActorId, slot_of

ME, OTHER = Me("a", 3), Me("b", 1)
SLOTS = 8
AT = ActorId("Room", None, "room-7")
SLOT = slot_name(slot_of(AT, SLOTS))
NAME = actor_name(AT)
NAMES = tuple(slot_name(n) for n in range(SLOTS))


class Left:
    """What is left of the lease."""

    def __init__(self) -> None:
        self.ms = 1_000

    def __call__(self) -> int:
        return self.ms


def view(*owners: OwnerRow, now: int = 10, state: str = LIVE, until: int = 99) -> Seen:
    nodes = {me.name: NodeRow(me.name, me.incarnation, until, state, f"http://{me.name}", 0) for me in (ME, OTHER)}
    return Seen(nodes, {row.name: row for row in owners}, {}, now)


def row(name: str, me: Me | None, epoch: int) -> OwnerRow:
    return OwnerRow(name, NOBODY if me is None else me.name, 0 if me is None else me.incarnation, epoch)


@pytest.fixture
def left() -> Left:
    return Left()


@pytest.fixture
def standing(left: Left) -> Standing:
    standing = Standing(left)
    standing.joined(ME, SLOTS, NAMES)
    return standing


def elsewhere(standing: Standing) -> OwnedElsewhere:
    with pytest.raises(OwnedElsewhere) as caught:
        standing.hold(AT)
    return caught.value


def test_an_actor_is_held_by_its_slot_and_refused_with_who_has_it(standing: Standing) -> None:
    assert elsewhere(standing).node is None
    assert standing.look(view(row(SLOT, ME, 5))) == [SLOT]
    hold = standing.hold(AT)
    assert (hold.name, hold.epoch, hold.fenced) == (SLOT, 5, True)
    assert standing.look(view(row(SLOT, ME, 5))) == []
    assert standing.hold(AT) is hold
    standing.look(view(row(SLOT, OTHER, 6)))
    assert hold.over
    told = elsewhere(standing)
    assert (told.name, told.node, told.record_epoch) == (SLOT, "b", 6)


def test_an_earlier_life_of_this_node_holds_nothing(standing: Standing) -> None:
    assert standing.look(view(row(SLOT, Me("a", 2), 5))) == []
    elsewhere(standing)


def test_past_the_end_of_the_lease_nothing_is_held_whatever_the_rows_say(standing: Standing, left: Left) -> None:
    standing.look(view(row(SLOT, ME, 5)))
    hold = standing.hold(AT)
    left.ms = 0
    assert not standing.valid(hold)
    assert elsewhere(standing).node is None
    left.ms = 1
    assert standing.hold(AT) is hold


def test_an_actors_own_name_goes_before_its_slots(standing: Standing) -> None:
    standing.look(view(row(SLOT, ME, 5), row(NAME, OTHER, 1)))
    assert elsewhere(standing).node == "b"
    node = standing.node_of(AT)
    assert node is not None
    assert node.name == "b"
    beside = next(at for n in range(99) if slot_of(at := ActorId("Room", None, f"r{n}"), SLOTS) == slot_of(AT, SLOTS))
    assert standing.hold(beside).name == SLOT
    standing.look(view(row(SLOT, ME, 6), row(NAME, None, 2)))
    assert standing.hold(AT).name == SLOT
    standing.look(view(row(SLOT, OTHER, 7), row(NAME, ME, 3)))
    assert standing.hold(AT).name == NAME
    assert standing.singles == [NAME]
    assert standing.held_slots() == []


def test_a_new_epoch_of_ones_own_name_is_another_hold(standing: Standing) -> None:
    standing.look(view(row(SLOT, ME, 5)))
    before = standing.hold(AT)
    assert standing.look(view(row(SLOT, ME, 6))) == [SLOT]
    assert before.over
    assert standing.hold(AT).epoch == 6


def test_what_was_done_meanwhile_counts_more_than_an_older_look(standing: Standing) -> None:
    standing.look(view(row(SLOT, None, 4)))
    assert standing.changed([row(SLOT, ME, 5)]) == [SLOT]
    hold = standing.hold(AT)
    assert standing.look(view(row(SLOT, None, 4))) == []
    assert standing.hold(AT) is hold
    standing.changed([row(SLOT, OTHER, 6)])
    standing.look(view(row(SLOT, ME, 5)))
    assert elsewhere(standing).node == "b"


def test_what_a_commit_found_to_be_anothers_is_lost_at_once(standing: Standing) -> None:
    standing.look(view(row(SLOT, ME, 5)))
    hold = standing.hold(AT)
    assert standing.lost([hold], [row(SLOT, ME, 5).row]) == {}
    lost = standing.lost([hold], [row(SLOT, OTHER, 6).row])
    assert (lost[hold].node, lost[hold].held_epoch, lost[hold].record_epoch) == ("b", 5, 6)
    assert not standing.valid(hold)
    standing.look(view(row(SLOT, ME, 7)))
    again = standing.hold(AT)
    assert standing.lost([again], [])[again].node is None


def test_what_is_handed_over_takes_nothing_from_outside_and_is_no_work_of_this_node(standing: Standing) -> None:
    standing.look(view(*(row(name, ME, 1) for name in NAMES)))
    assert standing.held_slots() == list(range(SLOTS))
    (hold,) = standing.leave([SLOT])
    for event in ("d/key", "m/key"):
        with pytest.raises(OwnedElsewhere):
            hold.admit(event)
    for inside in ("s/1", None):
        hold.admit(inside)
    assert slot_of(AT, SLOTS) not in standing.held_slots()
    assert standing.leave([SLOT, "slot/99"]) == [hold]


def test_the_node_of_an_actor_is_one_that_lives(standing: Standing) -> None:
    standing.look(view(row(SLOT, OTHER, 1)))
    node = standing.node_of(AT)
    assert node is not None
    assert node.url == "http://b"
    standing.look(view(row(SLOT, OTHER, 1), now=99))
    assert standing.node_of(AT) is None
    standing.look(view(row(SLOT, OTHER, 1), state=CLOSED))
    assert standing.node_of(AT) is None
    standing.look(view(row(SLOT, Me("b", 2), 1)))
    assert standing.node_of(AT) is None


def test_a_new_life_begins_with_nothing_held(standing: Standing) -> None:
    standing.look(view(row(SLOT, ME, 5), row(NAME, ME, 1)))
    hold = standing.hold(AT)
    standing.joined(Me("a", 4), SLOTS, NAMES)
    assert hold.over
    assert (standing.held, standing.singles) == ([], [])
    elsewhere(standing)


def test_a_node_that_was_met_as_dead_has_nothing_any_more(standing: Standing) -> None:
    standing.look(view(row(SLOT, OTHER, 5)))
    assert standing.node_of(AT) is not None
    standing.met(view(until=10).nodes, 10)
    assert standing.node_of(AT) is None
    standing.met(view().nodes, 4)  # the store's clock was set back
    assert standing.node_of(AT) is not None


def test_a_space_of_its_own_is_abroad_unless_this_node_holds_it(left: Left) -> None:
    standing, space = Standing(left, apart=["refund"]), space_name("refund")
    standing.joined(ME, SLOTS, (*NAMES, space))
    assert standing.abroad("main") is None
    assert standing.abroad("refund") is not None
    standing.look(view(row(space, OTHER, 1)))
    assert standing.abroad("refund") is not None
    standing.look(view(row(space, ME, 2)))
    assert standing.abroad("refund") is None
    left.ms = 0
    assert standing.abroad("refund") is not None


def test_a_commit_reads_the_rows_of_the_names_it_goes_by(standing: Standing) -> None:
    standing.look(view(row(SLOT, ME, 5)))
    asked = standing.question([standing.hold(AT)])
    assert (asked.keys, asked.lock) == ([(SLOT,)], "share")
