"""A replay on a terminal: one live picture, with the time that goes by in it."""

from collections import Counter, deque
from datetime import datetime
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cronring.cli.colours import style_of
from cronring.cli.dev.replay_news import Logged, News
from cronring.cli.glance import countdown
from cronring.cli.output import milliseconds
from cronring.cli.printing import visible
from cronring.schema.instant import from_us
from cronring.schema.policy import parse_policy
from cronring.schema.schedule import parse_schedule
from cronring.virtual.engine import Engine
from cronring.virtual.records import Execution, Skip

RECENT: Final = 40
FIXED_LINES: Final = 9
EVENTS_SHOWN: Final = 4


class Picture:
    """`title` names the files, `pace` the speed."""

    def __init__(self, engine: Engine, console: Console, title: str, pace: str) -> None:
        self._engine = engine
        self._console = console
        self._title = title
        self._pace = pace
        self._recent: deque[tuple[datetime, Execution | Skip]] = deque(maxlen=RECENT)
        self._events: deque[tuple[datetime, Logged]] = deque(maxlen=EVENTS_SHOWN)
        self._ran: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._last: dict[str, str] = {}
        self._words: dict[str, str] = {}
        self._live: Live | None = None

    def tell(self, at: datetime, news: News) -> None:
        news = visible(news)
        match news:
            case Execution():
                self._ran[news.job] += 1
                self._last[news.job] = news.outcome or "-"
                self._recent.append((at, news))
            case Skip():
                self._skipped[news.job] += news.ticks
                self._recent.append((at, news))
            case Logged():
                self._events.append((at, news))

    def draw(self) -> None:
        if self._live is None:
            self._live = Live(console=self._console, screen=True, auto_refresh=False)
            self._live.start()
        self._live.update(self._picture(), refresh=True)

    def close(self) -> None:
        """Give the terminal back, with the last picture left on it."""
        if self._live is not None:
            self._live.stop()
            self._live = None
            self._console.print(self._picture())

    def _picture(self) -> RenderableType:
        rows = max(6, self._console.size.height - FIXED_LINES - EVENTS_SHOWN)
        jobs = max(3, min(len(self._engine.store.jobs), rows - 4))
        return Group(
            self._heading(), Text(), self._jobs(jobs), Text(), self._executions(max(3, rows - jobs)), Text(),
            *self._happenings(), Text.assemble(("stop  ", "dim"), "Ctrl-C"),
        )  # fmt: skip

    def _heading(self) -> Text:
        now = from_us(self._engine.now_us)
        away = [part for part in ("database", "controllers", "runners") if self._engine.is_away(part)]
        line = Text.assemble(
            ("cronring dev", "bold"), f"  {self._title}  ", (f"{now:%a %Y-%m-%d %H:%M:%S} UTC", "bold"),
            (f"   {self._pace}", "dim"),
        )  # fmt: skip
        return line.append(f"   away: {', '.join(away)}", "bold red") if away else line

    def _jobs(self, shown: int) -> Table:
        table = _table("job", "schedule", "last", "runs", "skipped", "next run in")
        rows = sorted((row for row in self._engine.store.jobs.values() if not row.removed), key=lambda row: row.key)
        for row in rows[:shown]:
            last = self._last.get(row.key, "-")
            slot = row.upcoming
            left_s = None if slot is None else (slot.run_at - self._engine.now_us) / 1e6
            next_run = "paused" if row.paused else "-" if left_s is None else countdown(left_s)
            table.add_row(
                row.key, self._schedule(*row.spec.timing), Text(last, style_of(last)),
                f"{self._ran[row.key]:,}", f"{self._skipped[row.key]:,}", "running" if row.running else next_run,
            )  # fmt: skip
        if len(rows) > shown:
            table.add_row(Text(f"and {len(rows) - shown:,} more", "dim"))
        return table

    def _schedule(self, schedule: str, anchor: int, policy: str) -> str:
        key = f"{schedule} {policy}"
        if key not in self._words:
            self._words[key] = parse_schedule(schedule, anchor, parse_policy(policy)).words()
        return self._words[key]

    def _executions(self, shown: int) -> Table:
        table = _table("time", "job", "what", "why", "lateness", "took")
        for at, news in list(self._recent)[-shown:]:
            time = f"{at:%m-%d %H:%M:%S}"
            if isinstance(news, Skip):
                table.add_row(time, news.job, Text("skipped", "yellow"), f"{news.reason} x {news.ticks}", "", "")
                continue
            outcome = news.outcome or "-"
            late_ms = None if news.lateness is None else news.lateness.total_seconds() * 1000
            took_ms = None if news.ended is None or news.started is None else _ms(news.started, news.ended)
            why = news.trigger if news.attempt == 1 else f"{news.trigger} {news.attempt}"
            table.add_row(
                time,
                news.job,
                Text(outcome, style_of(outcome)),
                why,
                milliseconds(late_ms, signed=True),
                milliseconds(took_ms),
            )
        return table

    def _happenings(self) -> list[Text]:
        lines = []
        for at, (who, level, event, values) in self._events:
            said = " ".join(f"{key}={value}" for key, value in values.items())
            colour = "red" if level in {"warning", "error"} else "default"
            line = Text.assemble((f"{at:%m-%d %H:%M:%S}  ", "dim"), (f"{who}: {event} {said}".rstrip(), colour))
            line.truncate(self._console.size.width, overflow="ellipsis")
            lines.append(line)
        return lines


def _ms(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds() * 1000


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for title in headings:
        right = title in {"runs", "skipped", "lateness", "took", "next run in"}
        table.add_column(title, justify="right" if right else "left", no_wrap=True, overflow="ellipsis")
    return table
