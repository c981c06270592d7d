"""`cronring queues put QUEUE PAYLOAD`: a message by hand."""

import click

from cronring.cli.commands.queue_names import queue_argument, queue_named
from cronring.cli.instants import instant_option, resolved
from cronring.cli.job_options import Payload
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import print_json
from cronring.cli.printing import say
from cronring.cli.session import ask


@click.command()
@queue_argument
@click.argument("payload", type=Payload())
@click.option("--workspace", default="", help="Whose it is: messages of one workspace are taken in order.")
@instant_option("--not-before", zone="UTC", help="Nobody takes it before this instant")
@output_option
@controllers_option
def put(
    queue: str, payload: str, workspace: str, not_before: str | None, output: str, controllers: tuple[str, ...]
) -> None:
    """Put a message into QUEUE: to try a consumer, or to do by hand what a job would have done.

    PAYLOAD is JSON; @FILE reads it, @- standard input. A queue is there with its first message. Where it is unknown
    whether the message was put, look before doing it again: nothing tells two of them apart.

    \b
    Examples:
      cronring queues put reports '{"month": "2026-11"}'
      cronring queues put prod/mail @letter.json --workspace ws_3
      cronring queues put reports null --not-before +30m
    """
    namespace, name = queue_named(queue)
    instant = None if not_before is None else resolved(not_before)
    number = ask(controllers, lambda client: client.queues.put(name, payload, workspace, namespace, not_before=instant))
    if output == "json":
        print_json({"id": number})
        return
    say(f"{queue} has message {number}")
    say(f"  see it: cronring queues messages {queue}")
