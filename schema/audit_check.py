"""Whether the audit log's chain is whole, and if not, which row it is: changed, missing, or out of order."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from cronring.schema.audit_chain import AuditRow, ChainLink, hash_after, instant_words

# How many rows that don't fit are explained: each has to be tried in the positions of all others.
EXPLAINED_MAX: Final = 24
FAULTS_MAX: Final = 100


class FaultKind(StrEnum):
    CHANGED = "changed"
    MISSING = "missing"
    OUT_OF_ORDER = "out of order"
    REWRITTEN = "rewritten"
    UNKNOWN = "unknown"  # it can't be compared


class ChainFault(NamedTuple):
    """`seq`: where it is. `text`: what is wrong, and what that means."""

    kind: FaultKind
    seq: int
    text: str


class _Stray(NamedTuple):
    """A row that doesn't fit behind `previous`, which is the stored hash of the position before."""

    row: AuditRow
    previous: bytes


class ChainCheck:
    """Takes rows in the order of the chain. `expected`: positions whose hashes somebody kept elsewhere."""

    def __init__(self, start: ChainLink, expected: Iterable[ChainLink] = ()) -> None:
        """`start`: the position before the first row."""
        self._last = start
        self._known = True  # whether the hash before the next row is
        self._expected = {link.seq: link.hash for link in expected}
        self._first = self._last.seq
        self._strays: list[_Stray] = []
        self._gaps: list[tuple[int, int]] = []
        self._late: set[int] = set()
        self._faults: list[ChainFault] = []
        self.rows = 0
        self.more = 0  # faults beyond FAULTS_MAX
        self._compare(start)

    @property
    def last(self) -> ChainLink:
        """The latest row's position, as it is stored."""
        return self._last

    def cut(self, link: ChainLink) -> None:
        """Retention has removed the rows up to that position, while others were read."""
        if link.seq > self._last.seq:
            self._last, self._known = link, True
            self._compare(link)

    def take(self, row: AuditRow) -> None:
        """The next row that is there."""
        self.rows += 1
        wanted = self._last.seq + 1
        if row.seq < wanted:
            words = f"row {row.seq} stands behind row {self._last.seq}: rows were swapped, or are there twice"
            self._fault(FaultKind.OUT_OF_ORDER, row.seq, words)
            self._late.add(row.seq)
            return
        if row.seq > wanted:
            self._gaps.append((wanted, row.seq - 1))
            self._known = False
        if self._known and hash_after(self._last.hash, row) != row.hash:
            if len(self._strays) < EXPLAINED_MAX:
                self._strays.append(_Stray(row, self._last.hash))
            else:
                self._fault(FaultKind.CHANGED, row.seq, _changed(row))
        self._last, self._known = ChainLink(row.seq, row.hash), True
        self._compare(self._last)

    def finish(self, head: ChainLink | None = None) -> list[ChainFault]:
        """What is wrong. `head`: the last position, as the controllers noted it; None: that is not known."""
        if head is not None:
            self._end(head)
        self._explain(() if head is None else (head.hash,))
        self._miss()
        for seq in sorted(self._expected):
            if seq > self._last.seq:
                words = f"row {seq} was there, and is missing: the chain ends at {self._last.seq}"
                self._fault(FaultKind.MISSING, seq, words)
            elif seq < self._first:
                words = f"row {seq} can't be compared: what is here begins with row {self._first + 1}"
                self._fault(FaultKind.UNKNOWN, seq, words)
        return sorted(self._faults, key=lambda fault: fault.seq)

    def _compare(self, link: ChainLink) -> None:
        kept = self._expected.pop(link.seq, None)
        if kept is not None and kept != link.hash:
            words = f"row {link.seq} has another hash than the one that you kept: the log was rewritten up to there"
            self._fault(FaultKind.REWRITTEN, link.seq, words)

    def _miss(self) -> None:
        for first, last in self._gaps:
            if last - first < len(self._late) and self._late.issuperset(range(first, last + 1)):
                continue
            which = f"row {first} is" if first == last else f"rows {first} to {last} are"
            words = f"{which} missing: deleted after they were sealed; row {last + 1} can't be checked without"
            self._fault(FaultKind.MISSING, first, words)

    def _end(self, head: ChainLink) -> None:
        if self._last.seq < head.seq:
            first = self._last.seq + 1
            which = f"row {head.seq} is" if first == head.seq else f"rows {first} to {head.seq} are"
            words = f"{which} missing at the end: deleted after they were sealed"
            self._fault(FaultKind.MISSING, first, words)
        elif self._last.seq > head.seq:
            words = f"no controller sealed what stands behind row {head.seq}, which was the last one"
            self._fault(FaultKind.CHANGED, head.seq + 1, words)
        elif self._last.hash != head.hash and (not self._strays or self._strays[-1].row.seq != head.seq):
            words = f"the last row, {head.seq}, was sealed with another hash: the log was rewritten up to there"
            self._fault(FaultKind.REWRITTEN, head.seq, words)

    def _explain(self, heads: tuple[bytes, ...]) -> None:
        """A row is intact if it fits behind the hash of another stray: then only the row before it has changed."""
        positions = {stray.row.seq + step for stray in self._strays for step in (-1, 0, 1)}
        computed = [hash_after(stray.previous, stray.row) for stray in self._strays]
        stored = {digest for stray in self._strays for digest in (stray.previous, stray.row.hash)}
        hashes = {*heads, *stored, *computed}
        for (row, _), digest in zip(self._strays, computed, strict=True):
            fitting = _fitting(row, hashes, (row.seq, *sorted(positions - {row.seq})))
            if fitting is None:
                fits = any(hash_after(digest, each.row) == each.row.hash for each in self._strays)
                words = f"row {row.seq} is as it was sealed, but for its hash: that was changed"
                self._fault(FaultKind.CHANGED, row.seq, words if fits or digest in heads else _changed(row))
            elif fitting != row.seq:
                words = f"row {row.seq} was sealed as row {fitting}: rows were swapped, moved, or put between"
                self._fault(FaultKind.OUT_OF_ORDER, row.seq, words)

    def _fault(self, kind: FaultKind, seq: int, text: str) -> None:
        if any(fault[:2] == (kind, seq) for fault in self._faults[-2:]):
            return
        if len(self._faults) >= FAULTS_MAX:
            self.more += 1
            return
        self._faults.append(ChainFault(kind, seq, text))


def _fitting(row: AuditRow, hashes: set[bytes], positions: Iterable[int]) -> int | None:
    """The first of these positions in which the row has its stored hash behind one of `hashes`; None: there is none."""
    for position in positions:
        moved = row._replace(seq=position)
        if any(hash_after(previous, moved) == row.hash for previous in hashes):
            return position
    return None


def _changed(row: AuditRow) -> str:
    what = f"{row.principal}, {row.method}, {instant_words(row.at)}"
    return f"row {row.seq} ({what}) is not what was sealed there: it was changed, or put there later"
