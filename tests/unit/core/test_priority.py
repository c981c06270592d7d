"""Priorities: which of those that are due is claimed first, and how long the others may wait for that."""

from cronring.controller.core.model import Job
from cronring.controller.core.node import effects, events
from tests.unit.core.told import S_US, T, Told, job, won

DUE = T + 10 * S_US


def _urgent(number: int, priority: int, due: int = DUE) -> Job:
    return job(number, due, policy=f'{{"priority":{priority}}}')


def _claimed(told: Told) -> list[int]:
    """The jobs of the claims under way, statement by statement; each is answered, so that the next may follow."""
    claimed: list[int] = []
    while claims := told.take(effects.Claim):
        for claim in claims:
            claimed += [request.job_id for request in claim.requests]
            results = [won(request, request.job_id, told.database_us) for request in claim.requests]
            told.tell(events.Claimed(claim.request_id, told.database_us, results))
    return claimed


def test_of_what_is_due_together_higher_priorities_are_claimed_first() -> None:
    told = Told(claim_batch=1, claims_in_flight=1)
    told.ready(job(1), _urgent(2, -5), _urgent(3, 5), job(4), _urgent(5, 100))
    told.wait_renewing(10_000)
    assert _claimed(told) == [5, 3, 1, 4, 2]


def test_without_priorities_the_order_is_that_in_which_they_came_due() -> None:
    told = Told(claim_batch=1, claims_in_flight=1)
    told.ready(job(3, DUE - 200), job(1, DUE), job(2, DUE - 100))
    told.wait_renewing(10_000)
    assert _claimed(told) == [3, 2, 1]


def test_a_level_of_priority_is_worth_a_second_of_waiting() -> None:
    """What has waited longer than the levels between them goes first: so nobody starves."""
    told = Told(claim_batch=1, claims_in_flight=1)
    told.ready(job(1, T - 8 * S_US), _urgent(2, 7, T), _urgent(3, 9, T))
    assert _claimed(told) == [3, 1, 2]


def test_a_stream_of_higher_priorities_holds_nobody_up_for_longer_than_the_levels_between_them() -> None:
    """One place and a new tick of priority 20 each second: the one of priority 0 waits for 20 s, and no more."""
    told = Told(claim_batch=1, claims_in_flight=1)
    urgent = [_urgent(number, 20, DUE + (number - 2) * S_US) for number in range(2, 60)]
    told.ready(job(1), *urgent)
    told.wait_renewing(10_000)
    order: list[int] = []
    for _ in range(40):
        claim = told.one(effects.Claim)
        (request,) = claim.requests
        order.append(request.job_id)
        told.wait_renewing(1_000)
        answer = won(request, request.job_id, told.database_us)
        told.tell(events.Claimed(claim.request_id, told.database_us, [answer]))
    assert order.index(1) in {20, 21}
