"""Jobs of lines by few calls: what is refused as a whole is divided, and no line pays for another."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from cronring.cli.failures import Failure
from cronring.cli.making import Fate, How, LineProblem, made
from cronring.cli.stream import Line
from cronring.client.errors import Invalid, PermissionDenied, Refused
from cronring.client.many import JobResult, JobToMake, ManyDone
from cronring.client.model import JobSpec

HOW = How("f", "me", "", all_or_nothing=False, dry_run=False)
LABELS_MAX, MODULES_MAX, NAME_MAX = 100, 5, 9


class Controller:
    """Refuses whole calls as controllers do, by smaller numbers."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    async def create_many(self, jobs: Sequence[JobToMake], *_: object, **__: object) -> ManyDone:
        self.calls.append(len(jobs))
        if any(job.namespace == "closed" for job in jobs):
            raise PermissionDenied("not there")
        if sum(len(job.spec.labels) for job in jobs) > LABELS_MAX:
            raise Refused("RESOURCE_EXHAUSTED", "too many entries")
        long = [(f"jobs[{at}].name", "is too long") for at, job in enumerate(jobs) if len(job.name) > NAME_MAX]
        if long:
            raise Invalid("the request is invalid", long[:2], len(long))
        if len({job.module for job in jobs}) > MODULES_MAX:
            raise Invalid("too many modules", [("jobs", "are of too many modules")])
        return ManyDone(tuple(JobResult(job.name, 1, False, "", "") for job in jobs), len(jobs), 0, 0, False)


def job(name: str, labels: int = 0, module: str = "m", namespace: str = "default") -> JobToMake:
    return JobToMake(module, "v", name, JobSpec("manual", labels={f"l{at}": "x" for at in range(labels)}), namespace)


async def told(jobs: Sequence[JobToMake], how: How = HOW) -> tuple[Controller, list[LineProblem | Fate]]:
    controller = Controller()
    client: Any = SimpleNamespace(jobs=controller)
    lines = [(Line(number, b""), each) for number, each in enumerate(jobs, 1)]
    return controller, await made(client, lines, how)


async def test_lines_that_are_named_are_taken_out() -> None:
    jobs = [job("long" * 9 if at % 4 == 0 else f"n{at}") for at in range(20)]
    _, outcomes = await told(jobs)
    assert [each if isinstance(each, str) else each.line for each in outcomes] == [
        at + 1 if at % 4 == 0 else "made" for at in range(20)
    ]
    assert outcomes[0] == LineProblem(1, "name is too long")


async def test_what_is_too_much_together_is_divided() -> None:
    controller, outcomes = await told([job(f"n{at}", labels=30) for at in range(8)])
    assert (outcomes, max(controller.calls[1:])) == (["made"] * 8, 4)
    _, modules = await told([job("n", module=f"m{at}") for at in range(23)])
    assert modules == ["made"] * 23
    _, alone = await told([job("n1"), job("n2", labels=200), job("n3")])
    assert [isinstance(each, str) for each in alone] == [True, False, True]


async def test_a_namespace_that_is_closed_is_no_other_ones_trouble() -> None:
    _, outcomes = await told([job("n1"), job("n2", namespace="closed"), job("n3")])
    assert [isinstance(each, str) for each in outcomes] == [True, False, True]


async def test_all_or_nothing_is_never_divided() -> None:
    whole = HOW._replace(all_or_nothing=True)
    controller, outcomes = await told([job("n1"), job("long" * 9)], whole)
    assert (controller.calls, outcomes) == ([2], [LineProblem(2, "name is too long")])
    with pytest.raises(Refused):
        await told([job("n1", labels=60), job("n2", labels=60)], whole)
    with pytest.raises(PermissionDenied):
        await told([job("n1"), job("n2", namespace="closed")], whole)


async def test_an_answer_for_others_is_none() -> None:
    async def none(*_: object, **__: object) -> ManyDone:
        return ManyDone((), 0, 0, 0, False)

    client: Any = SimpleNamespace(jobs=SimpleNamespace(create_many=none))
    with pytest.raises(Failure, match="answers for 0 jobs of 1"):
        await made(client, [(Line(1, b""), job("n"))], HOW)
