import base64
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.api.paging import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, Pages, page_size
from controller.api.problems import InvalidRequest


def test_page_sizes() -> None:
    assert page_size(0) == PAGE_SIZE_DEFAULT
    assert page_size(1) == 1
    assert page_size(PAGE_SIZE_MAX) == PAGE_SIZE_MAX


@pytest.mark.parametrize("asked", [-1, PAGE_SIZE_MAX + 1, 2**31 - 1])
def test_a_wrong_page_size_names_field_and_bound(asked: int) -> None:
    with pytest.raises(InvalidRequest) as refused:
        page_size(asked)
    ((field, description),) = refused.value.violations
    assert field == "page_size"
    assert str(PAGE_SIZE_MAX) in description


@given(st.text(min_size=1, max_size=300), st.integers(1, 2**63 - 1))
def test_a_token_says_where_to_go_on(key: str, row_id: int) -> None:
    pages = Pages("List", "filter")
    assert pages.text_cursor(pages.token(key)) == key
    assert pages.number_cursor(pages.token(row_id)) == row_id


def test_no_token_is_the_first_page() -> None:
    assert not Pages("List").text_cursor("")
    assert Pages("List").number_cursor("") == 0


def test_a_token_of_another_filter_or_method_is_refused() -> None:
    token = Pages("List", "a").token("key")
    for other in (Pages("List", "b"), Pages("Other", "a"), Pages("List")):
        with pytest.raises(InvalidRequest, match="another filter"):
            other.text_cursor(token)


def test_a_token_of_the_wrong_kind_is_refused() -> None:
    pages = Pages("List")
    with pytest.raises(InvalidRequest, match="page_token"):
        pages.number_cursor(pages.token("text"))
    with pytest.raises(InvalidRequest, match="page_token"):
        pages.text_cursor(pages.token(5))


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "token",
    [
        "x", "ä", "!!!!", "a" * 3_000, encoded([]), encoded({}), encoded("x"), encoded([1, 2]), encoded(["x", 1, 2]),
        base64.urlsafe_b64encode(b"[" * 1_400).decode(), base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    ],
)  # fmt: skip
def test_a_token_that_nobody_gave_out_is_refused(token: str) -> None:
    with pytest.raises(InvalidRequest, match="page_token"):
        Pages("List").text_cursor(token)


@pytest.mark.parametrize("cursor", [0, -1, 2**63, True, 1.5, None, ["x"]])
def test_a_forged_number_is_refused(cursor: object) -> None:
    pages = Pages("List")
    fingerprint = json.loads(base64.urlsafe_b64decode(pages.token(1) + "=="))[0]
    with pytest.raises(InvalidRequest, match="page_token"):
        pages.number_cursor(encoded([fingerprint, cursor]))


@given(st.text(max_size=60))
def test_any_text_is_a_token_or_refused(token: str) -> None:
    with contextlib.suppress(InvalidRequest):
        assert isinstance(Pages("List").text_cursor(token), str)
