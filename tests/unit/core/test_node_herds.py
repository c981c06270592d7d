"""Thousands of jobs due at once: the first of them should not wait for the last."""

from cronring.controller.core.model import Execution
from cronring.controller.core.node import effects, events
from tests.unit.core.told import Told, job, won


def answer(told: Told, claim: effects.Claim) -> None:
    """All of it was won."""
    results = [won(request, 100_000 + request.job_id, told.database_us) for request in claim.requests]
    told.tell(events.Claimed(claim.request_id, told.database_us, results))


def sizes(told: Told) -> list[int]:
    """Of the claims that were made, which are answered."""
    claims = told.take(effects.Claim)
    for claim in claims:
        answer(told, claim)
    return [len(claim.requests) for claim in claims]


def due(jobs: int) -> Told:
    told = Told()
    told.ready(*(job(number) for number in range(1, jobs + 1)))
    told.wait_renewing(10_000)
    return told


def test_a_herds_first_claim_is_small_and_alone() -> None:
    """It was followed at once by the next 462, whose statement the first one's answer had to wait for."""
    told = due(2_000)
    assert len(told.one(effects.Claim).requests) == 50
    told.wait(20)
    assert not told.take(effects.Claim)


def test_what_is_won_is_dispatched_before_the_next_claim_is_made() -> None:
    told = due(2_000)
    answer(told, told.one(effects.Claim))
    assert len(told.one(effects.Dispatch).executions) == 50
    assert not told.take(effects.Claim)
    told.wait(0)
    assert [len(claim.requests) for claim in told.take(effects.Claim)] == [200, 500]


def test_a_herd_is_claimed_to_its_end_and_the_next_one_begins_small() -> None:
    told = due(2_000)
    claimed = []
    while made := sizes(told):
        claimed += made
        told.wait(0)
    assert claimed[:3] == [50, 200, 500]
    assert sum(claimed) == 2_000
    ran: list[Execution] = [run for each in told.take(effects.Dispatch) for run in each.executions]
    assert len({run.job.job_id for run in ran}) == 2_000


def test_a_few_are_claimed_at_once() -> None:
    assert sizes(due(199)) == [199]


def test_what_is_left_of_a_small_herd_is_one_claim() -> None:
    told = due(300)
    assert sizes(told) == [50]
    told.wait(0)
    assert sizes(told) == [250]
