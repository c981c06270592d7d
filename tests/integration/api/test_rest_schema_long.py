"""REST held against its own OpenAPI document by schemathesis: many requests to each operation, and long walks."""

import pytest

from tests.integration.api.drawn_by_schema import Serving, faults, walked

EXAMPLES = 60
SCENARIOS = 400


@pytest.mark.timeout(600)
def test_each_operation_does_what_the_document_says(database_url: str) -> None:
    with Serving(database_url) as serving:
        wrong = faults(serving.url, EXAMPLES)
    assert not wrong, "\n".join(wrong)


@pytest.mark.timeout(600)
def test_what_one_answer_tells_the_next_request_takes(database_url: str) -> None:
    with Serving(database_url) as serving:
        walk = walked(serving.url, SCENARIOS)
    assert not walk.wrong, "\n".join(walk.wrong)
    assert len(walk.followed) > 100, walk.followed
