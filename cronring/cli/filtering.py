"""Filters of lists on the command line: `KEY:VALUE` words, and options that say the same."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from cronring.cli.clock import wall_now
from cronring.cli.completion import filter_term
from cronring.cli.instants import past, resolved
from cronring.cli.job_options import Label
from cronring.schema.filters import (
    EXECUTION_SORTS,
    EXECUTION_WORDS,
    JOB_SORTS,
    JOB_WORDS,
    LAST_OUTCOMES,
    OUTCOMES,
    STATUSES,
    UNSUCCESSFUL,
    ExecutionQuery,
    FilterError,
    JobQuery,
    Term,
    read_execution_terms,
    read_job_terms,
    split_terms,
)
from cronring.schema.instant import to_us

Command = TypeVar("Command", bound=Callable[..., Any])


def filter_argument(words: Mapping[str, tuple[str, ...]]) -> Callable[[Command], Command]:
    """[FILTER]..., whose keys are `words`."""
    return click.argument("filters", nargs=-1, metavar="[KEY:VALUE]...", shell_complete=filter_term(words))


def outcome_options(outcomes: Sequence[str], of: str) -> Callable[[Command], Command]:
    """--outcome and --failed. `of`: whose outcome it is, in words."""

    def add(command: Command) -> Command:
        outcome = click.option(
            "--outcome", type=click.Choice(list(outcomes)), multiple=True, metavar="OUTCOME",
            help=f"Only {of} this one; may be repeated: {', '.join(outcomes)}.",
        )  # fmt: skip
        failed = click.option("--failed", is_flag=True, help=f"Only {of} any but completed: --outcome {UNSUCCESSFUL}.")
        return failed(outcome(command))

    return add


def job_options(command: Command) -> Command:
    """--module, --verb, --namespace and --label."""
    for each in (
        click.option("--label", type=Label(), multiple=True, help="Only of jobs with this label; may be repeated."),
        click.option("--namespace", default="", help="Only in this namespace."),
        click.option("--verb", default="", help="Only of verbs with this name."),
        click.option("--module", default="", help="Only of this module."),
    ):
        command = each(command)
    return command


def sort_option(sorts: Sequence[str], words: str) -> Callable[[Command], Command]:
    """--sort; `words` say what each of them puts first."""
    return click.option("--sort", type=click.Choice(list(sorts)), help=f"What comes first.  {words}")


count_option = click.option("--count", is_flag=True, help="Only say how many there are.")


def execution_query(filters: tuple[str, ...], values: dict[str, Any]) -> ExecutionQuery:
    """Of both. `values`: of the options, by name. Raises click.UsageError, and Failure for an instant to come."""
    now = wall_now()
    terms = [*_split(filters), *_of_options(values, ("job", "runner", "module", "verb", "namespace", "sort"))]
    query = _read(lambda: read_execution_terms(terms, to_us(now)))
    for name in ("since", "until"):
        if values[name] is not None and getattr(query, name) is not None:
            raise click.UsageError(f"--{name} and {name}: are the same; give one of them")
    if values["since"] is not None:
        query = query._replace(since=to_us(past("--since", values["since"])))
    if values["until"] is not None:
        query = query._replace(until=to_us(resolved(values["until"], end_of_day=True)))
    if query.since is not None and query.until is not None and query.since > query.until:
        raise click.UsageError("--since is after --until, so nothing can match; exchange them")
    return query


def job_query(filters: tuple[str, ...], values: dict[str, Any]) -> JobQuery:
    """Of both. `values`: of the options, by name. Raises click.UsageError."""
    terms = [*_split(filters), *(Term("status", each) for each in values["status"])]
    return _read(lambda: read_job_terms([*terms, *_of_options(values, ("module", "verb", "namespace", "sort"))]))


def given(filters: tuple[str, ...], values: dict[str, Any]) -> dict[str, object]:
    """What `nothing_found` names."""
    shown = {name: value for name, value in values.items() if name not in {"label", "outcome", "status", "sort"}}
    shown |= {name: f" --{name} ".join(values.get(name, ())) for name in ("outcome", "status")}
    shown["label"] = " --label ".join(f"{key}={value}" for key, value in values["label"])
    return shown | {"": " ".join(filters)}


def _split(filters: Iterable[str]) -> list[Term]:
    return _read(lambda: [term for text in filters for term in split_terms(text)])


def _of_options(values: Mapping[str, Any], names: Sequence[str]) -> list[Term]:
    terms = [Term(name, values[name]) for name in names if values[name]]
    terms += [Term("outcome", each) for each in values["outcome"]]
    terms += [Term("outcome", UNSUCCESSFUL)] if values["failed"] else []
    return terms + [Term("label", f"{key}={value}") for key, value in values["label"]]


Read = TypeVar("Read")


def _read(read: Callable[[], Read]) -> Read:
    try:
        return read()
    except FilterError as error:
        raise click.UsageError(error.message) from error


__all__ = [
    "EXECUTION_SORTS", "EXECUTION_WORDS", "JOB_SORTS", "JOB_WORDS", "LAST_OUTCOMES", "OUTCOMES", "STATUSES",
    "count_option", "execution_query", "filter_argument", "given", "job_options", "job_query", "outcome_options",
    "sort_option",
]  # fmt: skip
