"""`cronring queues put QUEUE PAYLOAD`: a message."""

from typing import TYPE_CHECKING

import click

from cronring.cli.commands.queue_names import queue_argument, queue_named
from cronring.cli.conditions import idempotency_key_option
from cronring.cli.instants import instant_option, resolved
from cronring.cli.job_options import Payload
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import print_json
from cronring.cli.printing import say
from cronring.cli.session import ask

if TYPE_CHECKING:
    from cronring.client import AsyncClient


@click.command()
@queue_argument
@click.argument("payload", type=Payload())
@click.option("--workspace", default="", metavar="NAME", help="Messages of one are taken in order.")
@instant_option("--not-before", zone="UTC", help="Nobody takes it before this instant")
@idempotency_key_option
@output_option
@controllers_option
def put(
    queue: str, payload: str, workspace: str, not_before: str | None, output: str, controllers: tuple[str, ...]
) -> None:
    """Put a message with this PAYLOAD into QUEUE. Repeated, it puts another one, but for --idempotency-key.

    \b
    Examples:
      cronring queues put reports '{"month": "2026-10"}' --workspace ws_3
      cronring queues put prod/mail @mail.json --idempotency-key order-4711
    """
    namespace, name = queue_named(queue)
    moment = None if not_before is None else resolved(not_before)

    async def question(client: "AsyncClient") -> int:
        from cronring.client.payloads import JsonText

        return await client.queues.put(name, JsonText(payload), workspace, namespace, not_before=moment)

    message_id = ask(controllers, question)
    if output == "json":
        print_json({"id": message_id})
        return
    say(f"{queue}: message {message_id} waits for a consumer")
