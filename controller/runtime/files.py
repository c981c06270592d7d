"""How many files and connections this process may have open."""

import resource
from typing import Final

WANTED: Final = 65_536


def raise_open_files() -> int:
    """Raise the limit to WANTED, or as close to it as the system allows. Returns the limit; it never falls.

    The default is often 1,024, for the sake of old programs. Each caller's connection takes one.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    if soft != resource.RLIM_INFINITY and soft < highest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
        soft = highest
    return WANTED if soft == resource.RLIM_INFINITY else soft
