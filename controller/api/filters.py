"""Filters of lists, given as fields of a message and as a text of words. Each field is judged by itself."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.requests import any_of, instant, labels, name, one_of, row_id
from cronring.controller.ports.reads import ExecutionFilter, ExecutionSort, JobFilter, JobSort
from cronring.protos.cronring.v1 import executions_pb2, jobs_pb2
from cronring.protos.instants import timestamp
from cronring.schema.filters import (
    LAST_OUTCOMES,
    OUTCOMES,
    STATUSES,
    ExecutionQuery,
    FilterError,
    JobQuery,
    expand_outcomes,
    parse_execution_query,
    parse_job_query,
)

TEXT: Final = "filter.text"
Filter = TypeVar("Filter", jobs_pb2.JobFilter, executions_pb2.ExecutionFilter)
Query = TypeVar("Query", JobQuery, ExecutionQuery)
Now = Callable[[], Awaitable[int]]


# docs/decisions/0100: the text adds to the fields
class JobsAsked(NamedTuple):
    where: JobFilter
    sort: JobSort


class ExecutionsAsked(NamedTuple):
    """`words`: what identifies the request on all its pages, as instants like `since:1h` move between pages."""

    where: ExecutionFilter
    sort: ExecutionSort
    words: tuple[object, ...]


def jobs_asked(asked: jobs_pb2.JobFilter, sort: str) -> JobsAsked:
    """Of a list. Raises InvalidRequest."""
    query = _query(lambda: parse_job_query(asked.text)) if asked.text else JobQuery()
    where = _filled(asked, query._asdict())
    found = JobFilter(
        namespace=name("filter.namespace", where.namespace),
        module=name("filter.module", where.module),
        verb=name("filter.verb", where.verb),
        statuses=any_of("filter.statuses", where.statuses, STATUSES),
        labels=labels("filter.labels", where.labels),
        outcomes=expand_outcomes(any_of("filter.outcomes", where.outcomes, LAST_OUTCOMES)),
        contains=_texts("filter.contains", where.contains),
        keys=_texts("filter.keys", where.keys),
    )
    return JobsAsked(found, JobSort(_sort(sort, query.sort, tuple(JobSort)) or JobSort.KEY))


def _texts(field: str, given: Sequence[str]) -> tuple[str, ...]:
    """Raises InvalidRequest, also for an empty text, which every key contains."""
    if "" in given:
        raise InvalidRequest([(field, "has an empty text; leave it out")])
    return tuple(name(field, text) for text in given)


def job_filter(asked: jobs_pb2.JobFilter) -> JobFilter:
    """Of what has no order. Raises InvalidRequest."""
    if asked.text and _query(lambda: parse_job_query(asked.text)).sort:
        raise _unsorted()
    return jobs_asked(asked, "").where


async def executions_asked(asked: executions_pb2.ExecutionFilter, sort: str, now: Now) -> ExecutionsAsked:
    """Of a list. `now`: PostgreSQL's. Raises InvalidRequest."""
    query = await _execution_query(asked, now)
    found, order = _executions(asked, query), _sort(sort, query.sort, tuple(ExecutionSort))
    given = [each.SerializeToString() for each in (asked.since, asked.until)]
    known = found._replace(labels={}, since=None, until=None)
    words = (*known, *sorted(found.labels.items()), *given, asked.text)
    return ExecutionsAsked(found, ExecutionSort(order or ExecutionSort.NEWEST), words)


async def execution_filter(asked: executions_pb2.ExecutionFilter, now: Now) -> ExecutionFilter:
    """Of what has no order. Raises InvalidRequest."""
    query = await _execution_query(asked, now)
    if query.sort:
        raise _unsorted()
    return _executions(asked, query)


async def _execution_query(asked: executions_pb2.ExecutionFilter, now: Now) -> ExecutionQuery:
    if not asked.text:
        return ExecutionQuery()
    now_us = await now()
    return _query(lambda: parse_execution_query(asked.text, now_us))


def _executions(asked: executions_pb2.ExecutionFilter, query: ExecutionQuery) -> ExecutionFilter:
    where = _filled(asked, query._asdict())
    return ExecutionFilter(
        job=name("filter.job", where.job),
        outcomes=expand_outcomes(any_of("filter.outcomes", where.outcomes, OUTCOMES)),
        since=instant("filter.since", where.since) if where.HasField("since") else None,
        after_id=row_id("filter.after_id", where.after_id),
        until=instant("filter.until", where.until) if where.HasField("until") else None,
        namespace=name("filter.namespace", where.namespace),
        module=name("filter.module", where.module),
        verb=name("filter.verb", where.verb),
        labels=labels("filter.labels", where.labels),
        runner=name("filter.runner", where.runner),
    )


def _query(read: Callable[[], Query]) -> Query:
    """Raises InvalidRequest, which says where the term begins."""
    try:
        return read()
    except FilterError as error:
        where = "" if error.at is None else f"character {error.at + 1}: "
        raise InvalidRequest([(TEXT, f"{where}{error.message}")]) from None


def _sort(field: str, word: str, allowed: tuple[str, ...]) -> str:
    if field and word and field != word:
        raise InvalidRequest([(TEXT, f"says sort:{word}, and sort says {field:.40}; give one of them")])
    return one_of("sort", field or word, allowed)


def _unsorted() -> InvalidRequest:
    return InvalidRequest([(TEXT, "has sort:, which is of lists; leave it out")])


def _filled(asked: Filter, said: Mapping[str, object]) -> Filter:
    """The fields, filled up from the text. Raises InvalidRequest if both set a field to different values."""
    filled, problems = type(asked)(), Violations()
    filled.CopyFrom(asked)
    for field, value in said.items():
        if field != "sort" and value not in ("", (), None) and not _set(filled, field, value):
            problems.append((TEXT, f"says another {field} than filter.{field}; give one of them"))
    if problems:
        raise InvalidRequest(problems)
    return filled


def _set(filled: Filter, field: str, value: object) -> bool:
    """Set a field. False: it has another value already."""
    there = getattr(filled, field)
    match value:
        case str():
            setattr(filled, field, value)
            return there in ("", value)
        case Mapping():
            apart = any(there.get(key, wanted) != wanted for key, wanted in value.items())
            there.update(value)
            return not apart
        case tuple():
            same = not there or set(there) == set(value)
            del there[:]
            there.extend(value)
            return same
        case _:
            assert isinstance(value, int), "what is left are instants"
            wanted = timestamp(value)
            same = not filled.HasField(field) or there == wanted  # type: ignore[arg-type]  # since and until
            there.CopyFrom(wanted)
            return same
