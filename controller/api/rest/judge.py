"""Who calls by REST: whoever HTTP knows, by a token or a session's cookie, held to the same policy as on gRPC."""

import contextlib

from cronring.controller.api.judging import check
from cronring.controller.api.policy import Access
from cronring.controller.api.rest.context import RestContext
from cronring.controller.api.shown import Shown
from cronring.controller.api.web_identity import WebDoor
from cronring.schema.identity import Principal


class RestJudge:
    """A Judge for a Door whose calls are requests of HTTP."""

    def __init__(self, door: WebDoor) -> None:
        self._door = door

    async def judged(self, access: Access, shown: Shown) -> Principal:
        principal = await self.holder(shown)
        check(principal, access)
        return principal

    async def holder(self, shown: Shown) -> Principal:
        assert isinstance(shown, RestContext), "this door is that of HTTP"
        return (await self._door.judge.judged(shown.request)).principal

    async def still(self, principal: Principal, access: Access, shown: Shown) -> None:
        assert isinstance(shown, RestContext), "this door is that of HTTP"
        await self._door.judge.still(principal, access, shown.request)

    def streaming(self, principal: Principal, access: Access, shown: Shown) -> contextlib.AbstractContextManager[None]:
        return self._door.judge.streaming(principal, access, shown)
