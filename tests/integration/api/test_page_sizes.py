"""Every list has pages of 100 unless it is asked for others, up to 1,000; and so its answer has a bound."""

from typing import Any, Final

import grpc
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor

from cronring.controller.api.paging import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX
from cronring.controller.api.policy import POLICY
from cronring.protos.problems import said
from tests.attacks.wire import METHODS
from tests.integration.api.conftest import Filled
from tests.support.callers import bearer
from tests.support.waiting import TIMEOUT_S

LISTS: Final = {method.name: method for method in METHODS if method.name.startswith("List")}
# That of grpc.health names services; books are so many entries of the jobs that are named.
OURS: Final = sorted(set(LISTS) - {"List", "ListBooks"})
WATCHES: Final = {method.name: method for method in METHODS if method.name.startswith("Watch")}
OTHERS: Final = {"ListDue": ("limit", 100)}  # those whose bound has another name, or is another
ROOT: Final = bearer("root")


def request_of(method: MethodDescriptor, **fields: Any) -> Any:
    kind: Any = message_factory.GetMessageClass(method.input_type)
    if method.name == "ListActivations":
        fields["key"] = "billing/xm.xb"
    if method.name == "ListSetJobs":
        fields |= {"namespace": "billing", "name": "xs"}
    if method.name in {"ListMessages", "ListDeadLetters"}:
        fields |= {"namespace": "billing", "queue": "xq"}
    return kind(**fields)


async def ask(filled: Filled, method: MethodDescriptor, who: Any = ROOT, **fields: Any) -> Any:
    answer: Any = message_factory.GetMessageClass(method.output_type)
    path = f"/{method.containing_service.full_name}/{method.name}"
    call: Any = filled.channel.unary_unary(path, None, answer.FromString)
    return await call(request_of(method, **fields).SerializeToString(), metadata=who, timeout=TIMEOUT_S)


def rows(answer: Any) -> list[Any]:
    """Of the field that repeats."""
    (field,) = [each for each in answer.DESCRIPTOR.fields if each.is_repeated]
    found: list[Any] = list(getattr(answer, field.name))
    return found


def test_these_are_all_lists() -> None:
    paths = {path for path in POLICY if path.startswith("/cronring.v1.") and "/List" in path}
    assert {path.rpartition("/")[2] for path in paths} == {*OURS, "ListBooks"}
    assert len(OURS) > 10


async def test_pages_have_bounds(filled: Filled) -> None:
    """All on what one scene has, as that takes seconds."""
    for name in OURS:
        await bounds_hold(filled, name)
        if name not in OTHERS:
            await pages_come_to_the_whole(filled, name)


async def bounds_hold(filled: Filled, name: str) -> None:
    field, most = OTHERS.get(name, ("page_size", PAGE_SIZE_MAX))
    method = LISTS[name]
    for wrong in (0, -1, most + 1, 2**31 - 1):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await ask(filled, method, **{field: wrong})
        trailing: Any = refused.value.trailing_metadata()
        word = said(trailing)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT, name
        assert word is not None
        assert [what for what, _ in word.violations] == [field]
    for right in (1, most):
        assert len(rows(await ask(filled, method, **{field: right}))) <= right
    assert len(rows(await ask(filled, method))) <= PAGE_SIZE_DEFAULT


async def pages_come_to_the_whole(filled: Filled, name: str) -> None:
    method = LISTS[name]
    whole, parts, token = rows(await ask(filled, method)), [], ""
    for _ in range(len(whole) + 1):
        page = await ask(filled, method, page_size=1, page_token=token)
        parts += rows(page)
        token = page.next_page_token
        if not token:
            break
    assert [part.SerializeToString(deterministic=True) for part in parts] == [
        row.SerializeToString(deterministic=True) for row in whole
    ], name
    assert not token, name


async def test_totals_are_of_all_pages_and_of_what_one_sees(filled: Filled) -> None:
    counted = [name for name in OURS if "total" in LISTS[name].input_type.fields_by_name]
    assert len(counted) == 11, "those of jobs and executions among them"
    made = {method.name: method for method in METHODS}
    await ask(filled, made["PutMessage"], namespace="billing", queue="xq", payload="1")
    await ask(filled, made["CreateRunnerGrant"], namespace="billing", name="east")
    await ask(filled, made["CreateToken"], grants=[{"role": "viewer", "namespace": "billing"}], name="ci")
    for name in counted:
        assert await total_of(filled, name, ROOT) >= (name != "ListSessions"), "nobody has logged in"
        if name != "ListWebhooks":  # they are of all namespaces
            await total_of(filled, name, bearer("admin"))


async def total_of(filled: Filled, name: str, who: Any) -> int:
    whole = await ask(filled, LISTS[name], who=who)
    assert not whole.HasField("total"), name
    page = await ask(filled, LISTS[name], who=who, page_size=1, total=True)
    assert (page.total.count, page.total.at_least) == (len(rows(whole)), False), name
    rest = await ask(filled, LISTS[name], who=who, page_size=1, total=True, page_token=page.next_page_token)
    assert rest.total == page.total, name
    return int(page.total.count)


def test_watches_are_bounded_by_what_is_there_and_not_by_pages() -> None:
    """Each tells all that matches, then changes: in pieces, which wait until they are read."""
    assert not [name for name, method in WATCHES.items() if "page_size" in method.input_type.fields_by_name]
