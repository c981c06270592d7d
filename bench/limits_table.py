"""What `bench.limits` has measured, as figures for JSON and as a markdown table."""

from collections.abc import Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from bench.results import head, rows

_TABLES: Final = {"ours": "cronring's tables", "bare": "bare tables"}


class Sample(NamedTuple):
    """One round of one variant. `cpu_s`: what each side's processes spent meanwhile."""

    done: int
    seconds: float
    cpu_s: dict[str, float]


def figure(what: dict[str, Any], samples: Sequence[Sample]) -> dict[str, Any]:
    """Medians over the rounds, after `what` it is about; JSON-ready."""
    rates = [sample.done / sample.seconds for sample in samples]
    sides = samples[0].cpu_s
    return {
        **what,
        "per_second": round(median(rates)),
        "lowest": round(min(rates)),
        "highest": round(max(rates)),
        "cpu_us": {side: round(median(each.cpu_s[side] / each.done * 1e6 for each in samples), 1) for side in sides},
        "cores": {side: round(median(each.cpu_s[side] / each.seconds for each in samples), 2) for side in sides},
        "rounds": [
            {
                "done": each.done,
                "seconds": round(each.seconds, 3),
                "cpu_s": {side: round(spent, 3) for side, spent in each.cpu_s.items()},
            }
            for each in samples
        ],
    }


def of_bare(ours: dict[str, Any], bare: dict[str, Any]) -> float:
    """Our tables' rate by that of the bare ones: the median of the ratios of rounds, each measured side by side."""
    rates = [[one["done"] / one["seconds"] for one in each["rounds"]] for each in (ours, bare)]
    return float(round(median(mine / theirs for mine, theirs in zip(*rates, strict=True)), 2))


def table(result: dict[str, Any]) -> str:
    """Markdown: what it was measured on, the database's rows, gRPC's messages."""
    disk, load, size = result["fdatasync_us"], result["load"], result["item_bytes"]
    settings = ", ".join(f"{name} {value}" for name, value in result["settings"].items())
    lines = [
        *head(result),
        f"fdatasync of 8 KiB on this disk: {disk['median']} µs, the median of {disk['count']} (p99 {disk['p99']}): "
        f"that is in each commit. {settings}.",
        f"Load average {load['before']} before, {load['after']} after. Medians over {result['shape']['rounds']} "
        "interleaved rounds; CPU in µs of all processes of a side.",
        "",
        *_of_rows(result["rows"]),
        "",
        *_of_alone(result["alone"]),
        "",
        *_of_grpc(result["grpc"]),
        "",
        f"The messages are made once. A run takes {size['run']} bytes, a report {size['report']}.",
    ]
    return "\n".join(lines) + "\n"


def _spread(each: dict[str, Any]) -> str:
    return f"{each['lowest']:,} to {each['highest']:,}"


def _of_rows(figures: list[dict[str, Any]]) -> list[str]:
    columns = [
        "row changes of an execution", "rows a transaction", "connections", "executions/s", "of all rounds", "of bare",
        "PostgreSQL µs", "Python µs", "PostgreSQL cores", "Python cores",
    ]  # fmt: skip
    bare = {(each["rows"], each["connections"]): each for each in figures if each["tables"] == "bare"}
    cells = [
        [
            _TABLES[each["tables"]], f"{each['rows']:,}", each["connections"],
            f"{each['per_second']:,}", _spread(each),
            "" if each["tables"] == "bare" else of_bare(each, bare[each["rows"], each["connections"]]),
            *(each["cpu_us"][side] for side in ("postgresql", "python")),
            *(each["cores"][side] for side in ("postgresql", "python")),
        ]
        for each in figures
    ]  # fmt: skip
    return rows(columns, cells)


def _of_alone(figures: list[dict[str, Any]]) -> list[str]:
    columns = [
        "CPU of one backend: rows a statement", "the store's claim and end, µs", "bare changes, our tables, µs",
        "bare tables, µs", "two `SELECT 1`, µs", "the store by bare changes, our tables",
    ]  # fmt: skip
    cells = [
        [each["rows"], each["store_us"], each["ours_us"], each["bare_us"],
         each["nothing_us"] if each["rows"] == 1 else "", each["of_ours"]]
        for each in figures
    ]  # fmt: skip
    return rows(columns, cells)


def _of_grpc(figures: list[dict[str, Any]]) -> list[str]:
    columns = [
        "grpc.aio, runs out and reports back", "items a message", "items/s", "of all rounds", "messages/s each way",
        "caller µs an item", "answerer µs an item", "caller cores", "answerer cores",
    ]  # fmt: skip
    cells = [
        [
            each["exchange"], each["items"], f"{each['per_second']:,}", _spread(each),
            f"{each['per_second'] / each['items']:,.0f}",
            *(each["cpu_us"][side] for side in ("caller", "answerer")),
            *(each["cores"][side] for side in ("caller", "answerer")),
        ]
        for each in figures
    ]  # fmt: skip
    return rows(columns, cells)
