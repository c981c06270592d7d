"""What a job's schedule and policy say about its ticks: which ones run and when, which are skipped and why.

A tick never vanishes. In any history, every tick either runs, or is in exactly one skipped range of the books. All
instants are microseconds since 1970. A tick is *due* once its run_at has come: the tick itself, moved by the jitter.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from cronring.schema.duration import parse_duration
from cronring.schema.execution import Skipped, SkipReason
from cronring.schema.instant import parse_instant
from cronring.schema.jitter import JitterRule, delay, parse_jitter, shift
from cronring.schema.policy import parse_policy
from cronring.schema.policy_model import Policy
from cronring.schema.policy_read import MISSED_AFTER_MS
from cronring.schema.schedule import BoundedSchedule, IntervalSchedule, Schedule, stored_schedule
from cronring.schema.spacing import earliest_start, least_distance
from cronring.schema.spread import most_us
from cronring.schema.walk import SkipCollector, first_open, last_open, stretches
from cronring.schema.window import Window, parse_window

__all__ = ["MISSED_AFTER", "After", "Due", "PlannedTick", "Timetable", "timetable"]

MISSED_AFTER: Final = MISSED_AFTER_MS * 1_000
"""A tick that is claimed within this is not late to a policy: claims, a failover and a rolling restart fit into it."""
_RUN_ALL_WINDOW: Final = 86_400_000_000  # of run_all and buffer_all that state none
_TABLES_CACHED: Final = 20_000
_ANSWERS_KEPT: Final = 4  # a run and its end ask for the tick after, and for its distance from the one after that


class PlannedTick(NamedTuple):
    """A tick, and when it is attempted."""

    tick: int
    run_at: int


class Due(NamedTuple):
    """What to do when a planned tick has come due: `run`, or, if that is None, wait for `next`.

    `skipped` are the ticks before `run` (or before `next`), from the planned one on. `caught_up`: `run` is late, or
    ticks before it were missed.
    """

    run: PlannedTick | None
    skipped: tuple[Skipped, ...]
    next: PlannedTick | None
    caught_up: bool


class After(NamedTuple):
    """What comes next (None: nothing any more), and the ticks before it that don't run."""

    next: PlannedTick | None
    skipped: tuple[Skipped, ...]


class Timetable:
    """One for all jobs of the same texts; what differs between them is their keys. Made by `timetable`."""

    def __init__(self, schedule: Schedule, policy: Policy) -> None:
        inner = schedule.inner if isinstance(schedule, BoundedSchedule) else schedule
        self.schedule = schedule
        self.policy = policy
        self.interval_us = inner.interval if isinstance(inner, IntervalSchedule) else None
        self._window: Window | None = parse_window(policy.window, policy.timezone) if policy.window else None
        self._jitter = _jitter_rule(schedule.text, policy)
        # How long before its tick an interval's run may start: not at all, unless that is asked for.
        both_ways = self.interval_us is not None and self._jitter is not None and self._jitter.both_ways
        self._early = self._jitter.most_us(self.interval_us) if both_ways and self._jitter is not None else 0
        self._not_before = parse_instant(policy.start_at) if policy.start_at and self._early else None
        self._distance = least_distance(schedule, policy)
        # Whether every tick is to run, the oldest first; else the latest one runs instead of all.
        self._runs_all = policy.on_missed == "run_all" or policy.overlap == "buffer_all"
        self._catch_up = parse_duration(policy.catch_up_window) * 1_000 if policy.catch_up_window else None
        # Whether a tick runs however late it is, if it is the latest.
        self._runs_late = policy.on_missed != "skip" and self._catch_up is None
        # Jobs of one schedule ask for the same ticks at the same time, thousands of them: the last answers are kept.
        self._answers: dict[int, int | None] = {}

    # What the schedule and the jitter say

    @property
    def early_us(self) -> int:
        """How long before its tick a run may begin: only an interval that asks for `±` lets it."""
        return self._early

    @property
    def least_distance_us(self) -> int:
        """Between two starts (spacing.py); 0 where nothing is asked for."""
        return self._distance

    @property
    def loses_overlapped(self) -> bool:
        """Whether ticks that come due while a run goes on can no longer run after it."""
        return self.policy.overlap in {"", "skip"} and not self._runs_all

    def following(self, key: str, after: int) -> PlannedTick | None:
        """The first tick after `after`, in the window or not, with its jitter (an interval's run_at may be earlier)."""
        return self._planned(key, self._next_after(after))

    def following_open(self, key: str, after: int) -> PlannedTick | None:
        """The first tick after `after` that lies in the window, with its jitter."""
        return self._planned(key, first_open(self.schedule, self._window, after))

    def upcoming(self, key: str, planned: PlannedTick) -> PlannedTick | None:
        """The first of `planned` and those after it that the window lets run."""
        return planned if self._lets_run(planned.tick) else self.following_open(key, planned.tick)

    def next_within(self, after: int, until: int) -> int | None:
        """The first tick in (after, until] that lies in the window."""
        return first_open(self.schedule, self._window, after, until)

    def count_within(self, after: int, until: int) -> int:
        """How many ticks in (after, until] lie in the window."""
        found = stretches(self.schedule, self._window, after, until)
        return sum(stretch.ticks for stretch in found if stretch.is_open)

    def owed(self, tick: int, until: int, reason: SkipReason) -> tuple[Skipped, ...]:
        """`tick` and those after it up to `until`, as skipped. Jitter doesn't count, as the books close at `until`."""
        skips = SkipCollector(self.schedule, None)
        skips.add_tick(tick, reason)
        skips.add_between(tick, until, reason)
        return skips.skipped

    def runner_patience(self, grace: int) -> int | None:
        """How long a due tick waits for a runner to come before it is skipped; None: until one comes.

        `grace` is the cluster's, in microseconds. A job that says what becomes of missed ticks means this as well.
        """
        if self.policy.on_missed == "skip":
            return grace
        if self._catch_up is not None:
            return max(grace, self._catch_up)
        return None if self.policy.on_missed else grace

    # What the controller decides by

    def due(self, key: str, planned: PlannedTick, now: int) -> Due:
        """What to run, and what to skip, when `planned` is due at `now`. For its tick, its own run_at counts."""
        is_late = now - planned.run_at > MISSED_AFTER
        if self._is_latest(planned.tick, now) and (not is_late or self._runs_late) and self._lets_run(planned.tick):
            return Due(planned, (), None, is_late)
        latest = max(planned.tick, self._latest(key, now) or 0)
        cutoff = self._cutoff(now)
        if self._runs_all:
            assert cutoff is not None, "run_all has a bound, its own or the usual one"
            run = self._oldest_due(key, planned, latest, cutoff)
        else:
            last = last_open(self.schedule, self._window, planned.tick, latest)
            run = self._latest_due(planned, self._planned(key, last), cutoff)
        skips = self._passed_over(key, planned, latest if run is None else run.tick - 1, run, cutoff)
        skipped = skips.skipped
        if run is None:
            return Due(None, skipped, self.following(key, latest), False)
        others = any(part.reason is not SkipReason.OUTSIDE_WINDOW for part in skipped)
        return Due(run, skipped, None, others or now - run.run_at > MISSED_AFTER)

    def passed(self, key: str, planned: PlannedTick, now: int, reason: SkipReason) -> After:
        """`planned` and all that have come due since don't run, for this reason, which is that of all of them."""
        latest = max(planned.tick, self._latest(key, now) or 0)
        skips = SkipCollector(self.schedule, None)
        skips.add_tick(planned.tick, reason)
        skips.add_between(planned.tick, latest, reason)
        return After(self.following(key, latest), skips.skipped)

    def after_claim(self, key: str, ran: PlannedTick) -> PlannedTick | None:
        """With overlap=allow: what comes after `ran`, as soon as that is claimed."""
        return self.following(key, ran.tick)

    def after_run(self, key: str, ran: PlannedTick, claimed_at: int, ended_at: int) -> After:
        """What comes after a run, and the ticks that came due until its end and don't run."""
        is_latest = self.policy.overlap == "allow" or self._is_latest(ran.tick, ended_at)
        planned = self.following(key, ran.tick) if is_latest else None
        earliest = earliest_start(ran.tick, ran.run_at, claimed_at, self._distance) if self._distance else 0
        if is_latest and (planned is None or planned.run_at >= earliest):
            return After(planned, ())
        skips = SkipCollector(self.schedule, self._window)
        if not is_latest:
            latest = max(ran.tick, self._latest(key, ended_at) or 0)
            owes = self._runs_all and (self._latest(key, claimed_at) or 0) > ran.tick
            planned = self._after_overlap(key, skips, ran.tick, latest, ended_at, owes=owes)
        planned = self._spaced(key, skips, planned, earliest)
        return After(planned, skips.skipped)

    def resumed(self, key: str, planned: PlannedTick | None, ran: PlannedTick, claimed_at: int) -> After:
        """What `planned` becomes when a pause ends. It keeps the minimum interval from the latest run."""
        skips = SkipCollector(self.schedule, self._window)
        earliest = earliest_start(ran.tick, ran.run_at, claimed_at, self._distance) if self._distance else 0
        return After(self._spaced(key, skips, planned, earliest), skips.skipped)

    def overlapped(self, key: str, planned: PlannedTick, ended_at: int) -> After:
        """What comes after a run by hand, say, which was no tick of the schedule. `planned` was the next tick then."""
        is_tick = self.schedule.next_after(planned.tick - 1) == planned.tick
        if planned.run_at > ended_at or self.policy.overlap == "allow" or not is_tick:
            return After(planned, ())
        skips = SkipCollector(self.schedule, self._window)
        latest = max(planned.tick, self._latest(key, ended_at) or 0)
        following = self._after_overlap(key, skips, planned.tick - 1, latest, ended_at, owes=False)
        return After(following, skips.skipped)

    # What these are made of

    def _next_after(self, instant: int) -> int | None:
        try:
            return self._answers[instant]
        except KeyError:
            if len(self._answers) >= _ANSWERS_KEPT:
                self._answers.clear()
            answer = self._answers[instant] = self.schedule.next_after(instant)
            return answer

    def _planned(self, key: str, tick: int | None) -> PlannedTick | None:
        return None if tick is None else PlannedTick(tick, self._run_at(key, tick))

    def _run_at(self, key: str, tick: int) -> int:
        if self._jitter is None:
            return tick
        if self._early and self.interval_us is not None:
            run_at = tick + shift(key, tick, self._early, self.interval_us)
            return run_at if self._not_before is None else max(run_at, self._not_before)
        following = self._next_after(tick) if self.interval_us is None else tick + self.interval_us
        gap = None if following is None else following - tick
        return tick + delay(key, tick, self._jitter.most_us(gap), gap)

    def _is_latest(self, tick: int, now: int) -> bool:
        """Whether it is plain that no tick after this one is due. False: perhaps one is."""
        following = self._next_after(tick)
        return following is None or following - self._early > now

    def _latest(self, key: str, now: int) -> int | None:
        """The latest tick that is due. Jitter keeps their order, so it is one of the three around `now`."""
        last = self.schedule.last_at_or_before(now)
        if self._jitter is None:
            return last
        if self._early:
            following = self.schedule.next_after(now)
            if following is not None and self._run_at(key, following) <= now:
                return following
        if last is not None and self._run_at(key, last) > now:
            return self.schedule.last_at_or_before(last - 1)
        return last

    def _lets_run(self, tick: int) -> bool:
        return self._window is None or self._window.contains(tick)

    def _cutoff(self, now: int) -> int | None:
        """What was to run before this instant is too late to run; None: nothing is."""
        if self.policy.on_missed == "skip":
            return now - MISSED_AFTER
        if self._catch_up is not None:
            return now - self._catch_up
        return now - _RUN_ALL_WINDOW if self._runs_all else None

    def _latest_due(self, planned: PlannedTick, latest: PlannedTick | None, cutoff: int | None) -> PlannedTick | None:
        """The latest of `planned` and those after it in the window, unless that is too late."""
        run = latest
        if run is None and self._lets_run(planned.tick):
            run = planned
        return None if run is None or (cutoff is not None and run.run_at < cutoff) else run

    def _oldest_due(self, key: str, planned: PlannedTick, latest: int, cutoff: int) -> PlannedTick | None:
        """The first of `planned` and those after it, in the window, that isn't too late."""
        if planned.run_at >= cutoff and self._lets_run(planned.tick):
            return planned
        tick = self._first_in_time(key, planned.tick, latest, cutoff)
        if tick is None and self._runs_late and self._lets_run(planned.tick):
            return planned
        return self._planned(key, tick)

    def _first_in_time(self, key: str, after: int, latest: int, cutoff: int) -> int | None:
        """The first tick of (after, latest] in the window that isn't too late.

        If the job states no bound and all are too late, the last one, so that run_all runs no less than run_last.
        """
        before = max(after, self._latest(key, cutoff - 1) or 0)
        tick = first_open(self.schedule, self._window, before, latest)
        if tick is None and self._runs_late:
            tick = last_open(self.schedule, self._window, after, latest)
        return tick

    def _passed_over(
        self, key: str, planned: PlannedTick, until: int, run: PlannedTick | None, cutoff: int | None
    ) -> SkipCollector:
        """`planned` and the ticks after it up to `until`, of which none runs: `run` does, or nothing."""
        skips = SkipCollector(self.schedule, self._window)
        if until < planned.tick:
            return skips
        if run is None or self._runs_all:
            skips.add_tick(planned.tick, SkipReason.MISSED_POLICY)
            skips.add_between(planned.tick, until, SkipReason.MISSED_POLICY)
        elif self.policy.on_missed != "skip" or cutoff is None:
            skips.add_tick(planned.tick, SkipReason.SUPERSEDED)
            skips.add_between(planned.tick, until, SkipReason.SUPERSEDED)
        else:
            skips.add_tick(planned.tick, SkipReason.MISSED_POLICY if planned.run_at < cutoff else SkipReason.SUPERSEDED)
            too_late = max(planned.tick, min(self._latest(key, cutoff - 1) or 0, until))
            skips.add_between(planned.tick, too_late, SkipReason.MISSED_POLICY)
            skips.add_between(too_late, until, SkipReason.SUPERSEDED)
        return skips

    def _after_overlap(
        self, key: str, skips: SkipCollector, after: int, latest: int, ended_at: int, *, owes: bool
    ) -> PlannedTick | None:
        """What comes after a run during which the ticks of (after, latest] came due.

        `owes`: some were due before it began, and all missed ticks are to run. So are those that join them meanwhile.
        """
        tick, reason = None, SkipReason.OVERLAP
        if owes or self.policy.overlap == "buffer_all":
            bound = _RUN_ALL_WINDOW if self._catch_up is None else self._catch_up
            tick, reason = self._first_in_time(key, after, latest, ended_at - bound), SkipReason.MISSED_POLICY
        elif self.policy.overlap in {"buffer_one", "cancel_running"}:
            tick = last_open(self.schedule, self._window, after, latest)
        skips.add_between(after, latest if tick is None else tick - 1, reason)
        if tick is None:
            return self.following(key, latest)
        return PlannedTick(tick, self._run_at(key, tick) if owes else ended_at)

    def _spaced(self, key: str, skips: SkipCollector, planned: PlannedTick | None, earliest: int) -> PlannedTick | None:
        """The slot, no earlier than `earliest`: delayed, unless the tick after it would follow too soon then."""
        while planned is not None and planned.run_at < earliest:
            if self._lets_run(planned.tick):
                following = self.following_open(key, planned.tick)
                if following is None or following.run_at - earliest >= self._distance:
                    return PlannedTick(planned.tick, earliest)
            skips.add_tick(planned.tick, SkipReason.SUPERSEDED)
            planned = self.following(key, planned.tick)
        return planned


def _jitter_rule(schedule: str, policy: Policy) -> JitterRule | None:
    """None: there is none. The cluster's default stands in a job's policy from its deployment on (redeploy)."""
    rule = parse_jitter(policy.jitter) if policy.jitter else JitterRule()
    if rule.is_auto:
        rule = JitterRule(fixed_ms=most_us(schedule, rule) // 1_000)
    return None if rule == JitterRule() else rule


@lru_cache(maxsize=_TABLES_CACHED)
def timetable(schedule: str, anchor: int, policy: str) -> Timetable:
    """The timetable of a job: the canonical texts of its schedule and policy, and where its intervals count from.

    Raises nothing: a stored text may be of a newer release, and then has no ticks (see cronring.schema.newer). Cached,
    so that this may be called at every tick.
    """
    parsed = parse_policy(policy)
    return Timetable(stored_schedule(schedule, anchor, parsed), parsed)
