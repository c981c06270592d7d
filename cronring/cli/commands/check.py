"""`cronring check` and `cronring schema`: modules as they are declared, before anything runs."""

import sys
from typing import TYPE_CHECKING

import click

from cronring.cli.clock import wall_now
from cronring.cli.options import option
from cronring.cli.schedules import to_us

if TYPE_CHECKING:
    from schema.module import Module


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@option(
    "--namespace",
    default="default",
    show_default=True,
    help="Where its jobs would live (a .py; a text form says so itself).",
)
@option("--python", metavar="PATH", help="The interpreter that imports FILE.  [default: this one]")
def check(file: str, namespace: str, python: str | None) -> None:
    """Validate a module (FILE.py, or a schema's text form), and print its schema. Exit code 1 if it is wrong.

    \b
    Examples:
      cronring check billing.py
      cronring check billing.py > billing.schema
    """
    from cronring.cli.modules import described
    from schema.text import print_module

    module = described(file, namespace, python).module
    warn_of_idle(file, module)
    click.echo(print_module(module), nl=False)


def warn_of_idle(file: str, module: "Module") -> None:
    """Name jobs whose ticks are all past, and those that follow what the module doesn't have.

    No error: a module that has been deployed for long may be deployed again, and a job be made by hand.
    """
    from schema.lint import follows_nobody, never_again

    for finding in [*never_again(module, to_us(wall_now())), *follows_nobody(module)]:
        place = f"{file}:{finding.line}" if finding.line else file
        click.echo(f"{place}: {finding.level}: verb {finding.verb}: {finding.message}; {finding.remedy}", err=True)


@click.group()
def schema() -> None:
    """Schemas of modules."""


@schema.command("diff")
@click.argument("before", type=click.Path(exists=True, dir_okay=False))
@click.argument("after", type=click.Path(exists=True, dir_okay=False))
@option(
    "--namespace",
    default="default",
    show_default=True,
    help="Where their jobs would live (a .py; a text form says so itself).",
)
@option("--python", metavar="PATH", help="The interpreter that imports .py files.  [default: this one]")
def diff(before: str, after: str, namespace: str, python: str | None) -> None:
    """Compare two schemas, each a module's .py or a text form. Exit code 0 if they are equal, 1 if they differ.

    + is new in AFTER, - is gone, ~ has changed.

    \b
    Example:
      cronring schema diff billing.schema billing.py
    """
    from cronring.cli.modules import described
    from schema.diff import diff_modules

    old, new = (described(file, namespace, python).module for file in (before, after))
    difference = diff_modules(old, new)
    for line in difference.lines():
        click.secho(line, fg={"+": "green", "-": "red"}.get(line[0], "yellow"))
    sys.exit(1 if difference else 0)
