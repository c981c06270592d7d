"""The books of a replay, job by job."""

import dataclasses
from collections import Counter
from collections.abc import Mapping

from cronring.cli.dev.replay_drag import speed_text
from cronring.cli.dev.replay_lines import json_line
from cronring.cli.output import short_instant
from cronring.schema.duration import measured
from cronring.virtual.report import JobReport


def summary_json(reports: list[JobReport], virtual_s: float, real_s: float) -> str:
    """One line, as those before it."""
    jobs = [dataclasses.asdict(report) for report in reports]
    return json_line(
        {"event": "summary", "virtual_ms": round(virtual_s * 1_000), "real_ms": round(real_s * 1_000), "jobs": jobs}
    )


def summary_text(reports: list[JobReport], virtual_s: float, real_s: float) -> list[str]:
    lines: list[str] = []
    for report in reports:
        zone = "" if report.timezone == "UTC" else f", {report.timezone}"
        lines.append(f"{report.job}  ({report.schedule}{zone}){'  PAUSED' if report.paused else ''}")
        lines += [f"  {line}" for line in _of_job(report)]
    return [*lines, "", _last_line(reports), _pace_line(virtual_s, real_s)]


def _pace_line(virtual_s: float, real_s: float) -> str:
    return (
        f"{measured(virtual_s * 1_000)} of virtual time in {measured(real_s * 1_000)} ({speed_text(virtual_s, real_s)})"
    )


def _of_job(report: JobReport) -> list[str]:
    parts = [f"ticks due {report.due}", f"ran {report.ran}", _skipped(report.skipped)]
    parts += [f"not decided yet {report.open}"] if report.open else []
    lines = [" | ".join(parts)]
    beside = {"retries": report.retries, "caught up": report.caught_up, "by hand": report.beside}
    runs = [f"{name} {count}" for name, count in beside.items() if count]
    if report.outcomes:
        lines.append(" | ".join([f"outcomes: {_counts(report.outcomes)}", *runs]))
    if report.first_tick is not None:
        lines.append(f"first tick {short_instant(report.first_tick)} | last {short_instant(report.last_tick)}")
    return lines + [f"clocks: {change}" for change in report.clock_changes]


def _last_line(reports: list[JobReport]) -> str:
    skipped: Counter[str] = Counter()
    for report in reports:
        skipped.update(report.skipped)
    return (
        f"ticks due {sum(each.due for each in reports)} | executed {sum(each.ran for each in reports)} | "
        f"{_skipped(skipped)} | retries {sum(each.retries for each in reports)} | "
        f"not decided yet: {sum(each.open for each in reports)}"
    )


def _skipped(skipped: Mapping[str, int]) -> str:
    total = sum(skipped.values())
    return f"skipped {total} ({_counts(skipped)})" if total else "skipped 0"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()) if count)
