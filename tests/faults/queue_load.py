"""A queue's writers and consumers beside a row's cluster, and the judge of the journal that they write."""

import contextlib
import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

import asyncpg

from tests.conformance.queueing import FORGOTTEN
from tests.faults.stage import Stage
from tests.support.databases import run_coroutine
from tests.support.looking import look

TABLES: Final = """
CREATE TABLE cronring.queue_work (number integer, lease bigint);
CREATE TABLE cronring.queue_numbers (last integer);
INSERT INTO cronring.queue_numbers VALUES (0);
INSERT INTO cronring.cron_queues (namespace, queue, max_deliveries) VALUES ('default', 'q', 1000)
"""
ENOUGH: Final = 100
DRAINED_S: Final = 120.0


class QueueLoad:
    """Its processes end with the stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.journal = stage.folder / "queue-journal"
        self.url = stage.cluster.database_url
        self._started = 0
        self.writer: subprocess.Popen[bytes] | None = None
        self.consumers: list[subprocess.Popen[bytes]] = []
        run_coroutine(self._run(TABLES))
        stage.stack.callback(self.close)

    def write(self) -> None:
        self.writer = self._player("write")

    def consume(self) -> None:
        self.consumers.append(self._player("consume"))

    def stop_writing(self) -> None:
        assert self.writer is not None
        self._end(self.writer)
        self.writer = None

    def kill_consumers(self) -> None:
        for consumer in self.consumers:
            self._end(consumer)
        self.consumers.clear()

    def kill_consumer(self, number: int) -> None:
        """kill -9, and another one in its place."""
        self._end(self.consumers.pop(number))
        self.consume()

    def close(self) -> None:
        for each in (*self.consumers, *([self.writer] if self.writer else [])):
            self._end(each)

    def notes(self) -> list[dict[str, Any]]:
        lines = self.journal.read_bytes().splitlines() if self.journal.exists() else []
        return [json.loads(line) for line in lines]

    def drain_and_judge(self) -> None:
        """Until all is done, by consumers that run; then what the journal says is held against what must hold."""
        self._stage.wait_until("an empty queue", lambda: not self._value("SELECT count(*) FROM cron_queue"), DRAINED_S)
        self.kill_consumers()
        notes = self.notes()
        worked = Counter(row["number"] for row in run_coroutine(self._fetch("SELECT number FROM queue_work")))
        for problem in problems(notes, worked):
            self._stage.expect(False, problem)
        self._stage.expect(not run_coroutine(self._fetch(FORGOTTEN)), "a lane was forgotten")
        put = sum(len(note["numbers"]) for note in notes if note["event"] == "put")
        self._stage.expect(put > ENOUGH, f"only {put} messages were put: nothing was tried")
        again = sum(note["event"] == "begun" and note["delivery"] > 1 for note in notes)
        self._stage.measured["messages"] = f"{put:,} put, {sum(worked.values()):,} done, {again:,} begun again"

    def _player(self, role: str) -> "subprocess.Popen[bytes]":
        self._started += 1
        name = f"{role}-{self._started}"
        with (self._stage.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.faults.queue_player", role, self.url, str(self.journal), name],
                stdout=log, stderr=log, cwd=Path(__file__).parents[2],
            )  # fmt: skip

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        process.kill()
        process.wait()

    def _value(self, statement: str) -> Any:
        with contextlib.suppress(OSError, asyncpg.PostgresError):
            return run_coroutine(self._fetch(statement))[0][0]
        return True

    async def _fetch(self, statement: str) -> list[Any]:
        connection = await look(self.url)
        try:
            await connection.execute("SET search_path = cronring")
            return await connection.fetch(statement)
        finally:
            await connection.close()

    async def _run(self, statement: str) -> None:
        connection = await look(self.url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


def problems(notes: list[dict[str, Any]], worked: Counter[int]) -> list[str]:
    """What the journal tells that must not be. `worked`: how often the work of each number was committed."""
    found = []
    put = {number for note in notes if note["event"] == "put" for number in note["numbers"]}
    tried = {number for note in notes if note["event"] == "putting" for number in note["numbers"]}
    if lost := put - worked.keys():
        found.append(f"{len(lost)} messages were lost, such as {min(lost)}")
    if strange := worked.keys() - tried:
        found.append(f"{len(strange)} messages were done that nobody put, such as {min(strange)}")
    if twice := [number for number, times in worked.items() if times > 1]:
        found.append(f"{len(twice)} messages were done twice, such as {min(twice)}")
    attempts = Counter((note["number"], note["lease"]) for note in notes if note["event"] == "begun")
    if again := [each for each, times in attempts.items() if times > 1]:
        found.append(f"{len(again)} messages were begun twice under one lease, such as {again[0]}")
    latest: dict[str, int] = defaultdict(int)
    for note in notes:
        if note["event"] == "begun":
            if note["number"] < latest[note["workspace"]]:
                found.append(f"{note['workspace']}: {note['number']} was begun after {latest[note['workspace']]}")
            latest[note["workspace"]] = max(latest[note["workspace"]], note["number"])
    return found
