"""Completion of names while the user types. It must be quick, and it must never print an error."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import click

    from cronring.client import AsyncClient

TIMEOUT_S: Final = 0.8


def job_key(ctx: "click.Context", param: "click.Parameter", incomplete: str) -> list[str]:
    """Keys of jobs that begin with what was typed; none when no controller answers at once."""
    return _known(ctx, param, incomplete, _job_keys)


def deployment_key(ctx: "click.Context", param: "click.Parameter", incomplete: str) -> list[str]:
    """The same for keys of deployments."""
    return _known(ctx, param, incomplete, _deployment_keys)


def active_module(ctx: "click.Context", param: "click.Parameter", incomplete: str) -> list[str]:
    """The same for modules that have an active deployment."""
    return _known(ctx, param, incomplete, _active_modules)


def template_name(ctx: "click.Context", param: "click.Parameter", incomplete: str) -> list[str]:
    """The same for names of templates."""
    return _known(ctx, param, incomplete, _template_names)


def limited_group(ctx: "click.Context", param: "click.Parameter", incomplete: str) -> list[str]:
    """The same for what may be limited: active modules, and what is limited already."""
    return _known(ctx, param, incomplete, _groups)


def token_name(ctx: "click.Context", param: "click.Parameter", incomplete: str) -> list[str]:
    """The same for names of tokens that are not revoked."""
    return _known(ctx, param, incomplete, _token_names)


def grant_name(ctx: "click.Context", param: "click.Parameter", incomplete: str) -> list[str]:
    """The same for names of runner grants that are not revoked."""
    return _known(ctx, param, incomplete, _grant_names)


def principal_name(ctx: "click.Context", param: "click.Parameter", incomplete: str) -> list[str]:
    """The same for tokens as the audit log names them."""
    return _known(ctx, param, incomplete, _principal_names)


def filter_term(words: Mapping[str, tuple[str, ...]]) -> Callable[..., list[str]]:
    """Completes one `KEY:VALUE` of a filter, whose keys are `words`, with the words that may follow them."""
    from cronring.schema.filters import Unfinished, suggested

    def complete(ctx: "click.Context", param: "click.Parameter", incomplete: str) -> list[str]:
        key, colon, begun = incomplete.partition(":")
        before = tuple(ctx.params.get(param.name or "") or ())
        shown = f"{key}:"
        # bash takes a colon for a word of its own, and completes what follows it.
        if incomplete == ":" and before:
            key, shown = before[-1], ""
        elif before[-1:] == (":",) and len(before) > 1:
            key, begun, colon, shown = before[-2], incomplete, ":", ""
        if not colon:
            return suggested(Unfinished(0, "", incomplete), words)
        found = [word for word in words.get(key, ()) if word.startswith(begun)]
        if key == "runner":
            found = _known(ctx, param, begun, _runner_ids)
        elif key in words and not words[key]:
            found = _known(ctx, param, begun, lambda client: client.jobs.suggest(key, begun))
        return [f"{shown}{word}" for word in found]

    return complete


async def _job_keys(client: "AsyncClient") -> list[str]:
    return [job.key for job in await client.jobs.list(limit=1000)]


async def _deployment_keys(client: "AsyncClient") -> list[str]:
    return [deployment.key for deployment in await client.deployments.list(limit=1000)]


async def _active_modules(client: "AsyncClient") -> list[str]:
    return sorted({deployment.module for deployment in await client.deployments.list(active_only=True, limit=1000)})


async def _groups(client: "AsyncClient") -> list[str]:
    from cronring.cli.output import group_name

    deployments = await client.deployments.list(active_only=True, limit=1000)
    active = {group_name(deployment.namespace, deployment.module) for deployment in deployments}
    return sorted(active | {group_name(limit.namespace, limit.module) for limit in await client.limits.list()})


async def _template_names(client: "AsyncClient") -> list[str]:
    return sorted({template.name for template in await client.templates.list(limit=1000)})


async def _runner_ids(client: "AsyncClient") -> list[str]:
    return [runner.id for runner in (await client.cluster.get()).runners]


async def _token_names(client: "AsyncClient") -> list[str]:
    return [row.name for row in await client.identities.tokens(limit=1000)]


async def _principal_names(client: "AsyncClient") -> list[str]:
    return [f"token:{name}" for name in await _token_names(client)]


async def _grant_names(client: "AsyncClient") -> list[str]:
    return [row.name for row in await client.identities.runner_grants(limit=1000)]


def _known(
    ctx: "click.Context",
    param: "click.Parameter",
    prefix: str,
    names: Callable[["AsyncClient"], Awaitable[list[str]]],
) -> list[str]:
    import asyncio

    from cronring.cli.credentials import connect
    from cronring.cli.failures import Failure
    from cronring.cli.options import Addresses
    from cronring.client.environment import DEFAULT_CONTROLLER
    from cronring.client.errors import ClientError

    given = ctx.params.get("controllers")
    addresses = Addresses().convert(given, param, ctx) if given else (DEFAULT_CONTROLLER,)

    async def ask() -> list[str]:
        async with asyncio.timeout(TIMEOUT_S), connect(addresses, TIMEOUT_S / 2) as client:
            return [name for name in await names(client) if name.startswith(prefix)]

    try:
        return asyncio.run(ask())
    except (ClientError, Failure, TimeoutError):
        return []
