"""The root of the command line, and what turns expected errors into messages."""

from importlib import metadata
from typing import Any, Final

import click

from cronring.cli.failures import translated
from cronring.cli.interrupts import EXIT_INTERRUPTED, heard
from cronring.cli.printing import guard_streams, say
from cronring.cli.registry import Commands
from cronring.cli.variables import warn_of_unknown

COMMANDS: Final = Commands({
    "apply": "apply", "audit": "audit", "audit-log": "audit_log", "certs": "certs", "check": "check",
    "cluster": "cluster",
    "completion": "completion", "console": "console", "controller": "controller", "convert": "convert",
    "defaults": "defaults",
    "deploy": "deployments:deploy",
    "deployments": "deployments", "dev": "dev", "doctor": "doctor", "drill": "drill", "events": "events",
    "executions": "executions",
    "explain": "explain", "import": "importing:import_group", "jobs": "jobs", "limits": "limits", "lint": "lint",
    "login": "login", "logout": "login:logout", "logs": "logs", "migrate": "migrate", "next": "next:next_ticks",
    "plan": "plan", "queues": "queues", "rollback": "rollback", "runner": "runner", "runner-grant": "runner_grant",
    "schema": "check:schema", "secrets-key": "secrets_key", "sets": "sets", "session": "web_session", "stats": "stats",
    "template": "templates:template", "timeline": "timeline", "token": "token", "top": "top",
    "undeploy": "deployments:undeploy", "upcoming": "upcoming", "webhook": "webhook", "whoami": "whoami", "why": "why",
    "workspaces": "workspaces",
})  # fmt: skip


class Root(click.Group):
    """Shows expected errors without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        warn_of_unknown(self)
        try:
            with heard():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
        except click.Abort as error:
            # A question that Ctrl-C answered; "no" is an Abort, too.
            if isinstance(error.__context__, KeyboardInterrupt):
                raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
            raise
        except click.ClickException:
            raise
        except Exception as error:
            failure = translated(error)
            if failure is None:
                raise
            raise failure from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Who forgets the group, as in "cronring trigger", is told of `cronring jobs trigger`."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            of_groups = [
                f"`{ctx.command_path} {group} {args[0]}`"
                for group, command in sorted(self.commands.items())
                if isinstance(command, click.Group) and args[0] in command.commands
            ]
            if not of_groups:
                raise
            raise click.UsageError(f"{error.message} Did you mean {' or '.join(of_groups)}?", ctx) from None


def print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        say(f"cronring {metadata.version('cronring')}")
        ctx.exit()


@click.group(
    cls=Root,
    commands=COMMANDS,
    context_settings={
        "auto_envvar_prefix": "CRONRING",
        "help_option_names": ["-h", "--help"],
        "max_content_width": 110,
    },
    epilog="Exit codes: 0 done; 1 the answer is no: refused, invalid, not found, not clean, not successful; "
    "2 wrong usage; 3 no answer: no controller or no database can be reached, or it is unknown whether it was done; "
    "130 Ctrl-C.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=print_version, help="Print the version."
)
def cli() -> None:
    """Distributed cron for services: every tick runs once, on time, and leaves a record.

    \b
    Try it:    cronring dev module.py            a whole cluster on this machine
    Write it:  cronring check module.py          is my module right?
               cronring next "0 6 1 * *"         when would this run?
               cronring explain "0 6 1 * *"      in words, and how often
               cronring lint module.py           what did I probably not mean?
               cronring import crontab FILE      a module of a crontab
               cronring plan module.py           which ticks will change?
    Run it:    cronring migrate                  the tables in PostgreSQL
               cronring controller               one of a few replicas
               cronring runner module.py         hosts the module's verbs
               cronring template set NAME ...    defaults of jobs by API
               cronring limits set MODULE ...    how many run at once
               cronring defaults set ...         what jobs have that don't say it
               cronring workspaces list          tenants, by a label
               cronring apply jobs.yaml          jobs as files say them
               cronring queues consume NAME ...  a command for each message
    Ask it:    cronring jobs list                what runs when
               cronring executions list          what ran, and how it ended
               cronring logs -f billing.refresh  what it prints, while it runs
               cronring events --follow          what happens, all of it
               cronring queues list              which messages wait, and for whom
               cronring cluster members          who is there
               cronring why billing.close_month  why a tick ran, or not
               cronring jobs books JOB           what became of its ticks
               cronring timeline --since -2h     what happened, and when?
               cronring audit --since -1d        did every tick end as it must?
               cronring stats                    how do all jobs do?
               cronring upcoming                 what comes, and herds
               cronring doctor                   what is wrong?
               cronring top                      what happens now? live
               cronring console                  all of it in a browser
               cronring drill kill-owner         do others take over in time?
    Guard it:  cronring token create ...         who may call
               cronring runner-grant create ...  which runners may join
               cronring session list             which browsers are logged in
               cronring audit-log list           who changed what?
               cronring login                    be somebody, by an OIDC issuer
               cronring whoami                   who am I, and what may I do?
    Hear it:   cronring webhook add NAME URL     tell a URL of failures

    Every option can be given as an environment variable: CRONRING, the command and the option, such as
    CRONRING_JOBS_LIST_LIMIT. Those that commands share go without the command: CRONRING_CONTROLLERS,
    CRONRING_DATABASE_URL, CRONRING_OUTPUT, CRONRING_AS, CRONRING_TOKEN_FILE, CRONRING_CA, and all of controller and
    runner. CRONRING_TOKEN is a token itself. NO_COLOR=1 and CLICOLOR=0 leave colours out.
    """


def run() -> None:
    guard_streams()
    cli(prog_name="cronring")
