"""Where a controller's randomness comes from."""

import random
import secrets


def seeded_chance() -> random.Random:
    """A generator for the core, from the operating system's entropy."""
    return random.Random(secrets.randbits(64))  # noqa: S311 - guards nothing # nosec B311


def controller_id(name: str) -> str:
    """`name` and 6 random hex digits: new at each start, so that peers don't take a restart for the process before."""
    return f"{name}-{secrets.token_hex(3)}"
