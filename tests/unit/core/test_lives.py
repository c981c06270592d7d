"""Who was there, when nobody was, and what is told of it."""

from cronring.controller.core.ledger.happenings import BadRun, Deed, Happened, of_deeds, of_lives, of_troubles
from cronring.controller.core.ledger.lateness import LateRun, why_late
from cronring.controller.core.ledger.lives import CONTROLLER, RUNNER, LeaseGap, Life, alive, gaps

SECOND = 1_000_000
AT = 1_790_000_000 * SECOND


def life(
    member: str, from_s: int, until_s: int | None = None, *, kind: str = CONTROLLER, departed: bool = False,
    deployments: tuple[str, ...] = (),
) -> Life:  # fmt: skip
    until = None if until_s is None else AT + until_s * SECOND
    return Life(kind, member, AT + from_s * SECOND, until, departed, "here", "1", deployments)


def told(found: list[Happened]) -> list[tuple[int, str, str]]:
    return sorted(((each.at - AT) // SECOND, each.kind, each.subject) for each in found)


def test_one_lives_from_its_first_instant_to_before_its_last() -> None:
    lives = [life("b", 0, 10), life("a", 5), life("r", 0, kind=RUNNER)]
    assert [each.member for each in alive(lives, CONTROLLER, AT + 10 * SECOND - 1)] == ["a", "b"]
    assert [each.member for each in alive(lives, CONTROLLER, AT + 10 * SECOND)] == ["a"]
    assert alive(lives, CONTROLLER, AT - 1) == []


def test_gaps_are_when_no_controller_lived() -> None:
    at = [AT + n * SECOND for n in range(100)]
    assert gaps([life("a", 0, 10), life("b", 5, 20), life("c", 30, 40), life("d", 50)]) == [
        LeaseGap(at[20], at[30]), LeaseGap(at[40], at[50]),
    ]  # fmt: skip
    assert gaps([life("a", 0, 10)]) == [LeaseGap(at[10], None)]
    assert gaps([life("a", 0), life("b", 5, 20)]) == []
    assert gaps([life("r", 0, 10, kind=RUNNER)]) == []


def test_comings_and_goings_are_told() -> None:
    lives = [
        life("a", 0), life("b", 1, 50), life("c", 2, 60, departed=True), life("d", 3, 70), life("d", 80),
        life("r", 4, 90, kind=RUNNER),
    ]  # fmt: skip
    assert told(list(of_lives(lives))) == [
        (0, "controller_joined", "a"), (1, "controller_joined", "b"), (2, "controller_joined", "c"),
        (3, "controller_joined", "d"), (4, "runner_joined", "r"), (50, "controller_lost", "b"),
        (60, "controller_left", "c"), (70, "controller_lost", "d"), (80, "controller_back", "d"),
        (90, "runner_lost", "r"),
    ]  # fmt: skip


def test_what_all_controllers_went_through_is_told_once() -> None:
    lives = [life("a", 0, 50), life("a", 81), life("b", 1, 51), life("b", 82)]
    found = list(of_lives(lives))
    assert told(found) == [
        (0, "controller_joined", "a"), (1, "controller_joined", "b"), (51, "no_lease", ""), (81, "lease_again", ""),
    ]  # fmt: skip
    (gone,) = [each.text for each in found if each.kind == "no_lease"]
    assert gone == "No controller held a lease for 30s: PostgreSQL was away, or all of them stood still."


def test_a_cluster_that_was_started_anew_had_not_lost_its_database() -> None:
    found = list(of_lives([life("a", 0, 50, departed=True), life("b", 90)]))
    assert "all of them had gone" in next(each.text for each in found if each.kind == "no_lease")
    assert (90, "controller_joined", "b") in told(found)


def trouble(number: int, job: str = "m.v", before: str = "completed", recovered_s: int | None = None) -> BadRun:
    recovered = None if recovered_s is None else AT + recovered_s * SECOND
    return BadRun(
        number, job, AT + number * SECOND, AT + number * SECOND, "failed", "ConnectionRefusedError", "no\nway",
        before, 0 if recovered is None else number + 1, recovered,
    )  # fmt: skip


def test_failures_in_a_row_are_one_entry_and_so_is_their_end() -> None:
    troubles = [trouble(3, before="failed", recovered_s=4), trouble(1), trouble(2, before="failed"), trouble(9)]
    found = list(of_troubles(troubles))
    assert told(found) == [(1, "failing", "m.v"), (4, "recovered", "m.v"), (9, "failing", "m.v")]
    assert found[0].text == "m.v began to fail: ConnectionRefusedError."
    assert found[0].detail == "no"
    assert found[1].text == "m.v completed again, after 3 runs without success."


def test_what_somebody_cancelled_is_no_failure_before() -> None:
    assert told(list(of_troubles([trouble(1, before="cancelled")]))) == [(1, "failing", "m.v")]


def run(**fields: object) -> LateRun:
    usual: dict[str, object] = {
        "execution_id": 7, "job": "m.v", "slot": 1, "deployment": "m-1", "tick": AT, "run_at": AT,
        "claimed_at": AT + 5 * SECOND, "started_at": AT + 5 * SECOND, "outcome": "completed", "controller_id": "a",
        "runner_id": "r", "trigger": "schedule", "before_id": 0, "before_ended_at": None,
    }  # fmt: skip
    return LateRun(**(usual | fields))  # type: ignore[arg-type]  # by name, and some with another value


THERE = [life("a", -90), life("r", -90, kind=RUNNER, deployments=("m-1",))]


def test_each_late_run_has_one_reason() -> None:
    lost = life("b", -90, 4)
    assert why_late(run(), [*THERE, lost], "b").startswith("Its primary, b, was lost: its lease ran out at ")
    assert "Its primary, b, left at" in why_late(run(), [*THERE, lost._replace(departed=True)], "b")
    assert why_late(run(), [*THERE, life("b", -90)], "b") == (
        "Its primary, b, did not claim it: a claimed it in its place."
    )
    assert "a limit were full" in why_late(run(), THERE, "a")
    assert why_late(run(claimed_at=AT + SECOND), THERE, "a") == (
        "It was claimed 1s after its run_at, and began 4s later: its runner was slow to start it."
    )


def test_what_keeps_all_from_running_comes_before_who_claimed_it() -> None:
    away = [life("a", -90, -3), life("a", 4), *THERE[1:]]
    assert why_late(run(), away, None).startswith("No controller held a lease from ")
    alone = [life("a", -90), life("r", 4, kind=RUNNER, deployments=("m-1",))]
    assert why_late(run(), alone, "a").startswith("No runner that has m-1 was connected until ")
    before = run(before_id=6, before_ended_at=AT + 4 * SECOND)
    assert why_late(before, THERE, "a").startswith("It waited for execution 6 of its job, which ran until ")
    assert "waited for execution" not in why_late(run(before_id=6, before_ended_at=AT + 9 * SECOND), THERE, "a")


def deed(number: int, at_s: int, *subjects: str, times: int = 1, action: str = "create") -> Deed:
    return Deed(number, AT + at_s * SECOND, action, "ann", "", times, subjects, subjects[0], 0)


def test_what_was_done_to_many_by_one_call_is_one_entry() -> None:
    """Each of its transactions has a row of its own, the newest first."""
    found = list(
        of_deeds(
            [
                deed(5_000, 52, "m.n4", "m.n5", "m.n6", times=2_000),
                deed(3_000, 50, "m.n1", "m.n2", "m.n3", times=2_997),
                deed(3, 49, "m.b", action="pause"),
                deed(2, 48, "m.a", "m.b", times=2),
                deed(1, 47, "m.z"),
            ]
        )
    )
    assert [each.text for each in found] == [
        "ann made m.n1, m.n2, m.n3 and 4,994 more.", "ann paused m.b.", "ann made m.a, m.b.", "ann made m.z.",
    ]  # fmt: skip
    assert [each.job for each in found] == ["", "m.b", "", "m.z"]
    assert found[0].at == AT + 52 * SECOND


def test_what_was_done_minutes_apart_or_by_one_after_the_other_is_told_each() -> None:
    assert len(list(of_deeds([deed(9, 90, "m.a", times=5), deed(1, 0, "m.b", times=5)]))) == 2
    assert len(list(of_deeds([deed(2, 2, "m.a"), deed(1, 1, "m.b")]))) == 2
