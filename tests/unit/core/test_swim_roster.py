from cronring.controller.core.swim.member import Member, MemberChange
from cronring.controller.core.swim.messages import Status, Update
from cronring.controller.core.swim.roster import BURIED_CAPACITY, Roster

ALIVE, SUSPECT, DEAD, LEFT = Status.ALIVE, Status.SUSPECT, Status.DEAD, Status.LEFT


def about(member_id: str, status: Status, incarnation: int = 0) -> Update:
    return Update(member_id, f"{member_id}:7", status, incarnation, False)


def test_a_change_names_before_and_after() -> None:
    roster = Roster()
    alive, dead = Member(*about("a", ALIVE)), Member(*about("a", DEAD))
    assert roster.merge(alive, 0) == MemberChange(None, alive)
    assert roster.merge(alive, 0) is None
    assert roster.merge(dead, 0) == MemberChange(alive, dead)


def test_live_and_dead_are_in_order_of_id() -> None:
    roster = Roster()
    for member_id in ("c", "a", "d", "b"):
        roster.merge(about(member_id, ALIVE), 0)
    roster.merge(about("a", SUSPECT), 0)
    roster.merge(about("d", DEAD), 0)
    roster.merge(about("b", LEFT), 0)
    assert [member.member_id for member in roster.live()] == ["a", "c"]
    assert roster.live_count == 2
    assert [member.member_id for member in roster.dead()] == ["d"]
    assert [member.member_id for member in roster.all()] == ["a", "b", "c", "d"]


def test_the_dead_are_buried_after_a_while_and_stale_news_does_not_raise_them() -> None:
    roster = Roster()
    roster.merge(about("a", ALIVE, 3), 0)
    roster.merge(about("a", DEAD, 3), now_ns=100)
    roster.forget(ended_before_ns=100)
    assert roster.get("a") is not None
    roster.forget(ended_before_ns=101)
    assert roster.all() == ()
    assert roster.merge(about("a", ALIVE, 3), 200) is None
    assert roster.merge(about("a", SUSPECT, 2), 200) is None
    assert roster.all() == ()
    refutation = Member(*about("a", ALIVE, 4))
    assert roster.merge(refutation, 200) == MemberChange(None, refutation)


def test_who_left_never_comes_back_even_from_the_grave() -> None:
    roster = Roster()
    roster.merge(about("a", ALIVE), 0)
    roster.merge(about("a", LEFT, 1), 0)
    roster.forget(ended_before_ns=1)
    assert roster.merge(about("a", ALIVE, 0), 2) is None
    assert roster.merge(about("a", DEAD, 1), 2) is None
    assert roster.live_count == 0


def test_strangers_who_are_dead_are_buried_at_once_so_that_nobody_passes_them_on() -> None:
    roster = Roster()
    assert roster.merge(about("a", DEAD, 2), 0) is None
    assert roster.all() == ()
    assert roster.belief("a") == about("a", DEAD, 2)
    assert roster.merge(about("a", ALIVE, 2), 0) is None


def test_the_buried_are_bounded_and_the_longest_dead_go_first() -> None:
    roster = Roster()
    for number in range(BURIED_CAPACITY + 1):
        roster.merge(about(f"a{number}", DEAD), 0)
    assert roster.belief("a0") is None
    assert roster.belief("a1") is not None


def test_a_refuting_member_is_not_forgotten_later() -> None:
    roster = Roster()
    roster.merge(about("a", ALIVE), 0)
    roster.merge(about("a", DEAD), 0)
    roster.merge(about("a", ALIVE, 1), 5)
    roster.forget(ended_before_ns=1000)
    assert roster.live_count == 1
