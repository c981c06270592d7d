"""`cronring jobs import`: jobs by the million, a line each."""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.commands.job_writes import create_job
from cronring.cli.conversation import ask
from cronring.cli.failures import EXIT_FAILED, Failure
from cronring.cli.job_lines import JobLines, WrongLine
from cronring.cli.making import Fate, How, LineProblem, made
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import print_json
from cronring.cli.printing import progress_bar, say
from cronring.cli.stream import Kept, Line, Part, Reached, parts, tail

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.many import JobToMake

CALL_MAX: Final = 10_000  # jobs of one call
_SHOWN: Final = 1_000  # problems that -o json has


class _Read(NamedTuple):
    part: Part
    jobs: "list[tuple[Line, JobToMake]]"
    wrong: list[LineProblem]


@click.command("import")
@click.option("--stream", "file", required=True, metavar="FILE", envvar="CRONRING_JOBS_IMPORT_STREAM",
              type=click.Path(exists=True, dir_okay=False, allow_dash=True),
              help="NDJSON: a job on each line; - reads standard input.")  # fmt: skip
@click.option("--position", "kept", type=click.Path(dir_okay=False), metavar="FILE",
              envvar="CRONRING_JOBS_IMPORT_POSITION",
              help="Where to keep how far it has come.  [FILE.position]")  # fmt: skip
@click.option("--all-or-nothing", is_flag=True, help="Make none if one is wrong; up to 10,000 lines.")
@click.option("--dry-run", is_flag=True, help="Only say what would become of each.")
@note_option
@as_option
@output_option
@controllers_option
def import_jobs(
    file: str,
    kept: str | None,
    all_or_nothing: bool,
    dry_run: bool,
    note: str,
    as_name: str | None,
    output: str,
    controllers: tuple[str, ...],
) -> None:
    """Make jobs from a file with one on each line, a million of them if need be.

    A line is an object whose keys are the options of `jobs create`, and `verb` (or `queue`). `labels` is an object,
    `payload` is JSON itself. Those that are there already, and the same, stay as they are.

    A wrong line is told with its number, and doesn't stop the others; the exit code is 1 then. How far it has come
    stands in FILE.position until the end: after a Ctrl-C, or an outage, the same command goes on from there.

    \b
    Examples:
      cronring jobs import --stream jobs.ndjson --dry-run
      cronring jobs import --stream jobs.ndjson --note "moved from the old host"
      generate | cronring jobs import --stream -
    A line:
      {"verb": "mail.send", "name": "n1", "cron": "5 * * * *",
       "labels": {"team": "x"}, "payload": {"to": "a"}, "retries": 3}
    """
    how = How(file, actor(as_name), note, all_or_nothing, dry_run)
    keeps = file != "-" and not all_or_nothing and not dry_run
    if kept and not keeps:
        raise click.UsageError("--position: nothing is kept of standard input, --all-or-nothing or --dry-run")
    position = Kept(Path(file), Path(kept or f"{file}.position")) if keeps else None
    with contextlib.ExitStack() as stack:
        opened = sys.stdin.buffer if file == "-" else stack.enter_context(Path(file).open("rb"))
        size = 0 if file == "-" else Path(file).stat().st_size
        bar = stack.enter_context(progress_bar(size, "importing"))
        run = _Import(opened, position, how, lambda offset: bar.update(offset - bar.pos))
        stack.callback(run.say_reached)
        ask(controllers, run.whole if all_or_nothing else run.through)
    _tell(run, how, output)
    if run.position.failed:
        raise click.exceptions.Exit(EXIT_FAILED)


class _Import:
    """`told` hears up to which byte it has come."""

    def __init__(self, opened: IO[bytes], kept: Kept | None, how: How, told: Callable[[int], None]) -> None:
        self._opened = opened
        self._kept = kept
        self._how = how
        self._told = told
        self._lines = JobLines(create_job)
        self.position = Reached()
        self._finished = False
        self.problems: list[LineProblem] = []

    async def through(self, client: "AsyncClient") -> None:
        """A part after the other. While one is made, the next one is read."""
        if self._kept:
            self.position = self._kept.read(self._opened, (await client.cluster.get()).cluster_id)
        if self.position.offset:
            say(f"{self._how.name}: going on behind line {self.position.line:,}", err=True)
            self._told(self.position.offset)
        reading = parts(self._opened, self.position)
        read = await asyncio.to_thread(self._next, reading)
        while read is not None:
            outcomes, following = await asyncio.gather(
                made(client, read.jobs, self._how), asyncio.to_thread(self._next, reading)
            )
            self._count(read.part, outcomes, read.wrong)
            read = following
        self._finished = True
        if self._kept:
            self._kept.remove()

    def say_reached(self) -> None:
        """Where the next one goes on, if this one has come to no end."""
        if self._kept and self.position.offset and not self._finished:
            reached = f"line {self.position.line:,} is reached; the same command goes on from there"
            say(f"{self._how.name}: {reached}", err=True)

    async def whole(self, client: "AsyncClient") -> None:
        """All by one call. Raises Failure for more than that takes."""
        reading = parts(self._opened, Reached(), CALL_MAX + 1)
        read = await asyncio.to_thread(self._next, reading)
        assert read is not None, "there is a last part, if an empty one"
        rest = next(reading, None)
        if len(read.part.lines) > CALL_MAX or (rest and rest.lines):
            raise Failure(
                f"{self._how.name} has more than one call takes: {CALL_MAX:,} lines, or 4 MiB; "
                "leave out --all-or-nothing, or divide the file"
            )
        self._count(read.part, [] if read.wrong else await made(client, read.jobs, self._how), read.wrong)

    def _next(self, reading: Iterator[Part]) -> "_Read | None":
        part = next(reading, None)
        if part is None:
            return None
        read = _Read(part, [], [])
        for line in part.lines:
            try:
                read.jobs.append((line, self._lines.job(line.raw)))
            except WrongLine as error:
                read.wrong.append(LineProblem(line.number, str(error)))
        return read

    def _count(self, part: Part, outcomes: Sequence[LineProblem | Fate], wrong: Sequence[LineProblem]) -> None:
        problems = sorted([*wrong, *(each for each in outcomes if isinstance(each, LineProblem))])
        for each in problems:
            say(f"{self._how.name}:{each.line}: {each.problem}", err=True)
        self.problems += problems[: _SHOWN - len(self.problems)]
        before = self.position
        self.position = before._replace(
            offset=part.offset, line=part.line, failed=before.failed + len(problems),
            made=before.made + outcomes.count("made"), changed=before.changed + outcomes.count("changed"),
            unchanged=before.unchanged + outcomes.count("unchanged"),
        )  # fmt: skip
        if self._kept:
            self._kept.write(self.position._replace(tail=tail(self._opened, part.offset)))
        self._told(part.offset)


def _tell(run: _Import, how: How, output: str) -> None:
    position = run.position
    if output == "json":
        print_json({
            "dry_run": how.dry_run, "lines": position.line, "made": position.made, "changed": position.changed,
            "unchanged": position.unchanged, "failed": position.failed,
            "problems": [each._asdict() for each in run.problems],
        })  # fmt: skip
        return
    made = f"{position.made:,} jobs {'would be made' if how.dry_run else 'are made'}"
    changed = [f"{position.changed:,} {'would be changed' if how.dry_run else 'are changed'}"] * bool(position.changed)
    parts_told = [made, *changed, f"{position.unchanged:,} were there", f"{position.failed:,} lines are wrong"]
    say(f"{position.line:,} lines: {', '.join(parts_told)}")
