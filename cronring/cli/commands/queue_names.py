"""How a command names a queue."""

import click

queue_argument = click.argument("queue", metavar="QUEUE")


def queue_named(queue: str) -> tuple[str, str]:
    """Namespace and name. Raises click.UsageError."""
    namespace, slash, name = queue.rpartition("/")
    if not name or (slash and not namespace):
        raise click.UsageError(f"{queue!r} names no queue; write NAME, or NAMESPACE/NAME")
    return namespace or "default", name
