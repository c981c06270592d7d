"""REST held against its own OpenAPI document by schemathesis: what it draws from there is taken, or refused as it says.

It asks as root with tokens, so that whatever is drawn gets as far as it can. Streams are asked elsewhere.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from cronring.controller.api.rest.openapi import FILE
from cronring.controller.store.pool import Database
from cronring.schema.identity import Role, RoleGrant
from tests.support.callers import NamedCallers, judge_of
from tests.support.rested import rested
from tests.support.waiting import TIMEOUT_S

EXAMPLES: Final = 8
HEAD_MAX: Final = 7_000
CHECKS: Final = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
STREAMED: Final = ("ControlJobs", "FollowExecution", "HoldDrill", "WatchEvents", "WatchExecutions", "WatchJobs")
ROOT: Final = {"Authorization": "Bearer test-root"}


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
            self.url = str(rest.session._base_url)
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


@pytest.fixture
def serving(database_url: str) -> Iterator[Serving]:
    with Serving(database_url) as found:
        yield found


def test_the_document_says_what_is_served(serving: Serving) -> None:
    schema = schemathesis.openapi.from_dict(json.loads(FILE.read_text()))
    operations: list[Any] = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]  # all are well
    assert len(operations) > 50
    wrong: list[str] = []
    for operation in operations:
        if operation.definition.raw["operationId"] in STREAMED:
            continue
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(
                max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            def asked(case: Any) -> None:
                answer = case.call(base_url=serving.url, headers=ROOT, timeout=TIMEOUT_S)
                # Beyond that it is no request of ours: aiohttp refuses the head.
                if len(answer.request.url) < HEAD_MAX:
                    case.validate_response(answer, checks=CHECKS)

            try:
                asked()
            except FailureGroup as failures:
                wrong += [f"{operation.label}: {each}" for each in failures.exceptions]
    assert not wrong, "\n".join(wrong)
