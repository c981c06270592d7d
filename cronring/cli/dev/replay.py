"""`cronring dev --speed`: days in seconds, through the same engine, with the verbs in real child processes."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from cronring.cli.dev.pace import TimeScale
from cronring.cli.dev.replay_drag import Drag
from cronring.cli.dev.replay_news import Logged, News, ReplayedBooks
from cronring.cli.dev.replay_summary import summary_json, summary_text
from cronring.controller.core.orders.redeploy import deployment_key
from cronring.controller.core.settings import ClusterSettings
from cronring.runner.config import default_sync_children
from cronring.runner.modules import LoadedModule
from cronring.schema.instant import from_us
from cronring.schema.log_line import Level
from cronring.virtual.children import RunsInChildren
from cronring.virtual.engine import Engine
from cronring.virtual.outages import Outage
from cronring.virtual.report import job_reports

DRAW_S: Final = 0.1
PACED_S: Final = 0.02  # how often time is moved on
HELD_S: Final = 0.01  # the same while runs hold it to real time
CHUNK_US: Final = 6 * 3600 * 1_000_000  # of virtual time at once, so that Ctrl-C is heard
LAST_RUNS_S: Final = 5.0  # how long the last runs may still take
FOREVER_US: Final = 4_102_444_800_000_000  # the end of 2099, where schedules end
TOLD: Final = ("warning", "error")


class ReplayView(Protocol):
    """Who shows it: replay_picture.py or replay_lines.py."""

    def tell(self, at: datetime, news: News) -> None: ...
    def draw(self) -> None: ...
    def close(self) -> None: ...


class ViewMaker(Protocol):
    def __call__(self, engine: Engine) -> ReplayView: ...


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """`until_us` None: until Ctrl-C. `speed` None: as fast as it goes. `durations_us`: by verb."""

    modules: tuple[LoadedModule, ...]
    start_us: int
    until_us: int | None
    speed: float | None
    durations_us: Mapping[str, int]
    outages: tuple[Outage, ...]


class Replay:
    """`run` plays; `summary` and `summary_json` tell what came of it."""

    def __init__(self, plan: ReplayPlan, make_view: ViewMaker) -> None:
        self._plan = plan
        self._make_view = make_view
        self._stop = asyncio.Event()
        self._logged: list[tuple[int, News]] = []
        self._engine: Engine | None = None
        self._real_s = 0.0
        self._drag = Drag()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop.set)
        plan = self._plan
        runs = RunsInChildren(default_sync_children(), plan.durations_us, self._log_of_host)
        self._engine = engine = Engine(plan.start_us, ClusterSettings(), runs, self._log)
        view = self._make_view(engine)
        try:
            keyed = [(deployment_key(each.module, each.digest), each) for each in plan.modules]
            await runs.open(keyed)
            self._logged.clear()  # that the cluster stands is no news
            engine.deploy_all([(each.module, each.digest) for each in plan.modules])
            for outage in plan.outages:
                engine.schedule_outage(outage)
            began = time.monotonic()
            await self._play(engine, runs, view)
            self._real_s = time.monotonic() - began
        finally:
            view.close()
            await runs.close()

    async def _play(self, engine: Engine, runs: RunsInChildren, view: ReplayView) -> None:
        until_us = self._plan.until_us or FOREVER_US
        pace, books, drawn, began = (
            TimeScale(self._plan.speed, engine.now_us),
            ReplayedBooks(engine.store),
            0.0,
            time.monotonic(),
        )
        with contextlib.suppress(BrokenPipeError):  # whoever read it has had enough
            while engine.now_us < until_us and not self._stop.is_set():
                runs.arrived.clear()
                reached = engine.run_until(min(pace.allowed_us(), until_us, engine.now_us + CHUNK_US))
                self._tell(view, books)
                if time.monotonic() - drawn >= DRAW_S:
                    view.draw()
                    drawn = time.monotonic()
                if reached:
                    await asyncio.sleep(0 if self._plan.speed is None else PACED_S)
                else:
                    pace.hold(engine.now_us)
                    await self._held(engine, runs, began)
            await self._finish(engine, runs)
            self._tell(view, books)
            view.draw()

    async def _finish(self, engine: Engine, runs: RunsInChildren) -> None:
        """Those that run as long as they do may end; nothing else is let happen for them."""
        deadline = time.monotonic() + LAST_RUNS_S
        while runs.busy and time.monotonic() < deadline and not self._stop.is_set():
            await self._wait(runs, HELD_S)
            runs.arrived.clear()
        engine.run_until(max(engine.now_us, runs.last_end_us or 0))

    async def _held(self, engine: Engine, runs: RunsInChildren, began: float) -> None:
        """Runs are in the way; if they are so most of the time, that is told once."""
        since = time.monotonic()
        verb, lasted_s = runs.longest
        await self._wait(runs, HELD_S)
        now = time.monotonic()
        self._drag.note(verb, lasted_s, now - since)
        news = self._drag.news((engine.now_us - self._plan.start_us) / 1e6, now - began)
        if news is not None:
            self._log("replay", "warning", "held_by_runs", news)

    async def _wait(self, runs: RunsInChildren, timeout_s: float) -> None:
        """For a result, or until virtual time may have gone on."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(runs.arrived.wait(), timeout_s)

    # What is told

    def _log(self, who: str, level: str, event: str, values: Mapping[str, Any]) -> None:
        if self._engine is not None and (level in TOLD or event.startswith(("outage_", "store_", "lease_"))):
            # Lengths of time are of the monotonic clock, which stands still when the other leaps.
            plain = {name: value for name, value in values.items() if not name.endswith("_ms")}
            self._logged.append((self._engine.now_us, Logged(who, level, event, plain)))

    def _log_of_host(self, level: Level, event: str, values: dict[str, str | int]) -> None:
        self._log("children", str(level), event, dict(values))

    def _tell(self, view: ReplayView, books: ReplayedBooks) -> None:
        logged, self._logged = self._logged, []
        for at_us, news in sorted([*logged, *books.news()], key=lambda each: each[0]):
            view.tell(from_us(at_us), news)

    # Afterwards

    def summary(self) -> list[str]:
        """Lines for people."""
        assert self._engine is not None, "run() comes first"
        reports = job_reports(self._engine.store, self._plan.start_us, self._end_us())
        hint = f"most of that went by for real: {self._drag.hint}"
        dominates = self._drag.dominates(self._real_s)
        return [*summary_text(reports, self._virtual_s(), self._real_s), *([hint] if dominates else [])]

    def summary_json(self) -> str:
        assert self._engine is not None, "run() comes first"
        reports = job_reports(self._engine.store, self._plan.start_us, self._end_us())
        return summary_json(reports, self._virtual_s(), self._real_s)

    def _end_us(self) -> int:
        assert self._engine is not None, "run() comes first"
        return min(self._engine.now_us, self._plan.until_us or FOREVER_US)

    def _virtual_s(self) -> float:
        return (self._end_us() - self._plan.start_us) / 1e6
