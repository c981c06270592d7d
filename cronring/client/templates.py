"""Calls about templates: named defaults that jobs start from."""

import builtins
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from google.protobuf.field_mask_pb2 import FieldMask

from cronring.client import convert, model
from cronring.client.channel import Failover
from cronring.client.paging import follow
from cronring.protos.cronring.v1 import templates_pb2
from cronring.protos.cronring.v1.templates_pb2_grpc import TemplatesStub

if TYPE_CHECKING:
    from cronring.protos.cronring.v1.templates_pb2_grpc import TemplatesAsyncStub  # there in the stubs only

Answer = TypeVar("Answer")


class TemplateCalls:
    """Set, get, list, delete. `by` says who asks, which is kept; "": this address. All may be repeated."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def set(
        self,
        name: str,
        spec: model.JobSpec,
        fields: Sequence[str] = (),
        *,
        description: str = "",
        namespace: str = "default",
        by: str = "",
        note: str = "",
        etag: str = "",
    ) -> model.Template:
        """Make a template, or set what `fields` names of it: as `jobs.update` does, and "description".

        Without fields the template is what is given, and no more. Raises Invalid. `etag`: only if it still has this
        one ("*": only if it is there), else EtagMismatch is raised.
        """
        request = templates_pb2.SetTemplateRequest(
            namespace=namespace, name=name, description=description, spec=convert.job_spec(spec),
            update_mask=FieldMask(paths=fields), requested_by=by, note=note, etag=etag,
        )  # fmt: skip
        return convert.template(
            await self._change(lambda stub, timeout: stub.SetTemplate(request, timeout=timeout), repeatable=not etag)
        )

    async def get(self, name: str, namespace: str = "default") -> model.Template:
        """Raises NotFound."""
        request = templates_pb2.GetTemplateRequest(namespace=namespace, name=name)
        return convert.template(await self._unary(lambda stub, timeout: stub.GetTemplate(request, timeout=timeout)))

    async def list(self, namespace: str = "", limit: int | None = None) -> builtins.list[model.Template]:
        """By namespace and name, without payloads. `namespace`: "" for all."""

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[model.Template], str]:
            request = templates_pb2.ListTemplatesRequest(page_size=page_size, page_token=token, namespace=namespace)
            answer = await self._unary(lambda stub, timeout: stub.ListTemplates(request, timeout=timeout))
            return [convert.template(each) for each in answer.templates], answer.next_page_token

        return await follow(fetch, limit)

    async def delete(
        self, name: str, namespace: str = "default", by: str = "", note: str = "", *, etag: str = ""
    ) -> int:
        """How many jobs came from it; they stay as they are. Raises NotFound. `etag`: as of `set`."""
        request = templates_pb2.DeleteTemplateRequest(
            namespace=namespace, name=name, requested_by=by, note=note, etag=etag
        )
        return (await self._change(lambda stub, timeout: stub.DeleteTemplate(request, timeout=timeout))).jobs

    async def _change(
        self, call: "Callable[[TemplatesAsyncStub, float], Awaitable[Answer]]", *, repeatable: bool = False
    ) -> Answer:
        return await self._failover.change(
            lambda channel: call(TemplatesStub(channel), self._failover.timeout_s),
            "`cronring template list`",
            repeatable=repeatable,
        )

    async def _unary(self, call: "Callable[[TemplatesAsyncStub, float], Awaitable[Answer]]") -> Answer:
        return await self._failover.unary(lambda channel: call(TemplatesStub(channel), self._failover.timeout_s))
