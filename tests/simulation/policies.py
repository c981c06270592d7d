"""What a world of faults runs when it tries policies: whatever may become of a tick within a minute, drawn."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from cronring.schema.execution import Outcome, Run
from cronring.schema.instant import format_instant
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy, policy_faults, read_policy
from cronring.schema.schedule import check_schedule
from cronring.virtual.clock import MS
from tests.simulation.courses import Course
from tests.simulation.workload import DURATIONS_MS, LONG_TIMEOUT_MS, TIMEOUT_MS, Workload

SECOND_US: Final = 1_000_000
WORLD_S: Final = 55
CRON: Final = ("* * * * * *", "*/2 * * * * *", "*/3 * * * * *", "1-59/5 * * * * *", "*/10 * * * * *")
INTERVALS: Final = ("every 2s", "every 3s", "every 7s", "every 11s")
SPECIALS: Final[dict[str, tuple[Any, ...]]] = {
    "on_missed": ("run_last", "run_all", "run_all", "skip"),
    "catch_up_window": ("10s", "12s", "20s"),
    "overlap": ("buffer_one", "buffer_all", "cancel_running", "allow", "allow"),
    "max_concurrent": (1, 2, 3),
    "retries": (1, 2, 4),
    "backoff": ("300ms", "1s", "2s"),
    "retry_on": (["ConnectionError"], ["lost", "timed_out"], ["failed"]),
    "pause_after_failures": (1, 2, 3, 5),
    # Worlds begin within the first minute after eight, on a Friday.
    "window": ("08:00-08:01", "08:01-09:00", "08:00-18:00", "Mon-Thu 08:00-18:00", "20:00-06:00"),
    "jitter": ("10%", "45%", "300ms", "1s", "off"),
}
CHANCES: Final = {
    "overlap": 0.5, "retries": 0.5, "backoff": 0.95, "window": 0.12, "pause_after_failures": 0.15, "jitter": 0.25,
    "max_concurrent": 0.8,
}  # fmt: skip
USUAL_CHANCE: Final = 0.3
PLAIN_CHANCE: Final = 0.2
MOVES: Final = "_moves"  # verbs that move their jobs' next run
BAD: Final = "_bad"  # verbs that fail more often than not
ERRORS: Final = ("ValueError", "ConnectionError", "requests.exceptions.Timeout")
API_VERBS: Final = (
    Verb("quick_api", timeout_ms=TIMEOUT_MS),
    Verb("slow_api_bad", timeout_ms=TIMEOUT_MS),
    Verb("long_api", timeout_ms=LONG_TIMEOUT_MS, on_disconnect="finish"),
    Verb("brisk_hands", schedule="manual", timeout_ms=TIMEOUT_MS),
)  # they stay in every version, but that every other one lacks some of them


def without(module: Module, verbs: Sequence[Verb], version: int) -> Module:
    """The module in versions of odd numbers; those of even ones lack verbs. (Not drawn: seeds stay what they are.)"""
    if version % 2:
        return module
    gone = {verb.name for verb in verbs}
    return replace(module, verbs=tuple(verb for verb in module.verbs if verb.name not in gone))


class Timing(NamedTuple):
    schedule: str
    policy: Policy


class PolicyWorkload(Workload):
    """Draws verbs with policies among plain ones. `start_us`: PostgreSQL's time when the world begins."""

    def __init__(self, rng: random.Random, start_us: int) -> None:
        self.versions = 0
        self._start_us = start_us
        self._verbs = [*API_VERBS, *(self._drawn(number, rng) for number in range(rng.randint(4, 9)))]

    def module(self) -> tuple[Module, str]:
        """Every other version lacks verbs that jobs are made for by hand: these are orphaned meanwhile."""
        whole, digest = super().module()
        return without(whole, API_VERBS[:2] if self.versions % 4 else API_VERBS[1:], self.versions), digest

    def change(self, rng: random.Random, now_us: int = 0) -> None:  # noqa: ARG002  a world of a year draws by it
        """A verb less, one more, and two that are scheduled otherwise, or have another policy only."""
        del self._verbs[rng.randrange(len(API_VERBS), len(self._verbs))]
        self._verbs.append(self._drawn(100 + self.versions, rng))
        for _ in range(2):
            at = rng.randrange(len(API_VERBS), len(self._verbs))
            verb = self._verbs[at]
            timing = self.timing(rng)
            if rng.random() < 0.5:
                timing = Timing(verb.schedule, self._policy(verb.schedule, rng))
            self._verbs[at] = _verb(verb.name, timing, verb.timeout_ms or 0, verb.on_disconnect)

    def course(self, run: Run, rng: random.Random) -> Course:
        low, high = DURATIONS_MS[run.verb.split("_", maxsplit=1)[0]]
        duration_ns = int(rng.uniform(low, high) * MS)
        if rng.random() < (0.7 if run.verb.endswith(BAD) else 0.1):
            return Course(duration_ns, Outcome.FAILED, rng.choice(ERRORS))
        moves = run.verb.endswith(MOVES) and rng.random() < 0.4
        return Course(duration_ns, Outcome.COMPLETED, next_in_ms=rng.randint(1, 8_000) if moves else 0)

    def timing(self, rng: random.Random) -> Timing:
        """What doesn't contradict itself."""
        kind = rng.random()
        if kind < 0.6:
            schedule = rng.choice(CRON)
        elif kind < 0.95:
            schedule = rng.choice(INTERVALS)
        else:
            at_us = self._start_us + rng.randint(3, WORLD_S) * SECOND_US
            schedule = "at " + format_instant(at_us // SECOND_US * SECOND_US)
        schedule = check_schedule(schedule)
        return Timing(schedule, self._policy(schedule, rng))

    @staticmethod
    def _policy(schedule: str, rng: random.Random) -> Policy:
        if rng.random() < PLAIN_CHANCE:
            return Policy()
        while True:
            raw = {
                name: rng.choice(choices)
                for name, choices in SPECIALS.items()
                if rng.random() < CHANCES.get(name, USUAL_CHANCE)
            }
            if schedule.startswith("every") and "%" in raw.get("jitter", ""):
                raw["jitter"] = f"±{raw['jitter']}"  # the others delay, as those of patterns do
            policy = read_policy(raw)
            idle = not policy.retries and (policy.backoff or policy.retry_on)  # it decides nothing: draw another
            if not idle and not policy_faults(policy, schedule):
                return policy

    def _drawn(self, number: int, rng: random.Random) -> Verb:
        kind = rng.choice(tuple(DURATIONS_MS))
        timing = self.timing(rng)
        end = MOVES if timing.schedule.startswith("every") and rng.random() < 0.4 else ""
        end = BAD if not end and rng.random() < 0.4 else end
        timeout_ms = LONG_TIMEOUT_MS if kind == "long" else TIMEOUT_MS
        return _verb(f"{kind}_{number}{end}", timing, timeout_ms, "finish" if rng.random() < 0.2 else "stop")


def _verb(name: str, timing: Timing, timeout_ms: int, on_disconnect: str) -> Verb:
    return Verb(
        name, schedule=timing.schedule, timeout_ms=timeout_ms, on_disconnect=on_disconnect, policy=timing.policy
    )
