"""The end of what an execution has printed."""

from cronring.schema.recorded import KEEP_BYTES, MARK_BYTES_MAX, Recorded, cut_mark


class Tail:
    """The last 64 KiB as UTF-8, in bounded memory whatever is written. Offsets count from the first byte written."""

    __slots__ = ("_chunks", "_cut", "_size", "_start")

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0
        self._start = 0  # the offset of the first byte that is kept
        self._cut = False

    @property
    def end(self) -> int:
        """How many bytes have been written."""
        return self._start + self._size

    def write(self, text: str, cut: bool = False) -> None:
        """Append. `cut`: something before `text` was dropped on the way."""
        self._cut = self._cut or cut
        data = encoded(text)
        self._chunks.append(data)
        self._size += len(data)
        # Joined now and then: tiny writes don't pile up, and a byte is copied a bounded number of times.
        if self._size > 2 * KEEP_BYTES or len(self._chunks) > 4096:
            self._join()

    def _join(self) -> bytes:
        whole = b"".join(self._chunks)
        if len(whole) > KEEP_BYTES:
            kept = _whole_characters(whole[-KEEP_BYTES:])
            self._start += len(whole) - len(kept)
            whole = kept
        self._chunks = [whole]
        self._size = len(whole)
        return whole

    def since(self, offset: int) -> Recorded:
        """What is kept of it from `offset` on; nothing if that much hasn't been written."""
        whole = self._join()
        begins_at = max(offset, self._start)
        return Recorded(begins_at, whole[begins_at - self._start :])

    def text(self) -> str:
        """What is kept, at most 64 KiB of UTF-8 with the mark that says what is missing."""
        whole = self._join()
        if len(whole) + (MARK_BYTES_MAX if self._cut or self._start else 0) > KEEP_BYTES:
            whole = _whole_characters(whole[MARK_BYTES_MAX - KEEP_BYTES :])
        begins_at = self.end - len(whole)
        mark = cut_mark(begins_at, lossy=self._cut) if self._cut or begins_at else ""
        return mark + whole.decode()


def encoded(text: str) -> bytes:
    """Without what PostgreSQL or protobuf refuse in a text: NUL, and halves of surrogate pairs."""
    if text.isascii() and "\0" not in text:
        return text.encode()
    return text.replace("\0", "\ufffd").encode("utf-8", "replace")


def clean(text: str) -> str:
    """The same, as a text."""
    return text if text.isascii() and "\0" not in text else encoded(text).decode()


def _whole_characters(data: bytes) -> bytes:
    """Without the rest of a character whose beginning was cut off."""
    begin = 0
    while begin < len(data) and data[begin] & 0xC0 == 0x80:
        begin += 1
    return data[begin:]
