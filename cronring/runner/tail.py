"""The end of what an execution has printed."""

KEEP_BYTES = 64 * 1024
_CUT = "[… earlier output cut …]\n"


class Tail:
    """The last 64 KiB, in bounded memory whatever is written."""

    __slots__ = ("_chunks", "_cut", "_size")

    def __init__(self) -> None:
        self._chunks: list[str] = []
        self._size = 0
        self._cut = False

    def write(self, text: str, cut: bool = False) -> None:
        """Append. `cut`: something before `text` was dropped on the way."""
        self._cut = self._cut or cut
        self._chunks.append(text)
        self._size += len(text)
        # Joined now and then: tiny writes don't pile up, and a character is copied a bounded number of times.
        if self._size > 2 * KEEP_BYTES or len(self._chunks) > 4096:
            self._join()

    def _join(self) -> None:
        whole = "".join(self._chunks)
        if len(whole) > KEEP_BYTES:
            whole = whole[-KEEP_BYTES:]
            self._cut = True
        self._chunks = [whole]
        self._size = len(whole)

    def text(self) -> str:
        """What is kept, at most 64 KiB of UTF-8 with the mark that says so."""
        self._join()
        return clip_start(clean(self._chunks[0]), self._cut)


def clean(text: str) -> str:
    """Without what PostgreSQL or protobuf refuse in a text: NUL, and halves of surrogate pairs."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def clip_start(text: str, cut: bool) -> str:
    data = text.encode()
    if len(data) > KEEP_BYTES:
        cut = True
    if not cut:
        return text
    room = KEEP_BYTES - len(_CUT.encode())
    return _CUT + data[-room:].decode("utf-8", "ignore")
