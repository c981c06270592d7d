"""Each operation of REST held against the OpenAPI document, by many requests that schemathesis draws from it."""

import pytest

from tests.integration.api.drawn_by_schema import Serving, faults

EXAMPLES = 8  # and as many of what the document doesn't let in


@pytest.mark.timeout(600)
def test_each_operation_does_what_the_document_says(database_url: str) -> None:
    with Serving(database_url) as serving:
        wrong = faults(serving.url, EXAMPLES)
    assert not wrong, "\n".join(wrong)
