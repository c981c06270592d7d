"""`cronring check` and `cronring schema`: modules as they are declared, before anything runs."""

import sys
from typing import TYPE_CHECKING

import click

from cronring.cli.clock import wall_now
from cronring.cli.options import option, output_option
from cronring.cli.output import jsonable, print_json
from cronring.cli.printing import say, say_source
from cronring.schema.instant import to_us

if TYPE_CHECKING:
    from cronring.schema.diff import ModuleDifference
    from cronring.schema.lint import LintFinding
    from cronring.schema.module import Module


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@option(
    "--namespace",
    default="default",
    show_default=True,
    help="Where its jobs would live (a .py; a text form says so itself).",
)
@option("--python", metavar="PATH", help="The interpreter that imports FILE.  [default: this one]")
@output_option
def check(file: str, namespace: str, python: str | None, output: str) -> None:
    """Validate a module (FILE.py, or a schema's text form), and print its schema. Exit code 1 if it is wrong.

    With -o json the text form stands in `schema_text`, beside the digest and what was warned of.

    \b
    Examples:
      cronring check billing.py
      cronring check billing.py > billing.schema
      cronring check billing.py -o json | jq -r '.module.verbs[].name'
    """
    from cronring.cli.modules import described
    from cronring.schema.text import print_module

    found = described(file, namespace, python)
    text, warnings = print_module(found.module), warn_of_idle(file, found.module)
    if output == "json":
        print_json({"module": found.module, "digest": found.digest, "schema_text": text, "warnings": warnings})
        return
    say_source(text)


def warn_of_idle(file: str, module: "Module") -> "list[LintFinding]":
    """Name jobs whose ticks are all past, and those that follow what the module doesn't have.

    No error: a module that has been deployed for long may be deployed again, and a job be made by hand.
    """
    from cronring.schema.lint import follows_nobody, never_again

    findings = [*never_again(module, to_us(wall_now())), *follows_nobody(module)]
    for finding in findings:
        where = f"{file}:{finding.line}" if finding.line else file
        say(f"{where}: {finding.level}: verb {finding.verb}: {finding.message}; {finding.remedy}", err=True)
    return findings


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
@output_option
def diff(before: str, after: str, namespace: str, python: str | None, output: str) -> None:
    """Compare two schemas, each a module's .py or a text form. Exit code 0 if they are equal, 1 if they differ.

    + is new in AFTER, - is gone, ~ has changed.

    \b
    Examples:
      cronring schema diff billing.schema billing.py
      cronring schema diff billing.schema billing.py -o json
    """
    from cronring.cli.modules import described
    from cronring.schema.diff import diff_modules

    old, new = (described(file, namespace, python).module for file in (before, after))
    difference = diff_modules(old, new)
    if output == "json":
        print_json({"equal": not difference, **jsonable(difference)})
    else:
        tell_difference(difference)
    sys.exit(1 if difference else 0)


def tell_difference(difference: "ModuleDifference") -> None:
    for line in difference.lines():
        say(line, colour={"+": "green", "-": "red"}.get(line[0], "yellow"))
