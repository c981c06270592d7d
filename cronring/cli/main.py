"""The root of the command line, and what turns expected errors into messages."""

from importlib import metadata
from typing import Any

import click

from cronring.cli.commands.audit import audit
from cronring.cli.commands.check import check, schema
from cronring.cli.commands.cluster import cluster
from cronring.cli.commands.completion import completion
from cronring.cli.commands.controller import controller
from cronring.cli.commands.convert import convert
from cronring.cli.commands.deployments import deploy, deployments, undeploy
from cronring.cli.commands.dev import dev
from cronring.cli.commands.doctor import doctor
from cronring.cli.commands.drill import drill
from cronring.cli.commands.execution_control import cancel_execution, retry_execution, watch_executions
from cronring.cli.commands.executions import executions
from cronring.cli.commands.explain import explain
from cronring.cli.commands.importing import import_group
from cronring.cli.commands.jobs import jobs
from cronring.cli.commands.limits import limits
from cronring.cli.commands.lint import lint
from cronring.cli.commands.logs import logs
from cronring.cli.commands.migrate import migrate
from cronring.cli.commands.next import next_ticks
from cronring.cli.commands.plan import plan
from cronring.cli.commands.rollback import rollback
from cronring.cli.commands.runner import runner
from cronring.cli.commands.stats import stats
from cronring.cli.commands.templates import template
from cronring.cli.commands.top import top
from cronring.cli.commands.webhook import webhook
from cronring.cli.commands.why import why
from cronring.cli.failures import translated


class Root(click.Group):
    """Shows expected errors without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.ClickException:
            raise
        except Exception as error:
            failure = translated(error)
            if failure is None:
                raise
            raise failure from error


def print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"cronring {metadata.version('cronring')}")
        ctx.exit()


@click.group(
    cls=Root,
    context_settings={
        "auto_envvar_prefix": "CRONRING",
        "help_option_names": ["-h", "--help"],
        "max_content_width": 110,
    },
    epilog="Exit codes: 0 done; 1 refused, invalid, not found or not successful; 2 wrong usage; "
    "3 no controller or no database can be reached.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=print_version, help="Print the version."
)
def cli() -> None:
    """Distributed cron for services: every tick runs once, on time, and leaves a record.

    \b
    Try it:    cronring dev module.py            a whole cluster on this machine, live
    Write it:  cronring check module.py          is my module right? what does it declare?
               cronring next "0 6 1 * *"         when would this run?
               cronring explain "0 6 1 * *"      in words, how often, and with changed clocks
               cronring lint module.py           what did I probably not mean?
               cronring import crontab FILE      a module of a crontab
               cronring plan module.py           which ticks would a deployment change?
    Run it:    cronring migrate                  make or update the tables in PostgreSQL
               cronring controller               one of a few replicas beside PostgreSQL
               cronring runner module.py         hosts the module's verbs
               cronring template set NAME ...    defaults that jobs made through the API start from
               cronring limits set MODULE ...    how many of its executions may run at once
    Ask it:    cronring jobs list                what runs when
               cronring executions list          what ran, and how it ended
               cronring logs -f billing.refresh  what it prints, while it runs
               cronring cluster members          who is there
               cronring why billing.close_month  why a tick ran, or not
               cronring audit --since -1d        did every tick end as it must?
               cronring stats                    how do all jobs do?
               cronring doctor                   what is wrong with the cluster, and what to do?
               cronring top                      what does the cluster do now? live
               cronring drill kill-owner         do others take over in time?
    Hear it:   cronring webhook add NAME URL     tell a URL when jobs fail, recover, are late

    Every option can be given as an environment variable, which --help of its command names, such as
    CRONRING_DATABASE_URL and CRONRING_CONTROLLERS.
    """


for command in (
    audit, check, cluster, completion, controller, convert, deploy, deployments, dev, doctor, drill, executions,
    explain, import_group, jobs, limits, lint, logs, migrate, next_ticks, plan, rollback, runner, schema, stats,
    template, top, undeploy, webhook, why,
):  # fmt: skip
    cli.add_command(command)
for command in (cancel_execution, logs, retry_execution, watch_executions):
    executions.add_command(command)


def name_variables(command: click.Command) -> None:
    """Every option's help names its variable: click would only for those that are told one by one."""
    for param in command.params:
        if isinstance(param, click.Option) and param.expose_value:
            param.show_envvar = True
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        name_variables(each)


name_variables(cli)


def main() -> None:
    cli(prog_name="cronring")


if __name__ == "__main__":
    main()
