"""REST held against its own OpenAPI document by schemathesis, briefly.

`make test-long` does so properly, by test_rest_schema_long.py and test_rest_walks_long.py.
"""

import json
from typing import Any

import pytest

from cronring.controller.api.rest.openapi import FILE
from tests.integration.api.drawn_by_schema import Serving, faults, walked


def test_the_document_says_what_is_served(database_url: str) -> None:
    with Serving(database_url) as serving:
        wrong = faults(serving.url, 1, every=4)
        walk = walked(serving.url, 20)
    assert not wrong + walk.wrong, "\n".join(wrong + walk.wrong)
    assert len(walk.followed) > 10, walk.followed


# Verbs are of no list, and executions of a job stand beneath that one.
UNTOLD = {"DescribeVerb_2", "GetIntervalExecution"}


def test_a_link_leads_to_whatever_takes_a_name() -> None:
    paths: dict[str, Any] = json.loads(FILE.read_text())["paths"]
    operations = [each for verbs in paths.values() for each in verbs.values()]
    named = {each["operationId"] for each in operations if any(one.get("in") == "path" for one in each["parameters"])}
    links = [
        link
        for each in operations
        for answer in each["responses"].values()
        for link in answer.get("links", {}).values()
    ]
    assert named - {link["operationId"] for link in links} == UNTOLD


@pytest.mark.parametrize(
    ("path", "verb", "status", "target", "parameters"),
    [
        ("jobs", "post", "201", "GetJob", {"key": "$response.body#/key"}),
        ("jobs", "post", "201", "Why", {"job": "$response.body#/key"}),
        ("tokens", "post", "201", "RevokeToken", {"name": "$response.body#/token/name"}),
        ("executions", "get", "200", "RetryExecution", {"id": "$response.body#/executions/0/id"}),
        (
            "jobs/{key}/trigger", "post", "200", "CancelActivation",
            {"key": "$request.path.key", "id": "$response.body#/id"},
        ),
        ("jobs/{key}", "get", "200", "CancelActivation", None),
        ("runner-grants", "post", "201", "RevokeToken", None),
        ("limits/{namespace}", "put", "200", "RemoveLimit_2", None),
    ],
)  # fmt: skip
def test_a_link_says_where_the_names_stand(path: str, verb: str, status: str, target: str, parameters: Any) -> None:
    answer = json.loads(FILE.read_text())["paths"][f"/api/v1/cron/{path}"][verb]["responses"][status]
    assert answer.get("links", {}).get(target, {}).get("parameters") == parameters
