"""What a year's cluster runs: schedules and policies of every kind, drawn from the seed, and what their runs do."""

import hashlib
import random
from typing import Any, Final, NamedTuple

from cronring.schema.execution import Outcome, Run
from cronring.schema.instant import format_instant
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy, policy_faults, read_policy
from cronring.schema.schedule import check_schedule
from cronring.virtual.clock import SECOND
from tests.oracle.walk import clock_of
from tests.simulation.courses import Course
from tests.simulation.policies import without
from tests.simulation.workload import Workload

DAY_US: Final = 86_400_000_000
ZONES: Final = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
OTHER_ZONES: Final = ("", "Europe/Dublin", "America/St_Johns", "Africa/Casablanca", "Pacific/Chatham", "Asia/Kolkata")

# Much of what clocks skip or show twice lies between midnight and four.
SPARSE: Final = (
    "0 9 * * 1-5", "30 2 * * *", "30 1 * * *", "15 2 * * 0", "0 3 * * 0", "59 1,2,3 * * 0", "0 0 * * *",
    "0,30 1-3 * * *", "45 1 * * 0,6", "0 6 1 * *", "0 0 31 * *", "30 2 29 2 *", "0 12 29 2 *", "0 0 13 * 5",
    "15 30 2 * * *", "30 59 1 * * 0", "0 30 2 * * 0 2027-2028",
    "15 30 1 1,15 * * *", "30 2 * * 0 2027-2028", "0 15 2 * * * 2028",
    "Mon",
    "12h", "0 */12 * * *", "0 8-18/5 * * 1-5", "*/30 2 * * 0", "5 1/8 * * *",
)  # fmt: skip
OFTEN: Final = ("0 * * * *", "*/30 * * * *", "20 */2 * * *", "0 0-23 * * *", "15 30 * * * *", "0 15,45 * * * 0,6 *")
DENSE: Final = ("*/5 * * * *", "0 */7 1-3 * * *", "*/20 * * * * *", "30 * * * *", "10m", "0-59/9 0-4 * * *")
INTERVALS: Final = ("every 6h", "every 12h", "every 1d", "every 7h", "every 36h", "every 50h", "every 7d")
QUICK_INTERVALS: Final = ("every 1h", "every 90m", "every 30m", "every 17m")
WINDOWS: Final = (
    "Mon-Fri 08:00-18:00", "22:00-06:00", "Sat-Sun 00:00-12:00", "01:30-02:30", "Mon-Fri 07:00-12:00, Sun 00:00-04:00",
    "Mon-Fri 08:00-18:00 America/New_York",
)  # fmt: skip
JITTERS: Final = ("", "off", "10%", "30s", "5m", "1h:2m 1d:20m", "45%")
SPECIALS: Final[dict[str, tuple[Any, ...]]] = {
    "on_missed": ("run_last", "run_all", "skip"),
    "catch_up_window": ("30m", "6h", "2d"),
    "overlap": ("buffer_one", "buffer_all", "cancel_running", "allow", "allow"),
    "max_concurrent": (1, 2, 3),
    "retries": (1, 2, 4),
    "backoff": ("30s", "10m", "1h"),
    "retry_on": (["ConnectionError"], ["lost", "timed_out"], ["failed"]),
    "pause_after_failures": (2, 3, 5),
    "dst_gap": ("run_after", "skip"),
    "dst_overlap": ("first", "both", "second"),
    "window": WINDOWS,
}
CHANCES: Final = {"retries": 0.4, "pause_after_failures": 0.2, "window": 0.2, "retry_on": 0.3, "backoff": 0.7}
# Of runs, in seconds. A verb's name begins with its kind.
DURATIONS: Final = {"quick": (1, 60), "brisk": (60, 1_500), "slow": (600, 12_000), "long": (10_000, 120_000)}
BOUNDS: Final = ("start_at", "end_at")
ERRORS: Final = ("ValueError", "ConnectionError", "requests.exceptions.Timeout")


class Timing(NamedTuple):
    """A job's schedule and policy, as its author would write them."""

    schedule: str
    policy: Policy


def moves_of(zone: str, start_us: int, end_us: int) -> list[int]:
    """When (in us, within an hour) a zone's clocks are moved."""
    clock = clock_of(zone or "UTC")
    hours = range(start_us // 1_000_000, end_us // 1_000_000, 3_600)
    shown = [clock(second) for second in hours]
    return [
        second * 1_000_000
        for second, before, after in zip(hours, shown, shown[1:], strict=False)
        if (after - before).total_seconds() != 3_600
    ]


class YearWorkload(Workload):
    """Draws verbs, and what changes in the versions that follow."""

    def __init__(self, rng: random.Random, start_us: int, end_us: int) -> None:
        self.versions = 0
        self.names = 0
        self.start_us = start_us
        self.other_zone = rng.choice(OTHER_ZONES)
        self.end_us = end_us
        moves = [move for zone in ZONES for move in moves_of(zone, start_us, end_us)]
        self.moves = sorted(moves)
        self._verbs = [Verb("api"), Verb("hands", schedule="manual", timeout_ms=3_600_000)]
        self._verbs += [self._drawn(0, rng) for _ in range(rng.randint(10, 18))]

    def module(self) -> tuple[Module, str]:
        self.versions += 1
        module = without(Module("year", tuple(self._verbs)), self._verbs[:1], self.versions)
        return module, hashlib.sha256(b"%d" % self.versions).hexdigest()

    def change(self, rng: random.Random, now_us: int = 0) -> None:
        """A verb less, one more, and some that are scheduled otherwise, or have another policy."""
        if rng.random() < 0.5:
            del self._verbs[rng.randrange(2, len(self._verbs))]
        if rng.random() < 0.5:
            self._verbs.append(self._drawn(now_us, rng))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(2, len(self._verbs))
            verb = self._verbs[at]
            timing = self.timing(now_us, rng)
            if rng.random() < 0.4:  # another policy only
                bounds = {name: value for name in BOUNDS if (value := str(getattr(verb.policy, name)))}
                timing = Timing(verb.schedule, self._policy(verb.schedule, verb.policy.timezone, bounds, rng))
            self._verbs[at] = Verb(
                verb.name, schedule=timing.schedule, timeout_ms=verb.timeout_ms, policy=timing.policy
            )

    def course(self, run: Run, rng: random.Random) -> Course:
        """Now and then something takes much longer. A verb of activity moves its job's next run."""
        kind = run.verb.split("_", maxsplit=1)[0]
        low, high = DURATIONS.get(kind, DURATIONS["quick"])
        duration_ns = int(rng.uniform(low, high if rng.random() < 0.9 else high * 3) * SECOND)
        fails = 0.5 if run.verb.endswith("_bad") else 0.06
        if rng.random() < fails:
            return Course(duration_ns, Outcome.FAILED, rng.choice(ERRORS))
        moves = run.verb.endswith("_moves") and rng.random() < 0.3
        return Course(duration_ns, Outcome.COMPLETED, next_in_ms=rng.randint(60_000, 90_000_000) if moves else 0)

    def timing(self, now_us: int, rng: random.Random) -> Timing:
        """What doesn't contradict itself."""
        zone = rng.choice(ZONES) if rng.random() < 0.85 else self.other_zone
        kind = rng.choice(("sparse",) * 6 + ("often", "dense", "interval", "interval", "quick", "once"))
        bounds: dict[str, str] = {}
        match kind:
            case "sparse":
                schedule = rng.choice(SPARSE)
                if rng.random() < 0.2:
                    bounds = self._bounds(now_us, rng, rng.randint(5, 200) * DAY_US)
            case "often" | "quick":
                schedule = rng.choice(OFTEN if kind == "often" else QUICK_INTERVALS)
                bounds = self._bounds(now_us, rng, rng.randint(4, 15) * DAY_US)
            case "dense":
                schedule = rng.choice(DENSE)
                hours = {"*/20 * * * * *": (2, 6), "*/5 * * * *": (5, 90), "10m": (5, 90)}.get(schedule, (30, 200))
                bounds = self._bounds(now_us, rng, rng.randint(*hours) * DAY_US // 24)
            case "interval":
                schedule = rng.choice(INTERVALS)
            case _:
                schedule = "at " + format_instant(
                    rng.randint(now_us or self.start_us, self.end_us) // 1_000_000 * 1_000_000
                )
        return Timing(check_schedule(schedule), self._policy(schedule, zone, bounds, rng))

    def _bounds(self, now_us: int, rng: random.Random, length_us: int) -> dict[str, str]:
        """Mostly around a change of the clocks."""
        moves = [move for move in self.moves if move > now_us]
        middle = (
            rng.choice(moves) if moves and rng.random() < 0.7 else rng.randint(now_us or self.start_us, self.end_us)
        )
        start_us = (middle - int(length_us * rng.random())) // 1_000_000 * 1_000_000
        return {"start_at": format_instant(start_us), "end_at": format_instant(start_us + length_us)}

    def _policy(self, schedule: str, zone: str, bounds: dict[str, str], rng: random.Random) -> Policy:
        for attempt in range(400):
            if attempt == 200 and schedule in SPARSE:
                bounds = {}  # there is no tick in them, it seems
            jitter = rng.choice(JITTERS)
            if schedule.startswith("every") and "%" in jitter:
                jitter = f"±{jitter}"  # the others delay, as those of patterns do
            raw: dict[str, Any] = {"timezone": zone, "jitter": jitter, **bounds}
            for name, choices in SPECIALS.items():
                if rng.random() < CHANCES.get(name, 0.3):
                    raw[name] = rng.choice(choices)
            policy = read_policy(raw)
            if not policy_faults(policy, check_schedule(schedule)):
                return policy
        raise AssertionError(f"no policy fits {schedule} {bounds}")

    def _drawn(self, now_us: int, rng: random.Random) -> Verb:
        self.names += 1
        kind = rng.choice(("quick", "quick", "brisk", "slow", "long"))
        timing = self.timing(now_us, rng)
        end = "_moves" if timing.schedule.startswith("every") and rng.random() < 0.4 else ""
        end = "_bad" if not end and rng.random() < 0.3 else end
        timeout_ms = rng.choice((300_000, 3_600_000, 40_000_000, 300_000_000))
        return Verb(f"{kind}_{self.names}{end}", schedule=timing.schedule, timeout_ms=timeout_ms, policy=timing.policy)
