from hypothesis import given
from hypothesis import strategies as st

from cronring.controller.core.node.timers import Timers

INSTANTS = st.integers(0, 6)
COMMANDS = st.lists(
    st.one_of(
        st.tuples(st.just("arm"), st.integers(0, 5), INSTANTS),
        st.tuples(st.just("disarm"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("pop"), INSTANTS, st.just(0)),
    ),
    max_size=40,
)


@given(COMMANDS)
def test_like_a_dict_of_instants(commands: list[tuple[str, int, int]]) -> None:
    timers, twin = Timers(), dict[int, int]()
    for command, number, instant in commands:
        if command == "arm":
            timers.arm(number, instant)
            twin[number] = instant
        elif command == "disarm":
            timers.disarm(number)
            twin.pop(number, None)
        else:
            due = {member: at for member, at in twin.items() if at <= number}
            popped = timers.pop_due(number)
            assert sorted(popped) == sorted(due)
            assert [due[member] for member in popped] == sorted(due.values())
            for member in due:
                del twin[member]
        assert timers.next_us() == min(twin.values(), default=None)
        assert len(timers) == len(twin)


def test_a_herd_comes_in_parts_and_in_order_of_ids() -> None:
    timers = Timers()
    for member in (5, 3, 9, 1, 7):
        timers.arm(member, 7)
    timers.arm(2, 8)
    timers.disarm(1)
    assert timers.pop_due(9, 2) == [3, 5]
    assert timers.next_us() == 7
    timers.arm(4, 7)
    assert timers.pop_due(9, 4) == [4, 7, 9, 2]
    assert timers.next_us() is None


def test_a_herd_costs_one_instant() -> None:
    timers = Timers()
    for member in range(10_000):
        timers.arm(member, 7)
    assert len(timers._instants) == 1
    assert timers.pop_due(7) == list(range(10_000))
