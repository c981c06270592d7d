"""What a runner may do by its grant: host modules of a namespace, and change their jobs."""

from cronring.controller.ports.caller import caller
from cronring.controller.ports.tokens import RunnerGrant, TokenStore
from cronring.schema.identity import Kind
from cronring.schema.spiffe import parse_uri


class GrantRevoked(Exception):
    """The runner's grant was taken away a moment ago: the door is about to end its stream."""


async def grant_of_caller(grants: TokenStore) -> RunnerGrant | None:
    """None: with --insecure everybody may do anything. Raises GrantRevoked, StoreUnavailable, StoreError."""
    who = caller()
    if who.kind is not Kind.RUNNER:
        return None
    found = await grants.runner_grant(parse_uri(who.name).name)
    if found is None:
        raise GrantRevoked
    return found.grant


def outside(grant: RunnerGrant | None, namespace: str, module: str) -> str:
    """Why the grant does not cover that module; "": it does."""
    if grant is None or (grant.namespace == namespace and (not grant.modules or module in grant.modules)):
        return ""
    what = f"modules {', '.join(grant.modules)}" if grant.modules else "any module"
    return (
        f"the runner grant {grant.name!r} is for {what} of namespace {grant.namespace!r}, and not for {module!r} of"
        f" {namespace!r}"
    )
