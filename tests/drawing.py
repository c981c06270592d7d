"""What trials draw is the same in each `make test`: what fails there is the change. `make soak` draws other things."""

import os
import random

DRAWS = os.environ.get("DRAWN", "") not in {"", "0"}


def seed(otherwise: int) -> int:
    """A random one where DRAWN=1; else the one given."""
    return random.SystemRandom().randrange(1_000_000_000) if DRAWS else otherwise
