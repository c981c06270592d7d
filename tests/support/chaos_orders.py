"""Whether what an operator was told is so, by the tables alone: it shares no code with the controllers."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

import asyncpg

from tests.support.looking import look

EXECUTIONS: Final = """
SELECT e.id, j.key, j.id AS job_id, e.trigger, e.attempt, e.outcome, extract(epoch FROM e.tick)::float8 AS tick,
       extract(epoch FROM e.claimed_at)::float8 AS claimed_at, e.cancel_requested_at IS NOT NULL AS marked
FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id
"""
SKIPS: Final = """
SELECT j.key, s.reason, extract(epoch FROM s.first_tick)::float8 AS first_tick,
       extract(epoch FROM s.last_tick)::float8 AS last_tick
FROM cron_skips s JOIN cron_jobs j ON j.id = s.job_id
"""
ACTIVATIONS: Final = "SELECT id FROM cron_activations"
ACTIONS: Final = """
SELECT j.key, a.action, extract(epoch FROM a.at)::float8 AS at, (a.details ->> 'activation')::bigint AS activation
FROM cron_actions a JOIN cron_jobs j ON j.id = a.job_id ORDER BY a.id
"""
BY_SCHEDULE: Final = ("schedule", "catch_up")
# What makes a job's tick due again, or closes the books that an order was written in.
UNDOES: Final = ("cancel", "restore")
OPENS: Final = ("resume", "cancel", "restore", "pause")


class Given(NamedTuple):
    """`told`: the answer; None: the operator ended before."""

    order: dict[str, Any]
    told: dict[str, Any] | None

    @property
    def done(self) -> bool:
        return self.told is not None and self.told["answer"] == "done"


def read_orders(journal: Path) -> list[Given]:
    given: dict[int, Given] = {}
    for line in journal.read_text().splitlines() if journal.exists() else []:
        entry = json.loads(line)
        number = entry["number"]
        if entry["event"] == "gives":
            given[number] = Given(entry, None)
        else:
            given[number] = given[number]._replace(told=entry)
    return list(given.values())


def summary(given: list[Given]) -> str:
    counts = Counter(f"{each.order['order']} {each.told['answer'] if each.told else 'unknown'}" for each in given)
    by = Counter(each.order["by"] for each in given)
    return f"{len(given)} orders ({by['grpc']} over gRPC, {by['command']} by command): " + ", ".join(
        f"{name} {count}" for name, count in sorted(counts.items())
    )


class Tables(NamedTuple):
    executions: list[asyncpg.Record]
    skips: list[asyncpg.Record]
    activations: set[int]
    actions: list[asyncpg.Record]


async def judge_orders(database_url: str, journal: Path) -> list[str]:
    """What isn't as the operator was told; nothing, if all is well."""
    connection = await look(database_url)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            tables = Tables(
                await connection.fetch(EXECUTIONS), await connection.fetch(SKIPS),
                {row["id"] for row in await connection.fetch(ACTIVATIONS)}, await connection.fetch(ACTIONS),
            )  # fmt: skip
    finally:
        await connection.close()
    guilty: list[str] = []
    for given in read_orders(journal):
        if given.told is not None and given.told["answer"] == "broken":
            guilty.append(f"broken: {given}")
        if given.done:
            guilty += [f"{problem}: {given}" for problem in _problems(given, tables)]
    return guilty


def _problems(given: Given, tables: Tables) -> list[str]:
    assert given.told is not None, "only what was answered is judged"
    match given.order["order"]:
        case "skip_next" if given.told.get("skipped"):
            return _of_skip(given.order["job"], given.told["tick"], given.told["at"], tables)
        case "pause":
            return _of_pause(given, tables)
        case "cancel":
            return _of_cancel(given, tables)
        case "cancel_execution":
            return _of_cancelled_run(given, tables)
        case "retry" | "trigger" if "activation" in given.told:
            return _of_run_by_hand(given, tables)
        case _:
            return []


def _actions(tables: Tables, key: str, after: float, kinds: tuple[str, ...]) -> list[float]:
    return [row["at"] for row in tables.actions if row["key"] == key and row["at"] > after and row["action"] in kinds]


def _of_skip(key: str, tick: float, at: float, tables: Tables) -> list[str]:
    if any(undone <= tick for undone in _actions(tables, key, at - 60, UNDOES)) or key.startswith("versions."):
        return []
    ran = [row["id"] for row in tables.executions if (row["key"], row["tick"]) == (key, tick)
           and row["trigger"] in BY_SCHEDULE]  # fmt: skip
    told = [
        row["reason"] for row in tables.skips if row["key"] == key and row["first_tick"] <= tick <= row["last_tick"]
    ]
    return [] if (ran, told) == ([], ["cancelled"]) else [f"tick {tick} was skipped, and ran as {ran}, is {told}"]


def _of_pause(given: Given, tables: Tables) -> list[str]:
    """No tick is claimed from the answer on until its end, or until anybody's next order."""
    assert given.told is not None
    key, since = given.order["job"], given.told["at"]
    sent = given.order["at"]
    ends = min([given.order["until"] or float("inf"), *_actions(tables, key, since, OPENS)])
    if any(sent < at <= since for at in _actions(tables, key, sent, ("resume", "cancel", "restore"))):
        return []
    return _claimed_between(key, since, ends, tables)


def _of_cancel(given: Given, tables: Tables) -> list[str]:
    assert given.told is not None
    key, since = given.order["job"], given.told["at"]
    ends = min([float("inf"), *_actions(tables, key, given.order["at"], ("restore",))])
    found = [row["id"] for row in tables.executions if row["key"] == key and since < row["claimed_at"] < ends]
    return [f"executions {found} of a cancelled job"] if found else []


def _claimed_between(key: str, since: float, until: float, tables: Tables) -> list[str]:
    found = [
        row["id"] for row in tables.executions
        if row["key"] == key and row["trigger"] in BY_SCHEDULE and since < row["claimed_at"] < until
    ]  # fmt: skip
    return [f"executions {found} between {since} and {until}"] if found else []


def _of_cancelled_run(given: Given, tables: Tables) -> list[str]:
    """It was marked, and has ended: cancelled, or as a crash, a timeout or its own last moment had it.

    Or its job's next tick had cut it short before: to cancel what is cancelled changes nothing, and is no error.
    """
    row = next(row for row in tables.executions if row["id"] == given.order["execution"])
    if not row["marked"] and row["outcome"] == "cancelled":
        return []
    if not row["marked"]:
        return [f"execution {row['id']} is {row['outcome']}, and was never marked"]
    retried = [
        other["id"] for other in tables.executions
        if (other["job_id"], other["tick"], other["trigger"]) == (row["job_id"], row["tick"], "retry")
        and other["attempt"] == row["attempt"] + 1
        and not _actions(tables, row["key"], given.order["at"], ("retry_execution", "backfill"))
    ]  # fmt: skip
    return [f"execution {row['id']} runs on"] * (row["outcome"] is None) + [f"retried as {retried}"] * bool(retried)


def _of_run_by_hand(given: Given, tables: Tables) -> list[str]:
    """It doesn't wait for ever, unless its job is cancelled."""
    assert given.told is not None
    waits = given.told["activation"] in tables.activations
    return ["it still waits"] if waits else []
