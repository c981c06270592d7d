"""What a runner may bring by its grant, and what somebody else has to deploy."""

from typing import Any

import pytest

from cronring.controller.ports.caller import calling
from cronring.controller.ports.store import Deployed
from cronring.controller.ports.tokens import GrantInForce, RunnerGrant
from cronring.controller.runners.registering import Registering
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.schema.identity import Kind, Principal
from tests.support.callers import counting

RUNNER = Principal(Kind.RUNNER, "spiffe://test/runner/billing/east")
GRANT = RunnerGrant(1, "east", "billing", (), True, True, None, 0, "ann", None, None, "")


class Books:
    """A deployer and the grants. `activating`: whether the latest module might become the active one."""

    def __init__(self) -> None:
        self.activating: bool | None = None

    async def runner_grant(self, name: str) -> GrantInForce:
        assert name == "east"
        return GrantInForce(GRANT, None)

    async def register(self, *_: object, may_activate: bool) -> Deployed:
        self.activating = may_activate
        return Deployed("billing/m@1", may_activate, False, (), (), (), [])


@pytest.mark.parametrize(
    ("after", "activates"),
    [
        ("", True),
        ("billing/m.other", True),
        ("other/m.v", False),
        ("m.v", False),  # of the namespace "default"
    ],
)
async def test_who_is_told_of_other_namespaces_is_not_for_a_runner_to_say(after: str, activates: bool) -> None:
    books: Any = Books()
    hosted = wire.HostedModule(digest="a")
    hosted.schema.namespace, hosted.schema.name = "billing", "m"
    hosted.schema.verbs.add(name="v").policy.after = after
    with calling(RUNNER):
        (answer,) = await Registering(books, books, counting([])).modules(wire.Hello(modules=[hosted]))
    assert (answer.problem, answer.active, books.activating) == ("", activates, activates)
