"""Jobs of lines, made by few calls; what is wrong with one line stays that line's."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from cronring.cli.failures import Failure
from cronring.cli.stream import Line

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.many import JobToMake

    Lined = tuple[Line, JobToMake]

_LATER: Final = frozenset({"TOO_SLOW", "DATABASE_AWAY"})  # reasons that have nothing to do with the line
_TRIES: Final = 6
_PAUSE_S: Final = 1.0
_ITEM: Final = re.compile(r"jobs\[(\d+)\]\.?(.*)")
_TOO_MUCH: Final = "RESOURCE_EXHAUSTED"  # of a message with more in it than one may have


Fate = Literal["made", "changed", "unchanged"]
"""What became of a line. `changed`: a queue's schedule was there, and is as the line says by now."""


class LineProblem(NamedTuple):
    line: int
    problem: str


class How(NamedTuple):
    """What is asked for with the file. `name`: of the file, as its problems have it."""

    name: str
    by: str
    note: str
    all_or_nothing: bool
    dry_run: bool


async def made(client: "AsyncClient", jobs: "Sequence[Lined]", how: How) -> list[LineProblem | Fate]:
    """Of each what was wrong, or what became of it; with all_or_nothing, of those alone that are wrong, if any are.

    A call that is refused as a whole, for one line of it or for too much together, is divided until that is found.
    """
    from cronring.client.errors import Invalid, PermissionDenied, Refused

    told: dict[int, LineProblem | Fate] = {}
    waiting = [list(jobs)] if how.all_or_nothing else list(_by_namespace(jobs))
    while waiting:
        part = waiting.pop()
        try:
            told |= await _asked(client, part, how)
        except PermissionDenied as error:
            if how.all_or_nothing:
                raise
            told |= {line.number: LineProblem(line.number, str(error)) for line, _ in part}
        except (Invalid, Refused) as error:
            wrong = dict(_named(error, part))
            told |= wrong
            if how.all_or_nothing:
                if not wrong:
                    raise
            elif wrong:
                waiting.append([each for each in part if each[0].number not in wrong])
            elif isinstance(error, Refused) and error.code != _TOO_MUCH:
                raise
            elif len(part) == 1:
                told[part[0][0].number] = LineProblem(part[0][0].number, str(error))
            else:
                waiting += [part[: len(part) // 2], part[len(part) // 2 :]]
    problems = [each for each in told.values() if isinstance(each, LineProblem)]
    return list(problems) if how.all_or_nothing and problems else [told[line.number] for line, _ in jobs]


async def _asked(client: "AsyncClient", jobs: "Sequence[Lined]", how: How) -> dict[int, LineProblem | Fate]:
    """By the lines' numbers. What there was no time for is asked for again. Raises Failure if there is none at all."""
    told: dict[int, LineProblem | Fate] = {}
    pending, why = list(jobs), ""
    for number in range(_TRIES):
        if not pending:
            return told
        await asyncio.sleep(number * _PAUSE_S)
        done = await client.jobs.create_many(
            [job for _, job in pending], how.by, how.note, all_or_nothing=how.all_or_nothing, dry_run=how.dry_run
        )
        if len(done.results) != len(pending):
            raise Failure(
                f"the controller answers for {len(done.results)} jobs of {len(pending)}; is it of this version?"
            )
        later = []
        for (line, job), result in zip(pending, done.results, strict=True):
            if result.reason in _LATER:
                later.append((line, job))
                why = result.problem
            elif result.problem:
                told[line.number] = LineProblem(line.number, result.problem)
            else:
                told[line.number] = "unchanged" if result.unchanged else "changed" if result.updated else "made"
        pending = later
    if not pending:
        return told
    raise Failure(f"line {pending[0][0].number:,} and others could not be made: {why}")


def _by_namespace(jobs: "Sequence[Lined]") -> "Iterator[list[Lined]]":
    """Whoever may not make them in one namespace may in another."""
    found: dict[str, list[Lined]] = defaultdict(list)
    for line, job in jobs:
        found[job.namespace].append((line, job))
    yield from found.values()


def _named(error: Exception, jobs: "Sequence[Lined]") -> Iterator[tuple[int, LineProblem]]:
    """Of the jobs that the refusal of a whole call names."""
    for field, description in getattr(error, "violations", ()):
        item = _ITEM.fullmatch(field)
        if item is not None and int(item[1]) < len(jobs):
            number = jobs[int(item[1])][0].number
            yield number, LineProblem(number, f"{item[2]} {description}".strip())
