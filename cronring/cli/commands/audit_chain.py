"""`cronring audit-log export|verify`: the sealed rows, kept elsewhere; and whether all of them are as they were."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cronring.cli.chains import Take, exported_line, read_controllers, read_database, rows_of_files
from cronring.cli.direct import is_direct, is_typed
from cronring.cli.failures import EXIT_FAILED, Failure
from cronring.cli.options import ROW_ID, controllers_option, database_option, output_option, schema_option
from cronring.cli.output import print_fields, print_json
from cronring.cli.printing import progress_bar, say, say_lines, say_source
from cronring.schema.audit_chain import START, ChainLink, ChainPart, parse_link
from cronring.schema.audit_check import ChainCheck, ChainFault

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

FILE: Final = click.Path(path_type=Path, dir_okay=False)


class ChainPlace(click.ParamType[ChainLink]):
    """SEQ:HASH."""

    name = "SEQ:HASH"

    def convert(self, value: str | ChainLink, param: click.Parameter | None, ctx: click.Context | None) -> ChainLink:
        if isinstance(value, ChainLink):
            return value
        try:
            return parse_link(value.strip())
        except ValueError as error:
            self.fail(f"{value[:100]!r}: {error}", param, ctx)


@click.command()
@click.option("--file", type=FILE, help="Write to this new file; with --after, append to it.")
@click.option("--after", type=ROW_ID, metavar="SEQ",
              help="Only rows behind that position: go on where the last export ended.")  # fmt: skip
@database_option
@schema_option
@controllers_option
def export(
    file: Path | None, after: int | None, database_url: str | None, schema: str, controllers: tuple[str, ...]
) -> None:
    """Write all sealed rows, in the order of the chain.

    Each line is a JSON object: a row with its hash, and with the hash before it. Keep the file on another machine:
    whoever may change the database can't change it there. `verify --file` checks it. It takes admin in all namespaces.
    With --database-url it is read from PostgreSQL itself.

    \b
    Examples:
      cronring audit-log export --file audit-2026-11.ndjson
      cronring audit-log export --after 120000 | gzip > more.ndjson.gz
    """
    latest: list[ChainLink] = []
    unsealed = 0
    with _writing(file, goes_on=after is not None) as write:

        def take(part: ChainPart) -> None:
            nonlocal unsealed
            _check_reached(part, after or 0)
            unsealed, previous = part.unsealed, part.previous.hash
            for row in part.rows:
                write(exported_line(row, previous))
                previous = row.hash
            latest[:] = [ChainLink(part.rows[-1].seq, previous)] if part.rows else latest or [part.previous]

        try:
            _read(controllers, database_url, schema, after or 0, "exporting", take)
        except BaseException:
            if latest:
                say(f"it ended early, with row {latest[0].seq}; go on by --after {latest[0].seq}", err=True)
            raise
    waiting = f"; {unsealed:,} are not sealed yet" if unsealed else ""
    say(f"up to {latest[0]}{waiting}; go on by --after {latest[0].seq}", err=True)


def _check_reached(part: ChainPart, after_seq: int) -> None:
    """Raises Failure where nothing follows on what was exported before."""
    if after_seq > part.head.seq:
        raise Failure(
            f"--after {after_seq}: the chain ends with row {part.head.seq}. Was the log cut, or is it another?"
        )
    if 0 < after_seq < part.cut.seq:
        raise Failure(
            f"--after {after_seq}: retention has removed the rows up to {part.cut.seq} (controller --audit-log-days)."
            f" Begin another file, by --after {part.cut.seq}"
        )


@contextlib.contextmanager
def _writing(path: Path | None, *, goes_on: bool) -> Iterator[Callable[[str], None]]:
    """Raises Failure."""
    if path is None:
        yield say_source
        return
    how = os.O_APPEND if goes_on else os.O_EXCL
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600)
    except FileExistsError:
        raise Failure(
            f"--file {path}: it is there. Go on behind its last row by --after SEQ, or name another"
        ) from None
    except OSError as error:
        raise Failure(f"--file {path}: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:

        def write(line: str) -> None:
            try:
                file.write(f"{line}\n")
            except OSError as error:
                raise Failure(f"--file {path}: {error.strerror}") from None

        yield write


@click.command()
@click.option("--file", type=FILE, multiple=True,
              help="Check exported rows, without any controller. May be repeated, in order.")  # fmt: skip
@click.option("--expect", type=ChainPlace(), multiple=True, metavar="SEQ:HASH",
              help="A position that you kept: its hash must still be that. May be repeated.")  # fmt: skip
@database_option
@schema_option
@output_option
@controllers_option
def verify(
    file: tuple[Path, ...], expect: tuple[ChainLink, ...], database_url: str | None, schema: str, output: str,
    controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Check that each row is what was sealed, and that all are there.

    The chain is read from its beginning to its head. The hashes are computed here, whoever the rows come from: a
    controller, PostgreSQL itself (--database-url), or files (--file). It takes admin in all namespaces.

    Whoever owns the database can make the whole chain anew. --expect shows that: give it a head that was printed
    before, or one of a controller's log (audit_log_sealed).

    Exit codes: 0 whole; 1 not, and the rows are named.

    \b
    Examples:
      cronring audit-log verify
      cronring audit-log verify --file audit-2026-11.ndjson
      cronring audit-log verify --expect 120000:5f3c...
    """
    answer = _of_files(file, expect) if file else _of_log(controllers, database_url, schema, expect)
    if output == "json":
        print_json(answer)
    else:
        _print(answer)
    if answer["faults"]:
        raise click.exceptions.Exit(EXIT_FAILED)


def _of_files(paths: Sequence[Path], expected: Sequence[ChainLink]) -> dict[str, object]:
    if is_typed("controllers") or is_typed("database_url"):
        raise click.UsageError("give --file alone, or leave it out: the log is read from one place")
    check: ChainCheck | None = None
    began = START
    for row, previous in rows_of_files(paths):
        if check is None:
            check, began = ChainCheck(previous, expected), previous
        check.take(row)
    if check is None:
        raise Failure("there is no row in what --file names")
    return _answer(check, began, check.finish(), None)


def _of_log(
    controllers: tuple[str, ...], database_url: str | None, schema: str, expected: Sequence[ChainLink]
) -> dict[str, object]:
    check: ChainCheck | None = None
    latest: list[ChainPart] = []

    def take(part: ChainPart) -> None:
        nonlocal check
        if check is None:
            check = ChainCheck(part.cut, expected)
        check.cut(part.cut)  # while it was read
        for row in part.rows:
            check.take(row)
        latest[:] = [part]

    _read(controllers, database_url, schema, 0, "verifying", take)
    assert check is not None, "there is at least one part"
    return _answer(check, latest[0].cut, check.finish(latest[0].head), latest[0].unsealed)


def _answer(
    check: ChainCheck, began: ChainLink, faults: Sequence[ChainFault], unsealed: int | None
) -> dict[str, object]:
    """`unsealed` None: that is not known."""
    shown = [{"kind": fault.kind.value, "seq": fault.seq, "text": fault.text} for fault in faults]
    found = {"rows": check.rows, "begins_behind": str(began), "head": str(check.last), "unsealed": unsealed}
    return found | {"faults": shown, "more_faults": check.more}


def _print(answer: dict[str, object]) -> None:
    fields = [("rows checked", f"{answer['rows']:,}"), ("begin behind", f"{answer['begins_behind']}")]
    fields.append(("head", f"{answer['head']}"))
    if answer["unsealed"] is not None:
        fields.append(("not sealed yet", f"{answer['unsealed']:,}"))
    print_fields(fields)
    faults = answer["faults"]
    assert isinstance(faults, list)
    if not faults:
        say_lines(
            ["", "whole: each row is what was sealed, and none is missing.", "Keep the head elsewhere, for --expect."]
        )
        return
    say_lines(["", *(f"{fault['kind']}: {fault['text']}" for fault in faults)])
    if answer["more_faults"]:
        say(f"and {answer['more_faults']:,} more")
    say_lines([
        "", "NOT WHOLE. Somebody who may write the database has changed the log.",
        "What it was: in an export (audit-log export), or a backup. Who did: PostgreSQL's log.",
    ])  # fmt: skip


def _read(
    controllers: tuple[str, ...], database_url: str | None, schema: str, after_seq: int, label: str, take: Take
) -> None:
    """From PostgreSQL itself where its URL is given, else through a controller; with a bar as long as the chain."""
    with contextlib.ExitStack() as stack:
        bars: list[ProgressBar[int]] = []

        def taken(part: ChainPart) -> None:
            if not bars:
                length = max(1, part.head.seq - part.previous.seq)
                bars.append(stack.enter_context(progress_bar(length, label, show_pos=True)))
            take(part)
            bars[0].update(len(part.rows))

        if is_direct(database_url, "the log is read from one place"):
            read_database(str(database_url), schema, after_seq, taken)
        else:
            read_controllers(controllers, after_seq, taken)
