"""REST asked by schemathesis, which draws requests from the OpenAPI document, and holds the answers against it.

It asks as root with tokens, so that whatever is drawn gets as far as it can. Streams are asked elsewhere.
"""

import asyncio
import contextlib
import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import FlakyStrategyDefinition
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core import NOT_SET
from schemathesis.core.failures import FailureGroup
from schemathesis.generation.stateful import run_state_machine_as_test
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ensure_resource_availability,
    response_schema_conformance,
    status_code_conformance,
    use_after_free,
)

from cronring.controller.api.rest.openapi import FILE
from cronring.controller.store.pool import Database
from cronring.schema.identity import Role, RoleGrant
from tests.support.callers import NamedCallers, judge_of
from tests.support.rested import CRON, rested
from tests.support.waiting import TIMEOUT_S

HEAD_MAX: Final = 7_000
CHECKS: Final = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
WALKED: Final = [*CHECKS, use_after_free, ensure_resource_availability]
STREAMED: Final = ("ControlJobs", "FollowExecution", "HoldDrill", "WatchEvents", "WatchExecutions", "WatchJobs")
ROOT: Final = {"Authorization": "Bearer test-root"}
STEPS: Final = 12
# Walks of a batch: hypothesis ends one that finds the server otherwise than an earlier walk did, which changed it.
BATCH: Final = 20
QUICKLY: Final = settings(
    deadline=None, database=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    stateful_step_count=STEPS,
)  # fmt: skip


def _job(number: int) -> dict[str, Any]:
    schedule = ("every 2h", "5 4 * * *", "manual", "0 9 * * 1-5")[number % 4]
    return {"module": "billing", "verb": "close_day", "name": f"n{number}", "spec": {"schedule": schedule}}


def _module(name: str) -> dict[str, Any]:
    return {"name": name, "verbs": [{"name": "close_day", "schedule": "every 1h"}]}


# What the document can't say: which names are there, what a schedule looks like. By the number of the request.
FITTING: Final[dict[str, Callable[[int], dict[str, Any]]]] = {
    "AddWebhook": lambda number: {"name": f"w{number}", "url": "http://127.0.0.1:9/told"},
    "BackfillJob": lambda _: {"from_at": "2026-03-01T00:00:00Z", "until_at": "2026-03-02T00:00:00Z", "dry_run": True},
    "ApplySet": lambda number: {"jobs": [_job(number)], "prune": number % 2 == 0},
    "CreateDeployment": lambda number: {"schema": _module(f"m{number % 3}"), "digest": f"{number:064x}"},
    "CreateIntervalJob": lambda number: {"verb": "billing.close_day", "interval_minutes": 5 + number},
    "CreateJob": _job,
    "CreateRunnerGrant": lambda number: {"name": f"g{number}"},
    "CreateToken": lambda number: {"name": f"t{number}", "grants": [{"role": "viewer", "namespace": "default"}]},
    "PutMessage": lambda number: {"payload": "{}", "workspace": f"ws{number % 3}"},
    "SetLimit": lambda number: {"max_concurrent": 1 + number % 9},
    "SetLimit_2": lambda number: {"max_concurrent": 1 + number % 9},
    "SetQueue": lambda number: {"max_deliveries": 1 + number % 9},
    "SetTemplate": lambda number: {"spec": {"schedule": f"every {1 + number % 9}h"}},
    "TakeMessages": lambda number: {"consumer": "walker", "most": 1 + number % 3},
    "TriggerJob": lambda number: {"note": f"by hand {number}"},
    "UpdateIntervalJob": lambda number: {"interval_minutes": 5 + number},
    "UpdateJob": lambda number: {"spec": {"schedule": f"every {1 + number % 9}h"}, "update_mask": "schedule"},
}
BEGUN: Final = {
    "TakeMessages": {"namespace": "default", "queue": "reports"},
    "TriggerJob": {"key": "billing.close_day"},
}
# There is one of each, so that lists have a first one.
THERE: Final = (
    ("POST", f"{CRON}/deployments", {"schema": _module("billing"), "digest": "f" * 64}),
    ("POST", f"{CRON}/jobs", _job(0) | {"name": "first"}),
    ("PUT", f"{CRON}/limits/default/billing", {"max_concurrent": 5}),
    ("PUT", f"{CRON}/templates/default/nightly", {"spec": {"schedule": "every 1h"}}),
    ("POST", f"{CRON}/sets/default/nightly/apply", {"jobs": [_job(0) | {"name": "of-a-set"}]}),
    ("POST", "/api/v1/jobs", {"verb": "billing.close_day", "interval_minutes": 5}),
    ("PUT", "/api/v1/queues/default/reports", {"max_deliveries": 3}),
    ("POST", "/api/v1/queues/default/reports/messages", {"payload": "{}", "workspace": "ws1"}),
)


class Serving:
    """REST in a thread, on a database of its own. `url`: where."""

    def __init__(self, database_url: str) -> None:
        self.url = ""
        self._database_url = database_url
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))

    async def _serve(self) -> None:
        database = await Database.open(self._database_url, "cronring test schema")
        callers = NamedCallers(root=(RoleGrant(Role.ADMIN),))
        async with rested(database, judge_of(callers)) as rest:
            for verb, path, body in THERE:
                async with rest.session.request(verb, path, json=body, headers=ROOT) as answer:
                    assert answer.ok, (path, await answer.text())
            self.url = rest.url
            self._started.set()
            await self._stop.wait()
        await database.close()

    def __enter__(self) -> "Serving":
        self._thread.start()
        assert self._started.wait(TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(TIMEOUT_S)
        self._loop.close()


def document() -> Any:
    """As it is served, without streams."""
    return schemathesis.openapi.from_dict(json.loads(FILE.read_text())).exclude(operation_id=list(STREAMED))


def walkable() -> Any:
    """Without links that schemathesis would guess, and without the end of what jobs are made of.

    It takes `source_id` for a name that some other operation has to tell first, and would never begin there.
    """
    whole = json.loads(FILE.read_text())
    del whole["components"]["schemas"]["IntervalJobGiven"]["properties"]["source_id"]
    listed = whole["paths"]["/api/v1/jobs"]["get"]
    listed["parameters"] = [each for each in listed["parameters"] if each["name"] != "source_id"]
    schema = schemathesis.openapi.from_dict(whole)
    schema.config.phases.stateful.inference.algorithms = []
    return schema.exclude(operation_id=[*STREAMED, "KillDeployment"])


def faults(url: str, examples: int, *, every: int = 1) -> list[str]:
    """Of every n-th operation, asked so often by what the document lets in, and so often by what it doesn't."""
    operations: list[Any] = [result.ok() for result in document().get_all_operations()]
    assert len(operations) > 50
    wrong: list[str] = []
    for operation in operations[::every]:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(QUICKLY, max_examples=examples)
            def asked(case: Any) -> None:
                wrong.extend(_judged(case, case.call(base_url=url, headers=ROOT, timeout=TIMEOUT_S), CHECKS))

            asked()
    return wrong


def _judged(case: Any, answer: Any, checks: list[Any], **known: Any) -> list[str]:
    """What is wrong with it. Beyond HEAD_MAX it is no request of ours: aiohttp refuses the head."""
    if len(answer.request.url) >= HEAD_MAX:
        return []
    try:
        case.validate_response(answer, checks=checks, **known)
    except FailureGroup as failures:
        return [f"{case.operation.label}: {each}" for each in failures.exceptions]
    return []


def _make_plain(case: Any, number: int, *, begins: bool) -> None:
    """What is drawn besides is refused more often than not, and leads nowhere."""
    name = case.operation.definition.raw["operationId"]
    case.query = {}
    if case.body is not NOT_SET:
        case.body = FITTING.get(name, lambda _: {})(number)
    if begins and name in BEGUN:
        case.path_parameters = dict(BEGUN[name])


class Walk(NamedTuple):
    """What went wrong, and how often each link was followed well."""

    wrong: list[str]
    followed: Counter[str]


def walked(url: str, scenarios: int) -> Walk:
    """So many walks along the document's links, from what makes or lists something to all that is done with it."""
    found, numbers = Walk([], Counter()), itertools.count(1)
    base: Any = walkable().as_state_machine()

    class Walker(base):  # type: ignore[misc]  # made at run time
        def step(self, input: Any) -> Any:  # noqa: A002  # as the base names it
            if (number := next(numbers)) % 5:
                _make_plain(input.case, number, begins=input.transition is None)
            output = super().step(input)
            if input.is_applied and input.transition is not None and output.response.status_code < 400:
                found.followed[input.transition.id] += 1
            return output

        def get_call_kwargs(self, _: Any) -> dict[str, Any]:
            return {"base_url": url, "headers": ROOT, "timeout": TIMEOUT_S}

        def validate_response(self, response: Any, case: Any, *_: Any, **__: Any) -> None:
            found.wrong.extend(_judged(case, response, WALKED, recorder=self.recorder))

    for batch in range(scenarios // BATCH):
        with contextlib.suppress(FlakyStrategyDefinition):
            run_state_machine_as_test(seed(batch)(Walker), settings=settings(QUICKLY, max_examples=BATCH))
    return found
