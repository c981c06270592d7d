"""What trials draw is the same in each `make test`: what fails there is the change. `make soak` draws other things."""

import os
import random
from typing import Final

DRAWS = os.environ.get("DRAWN", "") not in {"", "0"}

# Of the examples of a property, `make test` tries one in so many. They are the same each time, so more of them find
# only what a change breaks rarely, and cost each run a minute of CPU. `make soak` draws all, and others each time.
ONE_IN: Final = 3
USUAL: Final = 100  # of a property that states no number


def examples(soaked: int = USUAL) -> int:
    """How many a property is tried with, of those that it is soaked with."""
    return soaked if DRAWS else soaked // ONE_IN


def seed(otherwise: int) -> int:
    """A random one where DRAWN=1; else the one given."""
    return random.SystemRandom().randrange(1_000_000_000) if DRAWS else otherwise
