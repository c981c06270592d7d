"""How many files and connections this process may have open."""

import resource
from typing import Final

WANTED: Final = 65_536


def raise_open_files() -> int:
    """The limit from now on: WANTED, or as close to that as the system allows. Never lower than it was.

    What starts a process often gives it 1,024, for programs of old. Each caller's connection is one of them.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    if soft != resource.RLIM_INFINITY and soft < highest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
        soft = highest
    return WANTED if soft == resource.RLIM_INFINITY else soft
