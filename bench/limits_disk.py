"""What it costs to have a little written for good, as each commit does: fdatasync of a page in a file that exists."""

import os
import time
from pathlib import Path
from typing import Final

PAGE: Final = b"\xa5" * 8_192  # PostgreSQL writes its log in pages
FILE_BYTES: Final = 16 << 20  # the size of a segment of it


def fdatasync_us(folder: Path, times: int) -> list[float]:
    """Each of so many, one page after the other, in microseconds. The file is removed."""
    path = folder / "fdatasync"
    with path.open("wb") as file:
        file.write(bytes(FILE_BYTES))
        file.flush()
        os.fsync(file.fileno())
        taken = []
        for number in range(times):
            os.pwrite(file.fileno(), PAGE, number * len(PAGE) % FILE_BYTES)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append((time.perf_counter() - began) * 1e6)
    path.unlink()
    return taken
