"""The façade's table of operations, from which the OpenAPI document has them: held to its routes and its bodies."""

import json
from typing import Any, Final

import jsonschema_rs
import pytest
from aiohttp import web

from cronring.controller.api.rest.facades import INTERVAL_JOBS
from cronring.controller.api.rest.openapi import FILE
from cronring.controller.core.figures import Figures
from cronring.controller.interval_jobs import routes, terms
from cronring.controller.interval_jobs.bodies import execution_body, job_body, metrics_body, stats_body
from cronring.controller.ports.interval_jobs import IntervalFigures
from tests.unit.interval_jobs.test_bodies import AT, JOB, OUTCOMES, RUN

TABLE: Final[dict[str, Any]] = json.loads(INTERVAL_JOBS.read_text())
DOCUMENT: Final[dict[str, Any]] = json.loads(FILE.read_text())
GIVEN: Final[dict[str, Any]] = TABLE["schemas"]["IntervalJobGiven"]["properties"]
JOB_BODY: Final = job_body(JOB, outputs=True)
RUN_BODY: Final = execution_body(RUN, "i1", outputs=True)
ANSWERS: Final[dict[str, dict[str, Any]]] = {
    "IntervalJob": JOB_BODY,
    "IntervalJobs": {"jobs": [JOB_BODY], "total": 1, "limit": 50, "offset": 0},
    "IntervalExecution": RUN_BODY,
    "IntervalExecutions": {"executions": [RUN_BODY], "total": 1, "limit": 50, "offset": 0},
    "IntervalStats": stats_body(JOB, Figures(11, 1, OUTCOMES, 25_000_000, 0)),
    "IntervalMetrics": metrics_body({}, IntervalFigures(AT, 11, 10, 3, 4, 25_000_000, 2, None)),
}


def test_each_route_is_an_operation() -> None:
    router = web.UrlDispatcher()
    routes.IntervalJobsRoutes().add_to(router)
    served = {(each.method, each.resource.canonical) for each in router.routes() if each.resource is not None}
    told = {(verb, path): name for verb, path, name, _, _ in TABLE["operations"]}
    assert set(told) == served
    for (verb, path), name in told.items():
        assert DOCUMENT["paths"][path][verb.lower()]["operationId"] == name
    names = set(told.values())
    assert set(TABLE["bodies"]) | set(TABLE["made"]) | set(TABLE["queries"]) <= names


def test_operations_have_names_of_their_own() -> None:
    names = [each["operationId"] for verbs in DOCUMENT["paths"].values() for each in verbs.values()]
    assert len(names) == len(set(names))


def test_what_is_given_is_what_is_taken() -> None:
    assert tuple(GIVEN) == terms.FIELDS
    bounds = {name: (each.get("minimum"), each.get("maximum"), each.get("maxLength")) for name, each in GIVEN.items()}
    assert bounds["interval_minutes"] == (1, terms.COUNT_MAX, None)
    assert bounds["max_retries"] == (0, terms.RETRIES_MAX, None)
    assert bounds["retry_backoff_seconds"] == (0, terms.BACKOFF_MAX_S, None)
    assert {name: most for name, (_, _, most) in bounds.items() if most is not None} == dict.fromkeys(
        ("source_id", "source_name", "verb", "schedule_time"), terms.NAME_MAX
    ) | {"url": terms.URL_MAX}
    assert GIVEN["interval_type"]["enum"] == [*terms.UNITS, None]
    parameters = TABLE["parameters"]
    assert parameters["status"]["enum"] == list(routes.STATUSES)
    limit, offset = parameters["limit"], parameters["offset"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, routes.PAGE_MAX, routes.PAGE)
    assert (offset["minimum"], offset["maximum"], offset["default"]) == (0, routes.OFFSET_MAX, 0)


@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_answered_is_as_the_document_says(name: str) -> None:
    schema = DOCUMENT["components"]["schemas"][name]
    assert list(schema["properties"]) == schema["required"] == list(ANSWERS[name])
    whole = {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
    jsonschema_rs.Draft202012Validator(whole).validate(ANSWERS[name])


def test_every_answer_is_held() -> None:
    answers = {answer for *_, answer in TABLE["operations"] if answer is not None}
    assert answers <= set(ANSWERS)
    job = TABLE["schemas"]["IntervalJob"]["properties"]
    assert set(job) == set(terms.FIELDS) | terms.TOLD
    assert job["status"]["enum"] == list(routes.STATUSES)
