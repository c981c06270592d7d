"""The part `membership` of `make bench`: small clusters of the real machines, and its table."""

import random

from bench.membership import QUIET_MESSAGES_PER_S, deaths, join, measure, quiet, ring, room_for, size, table
from cronring.controller.core.swim import beliefs
from cronring.controller.core.swim.messages import Packet, Sync
from tests.simulation.swim_crowd import Crowd
from tests.simulation.swim_members import Members


def test_who_begins_acquainted_holds_what_the_whole_table_would_have_taught() -> None:
    crowd, taught = Crowd("same", 9), Members("same")
    for host in range(9):
        taught.start(host, known=())
    everybody = Packet("c99.0", "host99:7", (), Sync(False, tuple(process.swim.me for process in taught.running())))
    for process in taught.running():
        process.swim.receive(everybody, taught.clock.now_ns)
    for process, twin in zip(crowd.running(), taught.running(), strict=True):
        roster, theirs = process.swim._beliefs.roster, twin.swim._beliefs.roster
        assert roster.all() == theirs.all()
        assert roster.live() == theirs.live()
        assert [roster.live_at(member.address) for member in roster.all()] == [
            (each.member_id,) for each in theirs.all()
        ]
        assert sorted(process.swim._beliefs.targets._order) == sorted(twin.swim._beliefs.targets._order)
        assert process.swim.live() == twin.swim.live()


def test_a_quiet_cluster_probes_and_syncs_and_nothing_else() -> None:
    found = quiet(Crowd("quiet", 12), 12)
    assert abs(found["messages_per_s"] - QUIET_MESSAGES_PER_S) < 0.1
    assert found["bytes_per_s"] > 10 * found["messages_per_s"]


def test_a_death_and_a_newcomer() -> None:
    crowd = Crowd("death", 12)
    (found,) = deaths(crowd, 1, random.Random(1))
    assert 0 < found["suspected_s"] <= found["told_all_s"] < found["dead_first_s"] <= found["dead_all_s"] < 10
    assert 5 < found["messages"] < 60
    assert join(crowd, 12) < 2


def test_more_than_swim_takes_in_have_room_while_they_are_measured() -> None:
    bound = beliefs.MEMBERS_MAX
    with room_for(bound + 10):
        assert len(Crowd("room", bound + 10).running()[0].swim.live()) == bound + 10
    assert bound == beliefs.MEMBERS_MAX


def test_the_table_says_every_figure_in_words() -> None:
    result = {
        "name": "membership",
        "shape": {"ms a period": 500},
        "machine": {"date": "2026-11-22", "machine": "2 cores"},
        "swim": {"10": size(10, 1, 1), "12": size(12, 1, 1)},
        "ring": {"3": ring(3) | {"goes_ms": 1.0, "comes_ms": 1.0}, "4": ring(4) | {"goes_ms": 25.0}},
    }
    lines = table(result).splitlines()
    assert lines[0] == "### membership: 500 ms a period"
    assert lines[6].startswith("| 10 | 4.")
    widths = {line.count("|") for line in lines[3:] if line.startswith("|")}
    assert len(widths) == 2, "a head, a rule and rows of one width for each of the two"
    assert lines[-1] == "A ring takes in a member who comes or goes in under 20 ms with 3."


def test_figures_have_flat_names() -> None:
    figures = measure((10,), (3,))["figures"]
    assert {"messages_per_s_of_10", "dead_all_s_of_10", "ring_goes_ms_of_3"} <= set(figures)
    assert "deaths_of_10" not in figures
