"""Figures as markdown: medians over the rounds, and how many times as fast cronring was in the same round."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bench.results import head
from bench.results import rows as markdown_rows

OURS = "cronring"
COLUMNS = ("per_second", "drained_ms", "first_ms", "p50_ms", "p99_ms", "max_ms")
CPU = ("own_us", "postgres_us")  # of an execution
Rounds = Sequence[Mapping[str, Any] | None]  # None: that round failed


def medians(rounds: Rounds, columns: Sequence[str] = COLUMNS) -> dict[str, float]:
    """Of each column, over the rounds that there are."""
    there = [one for one in rounds if one is not None]
    return {name: median(one[name] for one in there) for name in columns} if there else {}


def ratio(ours: Rounds, theirs: Rounds) -> float | None:
    """How many times as many executions a second were ours: the median over rounds that both have."""
    both = [(a, b) for a, b in zip(ours, theirs, strict=False) if a is not None and b is not None]
    return round(median(a["per_second"] / b["per_second"] for a, b in both), 2) if both else None


def notes(name: str, part: Mapping[str, Any]) -> str:
    """What a reader must know of a contender's figures."""
    rounds = [one for one in part["rounds"].get(name, ()) if one is not None]
    said = [part["left_out"].get(name, ""), part["notes"].get(name, "")]
    if rounds and (jobs := max(one["jobs"] for one in rounds)) < max(part["shape"].values()):
        said.append(f"{jobs:,} of them")
    if twice := sum(one["executions"] - one["jobs"] for one in rounds):
        said.append(f"{twice} ran twice")
    if rounds and min(one["first_ms"] for one in rounds) < 0 and part["name"] == "recurring":
        said.append("early")
    return "; ".join(text for text in said if text)


def _row(name: str, part: Mapping[str, Any], versions: Mapping[str, str]) -> list[str]:
    rounds = part["rounds"].get(name, [])
    shown = f"{name} {versions.get(name, '')}".strip()
    cells = [f"{value:,.0f}" if value >= 100 else f"{value:.1f}" for value in medians(rounds, COLUMNS + CPU).values()]
    times = ratio(part["rounds"].get(OURS, []), rounds)
    cells = [*(cells or ["-"] * len(COLUMNS + CPU)), "-" if times is None else f"{times:.2f}"]
    cells += [str(part["processes"].get(name, "-")), str(sum(map(bool, rounds)))]
    return [shown, *cells, notes(name, part)]


def figures(parts: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Executions a second of everybody in each part, ours by the best rival's of the same rounds, and our CPU time."""
    found: dict[str, float] = {}
    for part in parts:
        which, rounds = part["name"], part["rounds"]
        speeds = {name: medians(each)["per_second"] for name, each in rounds.items() if any(each)}
        found |= {f"{name.replace('-', '_')}_{which}_per_second": speed for name, speed in speeds.items()}
        theirs = {name: speed for name, speed in speeds.items() if name != OURS}
        if theirs:
            best = max(theirs, key=lambda name: theirs[name])
            found[f"best_rival_{which}_per_second"] = theirs[best]
            if (times := ratio(rounds.get(OURS, []), rounds[best])) is not None:
                found[f"{which}_by_best_ratio"] = times
        if ours := [one for one in rounds.get(OURS, []) if one is not None]:
            found |= {f"{OURS}_{which}_{name}": median(one[name] for one in ours) for name in ("own_us", "postgres_us")}
    return found


def part_table(part: Mapping[str, Any], versions: Mapping[str, str]) -> list[str]:
    """A heading, and a row for each contender: the fastest first, those left out last."""
    names = dict.fromkeys([*part["rounds"], *part["left_out"]])
    order = sorted(names, key=lambda name: -medians(part["rounds"].get(name, [])).get("per_second", 0.0))
    columns = ["contender", "executions/s", *COLUMNS[1:], *CPU, "cronring/it", "processes", "rounds", ""]
    shape = ", ".join(f"{value} {word}" for word, value in part["shape"].items())
    others = [one["others_percent"] for rounds in part["rounds"].values() for one in rounds if one is not None]
    lines = [
        f"### {part['name']}: {shape}",
        "",
        *markdown_rows(columns, [_row(name, part, versions) for name in order]),
    ]
    if others:
        lines += [
            "",
            f"The other contenders took {median(others):.1f} % of a core meanwhile (at most {max(others):.1f} %).",
        ]
    return lines


def table(result: dict[str, Any]) -> str:
    """All of it."""
    note = ", ".join(f"{value} µs in {name}" for name, value in result["note_us"].items())
    lines = [*head(result), f"A no-op's note of its start: {note}."]
    for part in result["parts"]:
        lines += ["", *part_table(part, result["versions"])]
    return "\n".join(lines) + "\n"
