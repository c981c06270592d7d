"""Amounts of memory in text."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.schema.size import SizeError, format_size, parse_size, rounded_size


@pytest.mark.parametrize(
    ("text", "size", "canonical"),
    [
        ("256MiB", 256 << 20, "256MiB"),
        ("1GiB", 1 << 30, "1GiB"),
        ("1024MiB", 1 << 30, "1GiB"),
        ("512MB", 512_000_000, "512MB"),
        ("1.5GiB", 3 << 29, "1536MiB"),
        ("1B", 1, "1B"),
        ("2TB", 2 * 10**12, "2TB"),
    ],
)
def test_read(text: str, size: int, canonical: str) -> None:
    assert parse_size(text) == size
    assert format_size(size) == canonical


@given(st.integers(1, 1 << 50))
def test_what_is_written_is_read_back(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    ("text", "position", "suggestion"),
    [
        ("", 0, None),
        ("256m", 3, "256MiB"),
        ("256Mi", 3, "256MiB"),
        ("256mib", 3, "256MiB"),
        ("256 MB", 3, "256MB"),
        ("2 gigabytes", 1, "2GB"),
        ("256", 3, "256MiB"),
        ("268435456", 9, "256MiB"),
        ("1,024 MiB", 1, "1GiB"),
        ("lots", 0, None),
        ("12 apples", 2, None),
        ("0MiB", 0, None),
        ("0.0001KiB", 0, "1B"),
        ("-1MiB", 0, None),
        ("1" * 101, 100, None),
    ],
)
def test_refused(text: str, position: int, suggestion: str | None) -> None:
    with pytest.raises(SizeError) as caught:
        parse_size(text)
    assert (caught.value.position, caught.value.suggestion) == (position, suggestion)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.message, copy.position, copy.suggestion) == (caught.value.message, position, suggestion)


def test_for_people() -> None:
    assert [rounded_size(size) for size in (900, 301 << 20, 1500 << 20)] == ["1 KiB", "301 MiB", "1.5 GiB"]
