"""The chain of hashes: its form is fixed, and whatever is done to sealed rows is named."""

import hashlib
from typing import Any

import pytest

from cronring.schema.audit_chain import FIELDS, START, AuditRow, ChainLink, fields_of, hash_after, parse_link, sealed
from cronring.schema.audit_check import EXPLAINED_MAX, FAULTS_MAX, ChainCheck, FaultKind
from tests.support.audit_rows import chain_of

CHANGED, MISSING, MOVED = FaultKind.CHANGED, FaultKind.MISSING, FaultKind.OUT_OF_ORDER
OTHERWISE: dict[str, Any] = {
    "row_id": 99, "at": 1, "refused": "UNAUTHENTICATED", "times": 2, "principal": "token:eve", "method": "/m",
    "origin": "::1", "namespace": "", "subject": "", "before": "", "after": None, "remark": "x", "controller_id": "c2",
}  # fmt: skip


def faults(rows: list[AuditRow], head: ChainLink | None = None, *expected: ChainLink) -> list[tuple[FaultKind, int]]:
    check = ChainCheck(START, expected)
    for row in rows:
        check.take(row)
    return [(fault.kind, fault.seq) for fault in check.finish(head)]


def head_of(rows: list[AuditRow]) -> ChainLink:
    return ChainLink(rows[-1].seq, rows[-1].hash)


def renumbered(rows: list[AuditRow], first: int) -> list[AuditRow]:
    return [row._replace(seq=number) for number, row in enumerate(rows, first)]


def test_the_form_is_that_of_the_page() -> None:
    (row,) = sealed(START, [AuditRow(7, 1, None, 1, "a:b", "/m", "", "n", "job ä", "", None, "", "")])
    assert (row.seq, FIELDS) == (1, tuple(fields_of(row)))
    wanted = bytes(32)
    for text in ("1", "7", "1970-01-01T00:00:00.000001Z", None, "1", "a:b", "/m", "", "n", "job ä", "", None, "", ""):
        raw = b"" if text is None else text.encode()
        wanted += (len(raw) if text is not None else 2**32 - 1).to_bytes(4, "big") + raw
    assert row.hash == hashlib.sha256(wanted).digest()
    assert row.hash.hex() == "5f10450817c7a9381283c2e1cf7e4e3c579e456ac73bdb5d55b9707da1833d48"


def test_what_nobody_touched_is_whole() -> None:
    rows = chain_of(5)
    assert faults(rows, head_of(rows), ChainLink(0, bytes(32)), ChainLink(3, rows[2].hash)) == []
    assert faults([], START) == []


@pytest.mark.parametrize("field", OTHERWISE)
@pytest.mark.parametrize("at", [0, 2, 4])
def test_each_field_of_a_row_is_held(field: str, at: int) -> None:
    rows = chain_of(5)
    head = head_of(rows)
    other: dict[str, Any] = {field: OTHERWISE[field]}
    rows[at] = rows[at]._replace(**other)
    assert faults(rows, head) == [(CHANGED, at + 1)]


@pytest.mark.parametrize("at", [0, 2, 4])
def test_a_hash_that_was_changed_alone_is_told_from_a_changed_row(at: int) -> None:
    rows = chain_of(5)
    head = head_of(rows)
    rows[at] = rows[at]._replace(hash=bytes(32))
    check = ChainCheck(START)
    for row in rows:
        check.take(row)
    (fault,) = check.finish(head)
    assert (fault.seq, fault.text) == (at + 1, f"row {at + 1} is as it was sealed, but for its hash: that was changed")


@pytest.mark.parametrize(
    ("gone", "first"), [([1], 1), ([3], 3), ([2, 3], 2), ([5], 5), ([4, 5], 4), ([1, 2, 3, 4, 5], 1)]
)
def test_rows_that_were_deleted_are_named(gone: list[int], first: int) -> None:
    rows = chain_of(5)
    assert faults([row for row in rows if row.seq not in gone], head_of(rows)) == [(MISSING, first)]


@pytest.mark.parametrize(("one", "other"), [(1, 2), (2, 3), (1, 5), (2, 4), (4, 5)])
def test_rows_that_changed_places_are_named(one: int, other: int) -> None:
    rows = chain_of(5)
    head = head_of(rows)
    rows[one - 1], rows[other - 1] = rows[other - 1]._replace(seq=one), rows[one - 1]._replace(seq=other)
    found = faults(rows, head)
    assert found == [(MOVED, one), (MOVED, other)]


def test_rows_whose_contents_changed_places_are_named() -> None:
    rows = chain_of(5)
    rows[1], rows[3] = (
        rows[3]._replace(seq=2, hash=rows[1].hash),
        rows[1]._replace(seq=4, hash=rows[3].hash),
    )
    assert faults(rows, head_of(rows)) == [(CHANGED, 2), (CHANGED, 4)]


def test_a_row_that_was_put_between_is_named() -> None:
    rows = chain_of(5)
    head = head_of(rows)
    forged = rows[0]._replace(seq=3, row_id=77, hash=bytes(32))
    found = faults([*rows[:2], forged, *renumbered(rows[2:], 4)], ChainLink(6, head.hash))
    assert found == [(CHANGED, 3), (MOVED, 4), (MOVED, 5), (MOVED, 6)]


def test_a_row_that_was_put_behind_the_head_is_named() -> None:
    rows = chain_of(5)
    (forged,) = sealed(head_of(rows), [rows[0]])
    assert faults([*rows, forged], head_of(rows)) == [(CHANGED, 6)]


def test_a_gap_that_was_closed_by_new_numbers_is_named() -> None:
    rows = chain_of(5)
    found = faults([*rows[:2], *renumbered(rows[3:], 3)], ChainLink(4, rows[-1].hash))
    assert found == [(CHANGED, 3), (MOVED, 4)]  # what the first one stood behind is gone


def test_a_chain_that_was_made_anew_is_shown_by_what_was_kept() -> None:
    rows = chain_of(5)
    forged = sealed(START, [rows[0], rows[1]._replace(principal="token:eve"), *rows[2:]])
    head = head_of(forged)
    assert faults(forged, head) == []
    assert faults(forged, head, ChainLink(1, rows[0].hash), head_of(rows)) == [(FaultKind.REWRITTEN, 5)]
    assert faults(forged, head_of(rows)) == [(FaultKind.REWRITTEN, 5)]
    assert faults(forged[:3], head_of(forged[:3]), head_of(rows)) == [(MISSING, 5)]


def test_lines_that_changed_places_in_a_file_are_named() -> None:
    rows = chain_of(5)
    assert faults([rows[0], rows[2], rows[1], *rows[3:]]) == [(MOVED, 2)]


def test_it_may_begin_later_and_retention_may_cut_meanwhile() -> None:
    rows = chain_of(6)
    check = ChainCheck(ChainLink(2, rows[1].hash), [ChainLink(1, rows[0].hash), ChainLink(2, rows[1].hash)])
    for row in rows[2:3]:
        check.take(row)
    check.cut(ChainLink(4, rows[3].hash))
    for row in rows[4:]:
        check.take(row)
    assert [(fault.kind, fault.seq) for fault in check.finish(head_of(rows))] == [(FaultKind.UNKNOWN, 1)]


def test_when_nothing_fits_it_ends_all_the_same() -> None:
    rows = [row._replace(times=2) for row in chain_of(FAULTS_MAX + EXPLAINED_MAX + 50)]
    check = ChainCheck(START)
    for row in rows:
        check.take(row)
    assert len(check.finish(head_of(rows))) == FAULTS_MAX
    assert check.more == len(rows) - FAULTS_MAX


@pytest.mark.parametrize("text", ["", "7", ":ab", "x:00", "1:zz", "1:00", f"-1:{'0' * 64}", f"{'9' * 19}:{'0' * 64}"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"hash|SEQ:HASH"):
        parse_link(text)


def test_a_place_is_read_as_it_is_written() -> None:
    link = head_of(chain_of(3))
    assert parse_link(str(link)) == link
    assert hash_after(chain_of(2)[1].hash, chain_of(3)[2]) == link.hash
