"""The one list of what a step does: every follow-up has its phase, and the order keeps what it says it keeps."""

import random
from typing import get_args

from cronring.controller.core.model import EndResult
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.follow_ups import FollowUp
from cronring.controller.core.node.parts import Parts
from cronring.controller.core.node.phases import Phases
from cronring.controller.core.settings import ClusterSettings
from tests.unit.core.told import S_US, T, Told, job, report


def test_each_follow_up_is_acted_on_in_one_phase_and_each_phase_has_a_name_of_its_own() -> None:
    order = Phases(Parts(NodeContext("c1", ClusterSettings(), random.Random(1), 0), "host:1")).order
    kinds = [kind for phase in order for kind in phase.then]
    assert sorted(kinds, key=repr) == sorted(get_args(FollowUp), key=repr)
    assert len({phase.name for phase in order}) == len(order)


def test_a_read_that_goes_out_in_the_step_that_finds_a_newer_row_is_not_the_one_that_it_asks_for() -> None:
    """Its answer may be older than the row."""
    told = Told()
    (execution,) = told.running(job())
    told.tell(events.ReportsReceived("r1", [report(execution)]))
    end = told.one(effects.End)
    told.tell(events.JobsNotified())
    told.now_ns = told.node.next_deadline() or 0
    told.tell(events.Ended(end.request_id, [EndResult(101, 1, True, T + 20 * S_US, T + 20 * S_US, revision=2)]))
    told.fetched(job(due=T + 20 * S_US))
    told.wait(20)
    assert told.one(effects.FetchWindow)
