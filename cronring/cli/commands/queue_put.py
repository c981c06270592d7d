"""`cronring queues put QUEUE PAYLOAD`: a message by hand."""

from typing import TYPE_CHECKING

import click

from cronring.cli.commands.queue_names import queue_argument, queue_named
from cronring.cli.conditions import idempotency_key_option
from cronring.cli.conversation import ask
from cronring.cli.instants import instant_option, resolved
from cronring.cli.job_options import Payload
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import print_json
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client import AsyncClient


@click.command()
@queue_argument
@click.argument("payload", type=Payload())
@click.option("--workspace", default="", metavar="NAME", help="Messages of one workspace are taken in order.")
@instant_option("--not-before", zone="UTC", help="Nobody takes it before this instant")
@idempotency_key_option
@output_option
@controllers_option
def put(
    queue: str, payload: str, workspace: str, not_before: str | None, output: str, controllers: tuple[str, ...]
) -> None:
    """Put a message into QUEUE: to try a consumer, or to do by hand what a job would have done.

    PAYLOAD is JSON; @FILE reads it, @- standard input. A queue is there with its first message. Done again, it puts
    another message; with the same --idempotency-key it doesn't.

    \b
    Examples:
      cronring queues put reports '{"month": "2026-11"}'
      cronring queues put prod/mail @mail.json --idempotency-key order-4711
      cronring queues put reports 7 --workspace ws_3
      cronring queues put reports null --not-before +30m
    """
    namespace, name = queue_named(queue)
    instant = None if not_before is None else resolved(not_before)

    async def question(client: "AsyncClient") -> int:
        from cronring.client.payloads import JsonText

        return await client.queues.put(name, JsonText(payload), workspace, namespace, not_before=instant)

    number = ask(controllers, question)
    if output == "json":
        print_json({"id": number})
        return
    say(f"{queue} has message {number}")
    say(f"  see it: cronring queues messages {queue}")
