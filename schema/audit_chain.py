"""The audit log's rows as a chain of hashes: each is SHA-256 of the hash before it and of its row.

What is hashed of a row: its fields in the order of FIELDS, each as UTF-8 behind its length (4 bytes, big-endian).
Numbers are decimal, the instant is that of `instant_words`, and null is the length 4,294,967,295 without bytes.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from cronring.schema.instant import from_us

HASH_BYTES: Final = 32
_NULL: Final = b"\xff\xff\xff\xff"


class AuditRow(NamedTuple):
    """As cron_audit_log has it. `at`: microseconds since 1970. `refused` None: a change. `seq` 0: not sealed yet."""

    row_id: int
    at: int
    refused: str | None
    times: int
    principal: str
    method: str
    origin: str
    namespace: str
    subject: str
    before: str | None
    after: str | None
    remark: str
    controller_id: str
    seq: int = 0
    hash: bytes = b""


class ChainLink(NamedTuple):
    """A position in the chain, and its hash."""

    seq: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash.hex()}"


class ChainPart(NamedTuple):
    """Rows in the order of the chain, behind `previous`. The chain begins behind `cut`, and ends with `head`."""

    rows: Sequence[AuditRow]
    previous: ChainLink
    cut: ChainLink
    head: ChainLink
    unsealed: int  # rows that are not sealed yet, of 10,000 at most


START: Final = ChainLink(0, bytes(HASH_BYTES))
"""Before the first row."""

FIELDS: Final = (
    "seq", "id", "at", "refused", "times", "principal", "method", "origin", "namespace", "subject", "before", "after",
    "remark", "controller_id",
)  # fmt: skip


def instant_words(at: int) -> str:
    """`2026-11-24T17:05:30.000001Z`: always six digits, so that there is one way to write an instant."""
    return f"{from_us(at):%Y-%m-%dT%H:%M:%S.%f}Z"


def fields_of(row: AuditRow) -> dict[str, int | str | None]:
    """What is hashed of a row, by FIELDS; exported rows have the same."""
    return {
        "seq": row.seq, "id": row.row_id, "at": instant_words(row.at), "refused": row.refused, "times": row.times,
        "principal": row.principal, "method": row.method, "origin": row.origin, "namespace": row.namespace,
        "subject": row.subject, "before": row.before, "after": row.after, "remark": row.remark,
        "controller_id": row.controller_id,
    }  # fmt: skip


def hash_after(previous: bytes, row: AuditRow) -> bytes:
    """Of the row at its `seq`, behind the hash of the one before."""
    parts = [previous]
    for value in fields_of(row).values():
        if value is None:
            parts.append(_NULL)
            continue
        raw = str(value).encode()
        parts += (len(raw).to_bytes(4, "big"), raw)
    return hashlib.sha256(b"".join(parts)).digest()


def sealed(last: ChainLink, rows: Iterable[AuditRow]) -> list[AuditRow]:
    """The rows in the positions that follow `last`."""
    found = []
    for row in rows:
        placed = row._replace(seq=last.seq + 1)
        last = ChainLink(placed.seq, hash_after(last.hash, placed))
        found.append(placed._replace(hash=last.hash))
    return found


def parse_link(text: str) -> ChainLink:
    """`SEQ:HASH`, as `str` writes it. Raises ValueError, saying what is wrong."""
    number, colon, digits = text.partition(":")
    if not colon or not (number.isascii() and number.isdecimal()) or len(number) > 18:
        raise ValueError("it is no SEQ:HASH, such as `verify` prints as the head")
    try:
        digest = bytes.fromhex(digits)
    except ValueError:
        raise ValueError("its hash is none: it must be hexadecimal digits") from None
    if len(digest) != HASH_BYTES:
        raise ValueError(f"its hash has {len(digits)} digits, and a SHA-256 has {2 * HASH_BYTES}")
    return ChainLink(int(number), digest)
