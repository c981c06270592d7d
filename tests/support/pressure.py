"""How much tests wait for cores that others use: by the kernel's own measure (psi(7), /proc/pressure/cpu)."""

import re
import time
from pathlib import Path
from typing import Final

CPU: Final = Path("/proc/pressure/cpu")


class Pressure:
    """Of the time since it was made."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._waited_us = _waited_us()

    def share(self) -> float:
        """0 to 1: during this part of the time at least one process had to wait for a core. 0 where nobody knows."""
        waited_s = (_waited_us() - self._waited_us) / 1_000_000
        return min(1.0, waited_s / max(time.monotonic() - self._began_s, 0.001))


def _waited_us() -> int:
    try:
        found = re.search(r"^some .* total=(\d+)$", CPU.read_text(), re.MULTILINE)
    except OSError:
        return 0  # a kernel that doesn't measure it
    return 0 if found is None else int(found[1])
