"""One trial of one row: play it, judge it, and say what came of it."""

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from bench.machine import host
from tests.faults.judge import Finding, percentile
from tests.faults.row import Row
from tests.faults.stage import QUIET_S, Stage
from tests.support.server_logs import LOGS

RESULTS: Final = Path(__file__).parents[2] / "bench" / "results" / "faults"
SHOWN: Final = 10


@dataclass
class Trial:
    """What came of it.

    `broken`: what the row itself saw that doesn't hold. `crashes`: lines of PostgreSQL's logs that the row didn't mean.
    """

    row: Row
    seconds: float
    finding: Finding = field(default_factory=Finding)
    faults: dict[str, int] = field(default_factory=dict)
    measured: dict[str, str] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.broken and not self.crashes and not self.finding.guilty()

    @property
    def safe(self) -> bool:
        """Nothing ran twice, early or beside itself, nothing is lost and no server crashed, whatever was late."""
        return not self.crashes and not self.finding.verdict.guilty()

    def figures(self) -> dict[str, Any]:
        """As they stand in bench/results/faults."""
        finding, verdict = self.finding, self.finding.verdict
        lateness = finding.lateness_s
        return {
            **host(), "cronring": version("cronring"), "row": self.row.name, "seconds": self.seconds,
            "faults": self.faults, "ticks": verdict.due, "executed": verdict.executed,
            "skipped": dict(sorted(verdict.skipped.items())), "outcomes": dict(sorted(verdict.outcomes.items())),
            "lateness_p99_s": round(percentile(lateness, 0.99), 3),
            "lateness_max_s": round(max(lateness, default=0.0), 3),
            "ticks_of_the_fault": finding.excused, "missed": len(verdict.unaccounted) + len(finding.unexcused),
            "late": len(finding.late), "early": len(verdict.early), "duplicates": len(verdict.twice),
            "overlapping": len(verdict.overlapping), "results_lost": len(verdict.results_lost),
            "measured": self.measured, "holds": self.holds,
        }  # fmt: skip

    def __str__(self) -> str:
        figures = self.figures()
        told = {name: value for name, value in figures.items() if name not in {"date", "machine", "python", "cronring"}}
        problems = [f"  {kind} ({len(found)}): {found[:SHOWN]}" for kind, found in self.finding.guilty().items()]
        crashes = [f"PostgreSQL crashed: {line}" for line in self.crashes]
        verdict = "holds" if self.holds else "DOES NOT HOLD"
        return "\n".join([f"{self.row.name} {verdict}", json.dumps(told), *problems, *self.broken, *crashes])


def play(row: Row, seconds: float, tell: Callable[[str], None], folder: Path | None = None) -> Trial:
    """`folder`: where logs and journal are kept; by default a new one below the temporary folder."""
    folder = folder or Path(tempfile.mkdtemp(prefix=f"cronring-{row.name}-"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # a server that runs as another user may be in it
    with Stage(seconds, folder, tell) as stage:
        row.act(stage)
        stage.pass_time(QUIET_S)
        trial = Trial(row, seconds, stage.judge(), dict(stage.faults), stage.measured, stage.broken)
    trial.crashes = LOGS.crashes()
    if stage.on_time and not trial.finding.lateness_s:
        trial.broken.append("no tick was judged")
    return trial


def keep(trial: Trial) -> Path:
    """Write its figures for the table."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{trial.row.name}.json"
    path.write_text(json.dumps(trial.figures(), indent=2) + "\n")
    return path


def teller() -> Callable[[str], None]:
    """Prints each line with the seconds since it was made."""
    began = time.monotonic()
    return lambda line: print(f"{time.monotonic() - began:7.2f} {line}", flush=True)
