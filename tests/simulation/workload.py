"""The modules that simulated clusters run, and how long their verbs take."""

import hashlib
import random
from typing import Final

from cronring.schema.execution import Outcome, Run
from cronring.schema.module import Module, Verb
from cronring.virtual.clock import MS
from tests.simulation.courses import Course

SCHEDULES: Final = ("* * * * * *", "*/2 * * * * *", "*/3 * * * * *", "1-59/5 * * * * *", "every 2s", "every 7s")
# Verb names begin with one of these. Shares of durations: shorter than, in ms.
DURATIONS_MS: Final = {
    "quick": (5, 40),
    "brisk": (50, 700),
    "slow": (700, 2_600),
    "wild": (1, 6_000),  # now and then longer than the timeout
    "long": (4_000, 20_000),  # longer than it takes to declare a runner lost
}
TIMEOUT_MS: Final = 4_000
LONG_TIMEOUT_MS: Final = 30_000


class Workload:
    """Draws a module, and a next version of it."""

    def __init__(self, rng: random.Random) -> None:
        self.versions = 0
        self._verbs = [self._verb(number, rng) for number in range(rng.randint(3, 9))]

    def module(self) -> tuple[Module, str]:
        """The module as it is now, and its digest."""
        self.versions += 1
        return Module("sim", tuple(self._verbs)), hashlib.sha256(b"%d" % self.versions).hexdigest()

    def change(self, rng: random.Random, now_us: int = 0) -> None:  # noqa: ARG002  a world of a year draws by it
        """The next version has one verb less, one more, and one with another schedule."""
        del self._verbs[rng.randrange(len(self._verbs))]
        self._verbs.append(self._verb(100 + self.versions, rng))
        at = rng.randrange(len(self._verbs))
        verb = self._verbs[at]
        self._verbs[at] = Verb(
            verb.name, schedule=rng.choice(SCHEDULES), timeout_ms=verb.timeout_ms, on_disconnect=verb.on_disconnect
        )

    def course(self, run: Run, rng: random.Random) -> Course:
        """What a run is going to do."""
        low, high = DURATIONS_MS[run.verb.split("_", maxsplit=1)[0]]
        duration_ns = int(rng.uniform(low, high) * MS)
        if rng.random() < 0.9:
            return Course(duration_ns, Outcome.COMPLETED)
        return Course(duration_ns, Outcome.FAILED, "ValueError")

    @staticmethod
    def _verb(number: int, rng: random.Random) -> Verb:
        kind = rng.choice(tuple(DURATIONS_MS))
        finish = "finish" if rng.random() < 0.2 else "stop"
        timeout_ms = LONG_TIMEOUT_MS if kind == "long" else TIMEOUT_MS
        return Verb(f"{kind}_{number}", schedule=rng.choice(SCHEDULES), timeout_ms=timeout_ms, on_disconnect=finish)
