"""A controller without a key for secrets takes none, and says what to start it with."""

import grpc
import pytest

from cronring.protos.cronring.v1.notifications_pb2 import AddWebhookRequest, ListWebhooksRequest
from cronring.protos.cronring.v1.notifications_pb2_grpc import NotificationsStub
from tests.integration.api.conftest import CALLERS, Scene
from tests.support.callers import NamedCallers, bearer, judge_of
from tests.support.guarded import guarded


async def test_a_webhook_is_refused_and_nothing_is_kept(scene: Scene) -> None:
    async with guarded(scene.database, judge_of(NamedCallers(**CALLERS)), takes_secrets=False) as channel:
        webhooks = NotificationsStub(channel)
        request = AddWebhookRequest(name="pager", url="https://example.com/xyzzy")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await webhooks.AddWebhook(request, metadata=bearer("root"))
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert "start all controllers with --secrets-key FILE" in (refused.value.details() or "")
        listed = await webhooks.ListWebhooks(ListWebhooksRequest(), metadata=bearer("root"))
        assert "pager" not in {webhook.name for webhook in listed.webhooks}
