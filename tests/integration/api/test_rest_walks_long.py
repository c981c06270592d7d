"""REST asked along the links of its OpenAPI document: what one answer tells, the next request takes."""

import pytest

from tests.integration.api.drawn_by_schema import Serving, walked

SCENARIOS = 200


@pytest.mark.timeout(600)
def test_what_one_answer_tells_the_next_request_takes(database_url: str) -> None:
    with Serving(database_url) as serving:
        walk = walked(serving.url, SCENARIOS)
    assert not walk.wrong, "\n".join(walk.wrong)
    assert len(walk.followed) > 60, walk.followed
