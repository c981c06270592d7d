"""The log of starts that every no-op writes: an instant and a job's number, 12 bytes appended by one system call.

    python -m bench.rivals.programs.starts FILE

prints what one such note costs, in microseconds. bench/rivals/programs/starts.mjs is the same for Node.
"""

import os
import struct
import sys
import time

RECORD = struct.Struct("<dI")  # seconds since 1970, number
CALLS = 50_000


class Starts:
    """Appends to a file. Several processes may do so at once: what is appended by one call stays together."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def note(self, number: int) -> None:
        os.write(self._file, RECORD.pack(time.time(), number))


def main() -> None:
    starts = Starts(sys.argv[1])
    begun = time.perf_counter()
    for number in range(CALLS):
        starts.note(number)
    print(round((time.perf_counter() - begun) / CALLS * 1e6, 2))


if __name__ == "__main__":
    main()
