import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.controller.api.paging import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, Pages, page_size
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.token_box import TokenBox
from cronring.protos.cronring.v1.jobs_pb2 import ListJobsRequest
from tests.support.boxes import BOX


def test_page_sizes() -> None:
    assert page_size(ListJobsRequest()) == PAGE_SIZE_DEFAULT
    assert page_size(ListJobsRequest(page_size=1)) == 1
    assert page_size(ListJobsRequest(page_size=PAGE_SIZE_MAX)) == PAGE_SIZE_MAX


@pytest.mark.parametrize("asked", [-1, 0, PAGE_SIZE_MAX + 1, 2**31 - 1])
def test_a_wrong_page_size_names_field_and_bound(asked: int) -> None:
    with pytest.raises(InvalidRequest) as refused:
        page_size(ListJobsRequest(page_size=asked))
    ((field, description),) = refused.value.violations
    assert field == "page_size"
    assert str(PAGE_SIZE_MAX) in description
    assert "leave it out" in description


@given(st.text(min_size=1, max_size=300), st.integers(1, 2**63 - 1))
def test_a_token_says_where_to_go_on(key: str, row_id: int) -> None:
    pages = Pages(BOX, "List", "filter")
    assert pages.text_cursor(pages.token(key)) == key
    assert pages.number_cursor(pages.token(row_id)) == row_id


def test_no_token_is_the_first_page() -> None:
    assert not Pages(BOX, "List").text_cursor("")
    assert Pages(BOX, "List").number_cursor("") == 0


def test_a_token_of_another_filter_or_method_is_refused() -> None:
    token = Pages(BOX, "List", "a").token("key")
    for other in (Pages(BOX, "List", "b"), Pages(BOX, "Other", "a"), Pages(BOX, "List")):
        with pytest.raises(InvalidRequest, match="another filter"):
            other.text_cursor(token)


@pytest.mark.parametrize(
    "token",
    [
        "x", "\0", "ä", "!!!!", "a" * 3_000, "W10", "W1sxLCAyXV0",
        base64.urlsafe_b64encode(b"[" * 1_400).decode(), base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        BOX.lock("watch jobs", b"[]"), Pages(TokenBox(bytes(32)), "List").token("key"),
        Pages(BOX, "List").token("key")[1:],
    ],
)  # fmt: skip
def test_a_token_that_nobody_gave_out_is_refused(token: str) -> None:
    for read in (Pages(BOX, "List").text_cursor, Pages(BOX, "List").number_cursor):
        with pytest.raises(InvalidRequest, match="page_token"):
            read(token)


@given(st.text(max_size=60, min_size=1))
def test_any_text_is_refused(token: str) -> None:
    with pytest.raises(InvalidRequest):
        Pages(BOX, "List").text_cursor(token)
