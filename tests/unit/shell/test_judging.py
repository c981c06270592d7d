"""Who calls is judged before anything of a call is parsed; over real calls, of all four kinds of RPC."""

import asyncio
import contextlib
import gc
from collections import Counter
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, Final

import grpc
import pytest

from cronring.controller.api import door as doors
from cronring.controller.api import judging
from cronring.controller.api.calls import Calls
from cronring.controller.api.door import Door, UnjudgedMethodError
from cronring.controller.api.judging import KEPT_MAX, Insecure, Judge
from cronring.controller.api.policy import Access, Audience, Reach
from cronring.controller.api.requests import ACTOR_LENGTH_MAX, actor
from cronring.controller.api.throttle import Allowances, Throttle
from cronring.controller.core.rates import Rate
from cronring.controller.errors import StoreUnavailable, Unauthenticated
from cronring.controller.ports.caller import caller, calling
from cronring.protos.cronring.v1.jobs_pb2 import GetJobRequest, Job
from cronring.protos.problems import Fate, Reason, said
from cronring.schema.identity import EVERYWHERE, LOCAL, NOBODY, Kind, Permission, Principal, Role, RoleGrant
from tests.support.callers import NamedCallers, bearer, counting, judge_of, no_certificate, unlimited
from tests.support.waiting import wait_until

SERVICE: Final = "cronring.v1.Kinds"
KINDS: Final = ("OneOne", "OneMany", "ManyOne", "ManyMany")
MOST: Final = 1_000
GRANTS: Final = {
    "ann": (RoleGrant(Role.VIEWER, "billing"),),
    "bob": (RoleGrant(Role.VIEWER),),
    "carl": (RoleGrant(Role.DEPLOYER), RoleGrant(Role.ADMIN, "other")),
    "dora": (),
}
SMALL: Final = GetJobRequest(key="a").SerializeToString()
LARGE: Final = b"\xff" * 2_000  # no message at all


class Kinds:
    """A handler of each kind, which answers with who calls."""

    async def one_one(self, request: Any, _: Any) -> Job:
        return Job(key=str(caller()), verb=request.key)

    async def one_many(self, request: Any, _: Any) -> AsyncIterator[Job]:
        for _number in range(2):
            await asyncio.sleep(0)
            yield Job(key=str(caller()), verb=request.key)
        if request.key == "stay":
            await asyncio.Event().wait()

    async def many_one(self, requests: Any, _: Any) -> Job:
        keys = [request.key async for request in requests]
        return Job(key=str(caller()), verb="".join(keys))

    async def many_many(self, requests: Any, _: Any) -> AsyncIterator[Job]:
        async for request in requests:
            yield Job(key=str(caller()), verb=request.key)


def handlers(kinds: Kinds) -> dict[str, Any]:
    how: dict[str, Any] = {
        "request_deserializer": GetJobRequest.FromString,
        "response_serializer": Job.SerializeToString,
    }
    return {
        "OneOne": grpc.unary_unary_rpc_method_handler(kinds.one_one, **how),
        "OneMany": grpc.unary_stream_rpc_method_handler(kinds.one_many, **how),
        "ManyOne": grpc.stream_unary_rpc_method_handler(kinds.many_one, **how),
        "ManyMany": grpc.stream_stream_rpc_method_handler(kinds.many_many, **how),
    }


class House:
    """A server with a door. `parsed`: what was made messages of."""

    def __init__(self) -> None:
        self.callers = NamedCallers(**GRANTS)
        self.refused: list[str] = []
        self.parsed: list[bytes] = []
        self.channel: grpc.aio.Channel

    def exception(self, event: str, error: BaseException) -> None:
        raise AssertionError(event) from error

    async def ask(self, kind: str, who: str | None, raw: bytes = SMALL, *, sends: int = 2, **more: Any) -> list[Job]:
        """What is answered. `sends`: how many messages of a stream; of two, it says that this was all.

        Raises AioRpcError.
        """
        path, read = f"/{SERVICE}/{kind}", Job.FromString
        metadata = more.get("metadata", () if who is None else bearer(who))
        call: Any
        match kind:
            case "OneOne":
                return [await self.channel.unary_unary(path, None, read)(raw, metadata=metadata)]
            case "OneMany":
                return [job async for job in self.channel.unary_stream(path, None, read)(raw, metadata=metadata)]
            case "ManyOne":
                call = self.channel.stream_unary(path, None, read)(None, metadata=metadata)
                await self._send(call, raw, sends)
                return [await call]
            case _:
                call = self.channel.stream_stream(path, None, read)(None, metadata=metadata)
                await self._send(call, raw, sends)
                return [job async for job in call]

    async def _send(self, call: Any, raw: bytes, count: int) -> None:
        for _ in range(count):
            await call.write(raw)
        if count > 1:
            await call.done_writing()

    async def refuses(
        self, kind: str, who: str | None, raw: bytes = SMALL, sends: int = 0, **more: Any
    ) -> tuple[grpc.StatusCode, str]:
        """Before a stream has sent anything: who sends to a call that has ended, isn't told why it has."""
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await self.ask(kind, who, raw, sends=sends, **more)
        trailing: Any = refused.value.trailing_metadata()
        assert said(trailing) is not None, "a controller has said it"
        return refused.value.code(), refused.value.details() or ""


def access(audience: Audience = Audience.PEOPLE, reach: Reach = Reach.NAMESPACE) -> Access:
    return Access(audience, Permission.VIEW, reach, MOST)


@pytest.fixture(scope="module", autouse=True)
def _little_to_collect() -> None:
    """Each house is collected as garbage. What tests of other files have left would be looked through each time."""
    gc.collect()
    gc.freeze()


@contextlib.asynccontextmanager
async def opened(house: House, judge: Judge, monkeypatch: pytest.MonkeyPatch, rule: Access) -> AsyncIterator[House]:
    monkeypatch.setattr(doors, "POLICY", {f"/{SERVICE}/{kind}": rule for kind in KINDS})
    admitted: Any = vars(doors)["admitted"]

    def spied(kind: Any, raw: bytes) -> Any:
        house.parsed.append(raw)
        return admitted(kind, raw)

    monkeypatch.setattr(doors, "admitted", spied)
    server = grpc.aio.server()
    door = Door(server, counting(house.refused), Calls(house, counting([]), lambda: None), judge)
    door.add_registered_method_handlers(SERVICE, handlers(Kinds()))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as house.channel:
        yield house
    await server.stop(None)
    door.close()
    del server, door
    gc.collect()  # what gRPC leaves of a server wants its loop


@pytest.fixture(params=[Reach.NAMESPACE])
async def house(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    """Its callers have tokens. The parameter: where one must have VIEW; None: it is insecure."""
    house = House()
    judge: Judge = Insecure() if request.param is None else judge_of(house.callers)
    async with opened(house, judge, monkeypatch, access(reach=request.param or Reach.CLUSTER)):
        yield house


insecure = pytest.mark.parametrize("house", [None], indirect=True)
of_the_cluster = pytest.mark.parametrize("house", [Reach.CLUSTER], indirect=True)
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
async def test_handlers_know_who_calls(house: House, kind: str) -> None:
    found = await house.ask(kind, "ann")
    assert {job.key for job in found} == {"token:ann"}
    assert "".join(job.verb for job in found) == ("a" if kind == "OneOne" else "aa")
    assert caller() == NOBODY, "of its call only"


@insecure
@each_kind
async def test_an_insecure_door_takes_everybody_for_local(house: House, kind: str) -> None:
    assert {job.key for job in await house.ask(kind, None)} == {str(LOCAL)}


@each_kind
@pytest.mark.parametrize("raw", [SMALL, LARGE])
async def test_without_a_good_token_nothing_is_parsed(house: House, kind: str, raw: bytes) -> None:
    for who, says in ((None, "no token"), ("gone", "this token was revoked")):
        code, text = await house.refuses(kind, who, raw)
        assert code == grpc.StatusCode.UNAUTHENTICATED
        assert says in text
        assert text.endswith("send `authorization: Bearer TOKEN`")
    assert (house.parsed, Counter(house.refused)) == ([], {"unauthenticated": 2})


@each_kind
@pytest.mark.parametrize("raw", [SMALL, LARGE])
async def test_without_the_permission_nothing_is_parsed(house: House, kind: str, raw: bytes) -> None:
    code, text = await house.refuses(kind, "dora", raw)
    assert (code, text) == (
        grpc.StatusCode.PERMISSION_DENIED,
        "this takes view in some namespace; token:dora has no role",
    )
    assert (house.parsed, Counter(house.refused)) == ([], {"forbidden": 1})


@of_the_cluster
async def test_what_is_of_the_cluster_takes_the_permission_everywhere(house: House) -> None:
    code, text = await house.refuses("OneOne", "ann")
    assert code == grpc.StatusCode.PERMISSION_DENIED
    assert text == "this takes view in all namespaces; token:ann has viewer@billing"
    assert (await house.ask("OneOne", "bob"))[0].key == "token:bob"
    assert (await house.ask("OneOne", "carl"))[0].key == "token:carl"


@each_kind
async def test_size_is_judged_after_identity_and_before_parsing(house: House, kind: str) -> None:
    code, text = await house.refuses(kind, "ann", LARGE, sends=1)
    assert (code, "2000 bytes; at most 1000" in text) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)
    assert (house.parsed, Counter(house.refused)) == ([], {"request": 1})


@pytest.mark.parametrize(
    "metadata",
    [
        (("authorization", "Basic test-ann"),),
        (("authorization", "Bearer"),),
        (("authorization", "Bearer "),),
        (("authorization", "test-ann"),),
        (("authorization", "Bearer test-ann"), ("authorization", "Bearer test-bob")),
        (("authorization", "Bearer other-ann"),),
        (("authorization-bin", b"Bearer test-ann"),),
    ],
)
async def test_what_is_no_bearer_token_is_refused(house: House, metadata: Any) -> None:
    code, _ = await house.refuses("OneOne", None, metadata=metadata)
    assert (code, house.callers.asked) == (grpc.StatusCode.UNAUTHENTICATED, [])


async def test_the_scheme_may_be_written_in_any_case(house: House) -> None:
    assert await house.ask("OneOne", None, metadata=(("authorization", "bearer test-ann"),))


async def test_a_stream_ends_once_its_token_is_revoked(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "_JUDGED_AGAIN_S", 0.01)
    monkeypatch.setattr(judging, "KEPT_S", 0.0)
    path = f"/{SERVICE}/OneMany"
    call: Any = house.channel.unary_stream(path, None, Job.FromString)(
        GetJobRequest(key="stay").SerializeToString(), metadata=bearer("ann")
    )
    assert (await call.read()).key == "token:ann"
    assert (await call.read()).key == "token:ann"
    await wait_until(lambda: len(house.callers.asked) > 3, "it was not judged again")
    del house.callers.principals["ann"]
    assert await call.code() == grpc.StatusCode.UNAUTHENTICATED
    assert (await call.details()).startswith(
        "what was shown when this call began is no longer good: this token was revoked"
    )
    assert Counter(house.refused) == {"unauthenticated": 1}


async def test_a_stream_ends_once_its_caller_has_other_roles(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "_JUDGED_AGAIN_S", 0.01)
    monkeypatch.setattr(judging, "KEPT_S", 0.0)
    call: Any = house.channel.unary_stream(f"/{SERVICE}/OneMany", None, Job.FromString)(
        GetJobRequest(key="stay").SerializeToString(), metadata=bearer("ann")
    )
    await call.read()
    await call.read()
    house.callers.principals["ann"] = Principal(Kind.TOKEN, "ann", (RoleGrant(Role.VIEWER, "other"),))
    assert await call.code() == grpc.StatusCode.UNAUTHENTICATED
    assert await call.details() == "what the caller may do has changed; call again"


async def test_a_stream_goes_on_while_nobody_can_tell(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "_JUDGED_AGAIN_S", 0.01)
    monkeypatch.setattr(judging, "KEPT_S", 0.0)
    away: list[str] = []

    async def principal(token: str) -> Principal:
        away.append(token)
        raise StoreUnavailable("away")

    call: Any = house.channel.unary_stream(f"/{SERVICE}/OneMany", None, Job.FromString)(
        GetJobRequest(key="stay").SerializeToString(), metadata=bearer("ann")
    )
    await call.read()
    monkeypatch.setattr(house.callers, "principal", principal)
    await wait_until(lambda: len(away) > 3, "it was not judged again")
    assert not call.done()
    assert (await house.refuses("OneOne", "bob"))[0] == grpc.StatusCode.UNAVAILABLE
    call.cancel()


@pytest.mark.parametrize(
    ("audience", "code"),
    [(Audience.RUNNERS, grpc.StatusCode.UNAUTHENTICATED), (Audience.CONTROLLERS, grpc.StatusCode.UNAUTHENTICATED)],
)
async def test_a_token_is_no_certificate(
    monkeypatch: pytest.MonkeyPatch, audience: Audience, code: grpc.StatusCode
) -> None:
    house = House()
    async with opened(house, judge_of(house.callers), monkeypatch, access(audience, Reach.CLUSTER)):
        assert (await house.refuses("ManyMany", "bob"))[0] == code
    assert (house.parsed, house.callers.asked) == ([], [])


async def test_nobody_is_asked_for_a_token_where_anyone_may_call(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House()
    async with opened(house, judge_of(house.callers), monkeypatch, access(Audience.ANYONE)):
        assert (await house.ask("OneOne", None))[0].key == str(NOBODY)


def test_what_is_no_kind_of_rpc_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "POLICY", {f"/{SERVICE}/Odd": access()})
    odd = handlers(Kinds())["OneMany"]._replace(request_streaming=True)
    server: Any = None
    door = Door(server, counting([]), Calls(House(), counting([]), lambda: None), Insecure())
    with pytest.raises(UnjudgedMethodError, match=r"Odd is of no kind of RPC"):
        door.add_registered_method_handlers(SERVICE, {"Odd": odd})
    door.close()


def context_of(token: str) -> Any:
    metadata = (("authorization", f"Bearer {token}"),)
    return SimpleNamespace(invocation_metadata=lambda: metadata, peer=lambda: "ipv4:127.0.0.1:7")


async def test_a_token_is_asked_for_once_a_second() -> None:
    callers, now = NamedCallers(**GRANTS), [0.0]
    judge = judging.Known([callers], no_certificate, unlimited(), lambda: now[0])
    for now[0] in (0.0, 0.5, 0.99):
        assert (await judge.judged(access(), context_of("test-ann"))).name == "ann"
        with pytest.raises(Unauthenticated, match="revoked"):
            await judge.judged(access(), context_of("test-gone"))
    assert callers.asked == ["test-ann", "test-gone"]
    now[0] = 1.0
    await judge.judged(access(), context_of("test-ann"))
    assert callers.asked == ["test-ann", "test-gone", "test-ann"]


async def test_no_more_than_so_many_tokens_are_kept() -> None:
    callers = NamedCallers(**GRANTS)
    judge = judging.Known([callers], no_certificate, unlimited(), lambda: 0.0)
    for number in range(KEPT_MAX + 10):
        with pytest.raises(Unauthenticated):
            await judge.judged(access(), context_of(f"test-{number}"))
    assert len(judge._verdicts._wrong) == KEPT_MAX
    assert all(isinstance(name, bytes) and len(name) == 32 for name in judge._verdicts._wrong), "hashes, and no tokens"
    await_again = len(callers.asked)
    with pytest.raises(Unauthenticated):
        await judge.judged(access(), context_of("test-0"))
    assert len(callers.asked) == await_again + 1, "the oldest went first"


@pytest.mark.parametrize(
    ("principal", "requested_by", "by"),
    [
        (LOCAL, "ada", "ada"),
        (LOCAL, "", "ipv4:127.0.0.1:7"),
        (Principal(Kind.TOKEN, "ci", (RoleGrant(Role.ADMIN, EVERYWHERE),)), "", "token:ci"),
        (Principal(Kind.TOKEN, "ci"), "ada", "token:ci"),
        (Principal(Kind.USER, "u" * 190), "a" * 200, f"user:{'u' * 190}"),
        (NOBODY, "ada", "local:nobody"),
    ],
)
def test_who_does_it_is_who_calls(principal: Principal, requested_by: str, by: str) -> None:
    context: Any = SimpleNamespace(peer=lambda: "ipv4:127.0.0.1:7")
    with calling(principal):
        assert actor(requested_by, context) == by
    assert len(by) <= ACTOR_LENGTH_MAX


def throttled(callers: NamedCallers, **allowances: Any) -> Judge:
    plenty = Rate(1_000_000, 1_000_000)
    allowed = Allowances(plenty, strangers=plenty, lookups=plenty, members=plenty)._replace(**allowances)
    return judging.Known([callers], no_certificate, Throttle(allowed, lambda: 0))


@each_kind
async def test_who_calls_too_often_is_told_when_to_come_again(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House()
    judge = throttled(house.callers, calls=Rate(4, 1))
    async with opened(house, judge, monkeypatch, access()):
        assert await house.ask(kind, "ann")
        house.parsed.clear()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await house.ask(kind, "ann", LARGE, sends=0)
        trailing: Any = refused.value.trailing_metadata()
        word = said(trailing)
        assert word is not None
        assert (refused.value.code(), word.reason, word.retry_s) == (
            grpc.StatusCode.RESOURCE_EXHAUSTED, Reason.RATE_LIMITED, 0.25,
        )  # fmt: skip
        assert word.fate is Fate.NOT_DONE
        assert await house.ask(kind, "bob"), "others go on"
    assert (house.refused, LARGE in house.parsed) == (["rate"], False)


async def test_so_many_streams_are_open_for_each_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House()
    stay = GetJobRequest(key="stay").SerializeToString()
    async with opened(house, throttled(house.callers, streams=2), monkeypatch, access()):
        stream: Any = house.channel.unary_stream(f"/{SERVICE}/OneMany", None, Job.FromString)
        open_ones = [stream(stay, metadata=bearer("ann")) for _ in range(2)]
        for call in open_ones:
            assert (await call.read()).key == "token:ann"
        code, text = await house.refuses("OneMany", "ann", LARGE)
        assert (code, text) == (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "of streams token:ann has 2 open at this controller, and may have no more; close some",
        )
        assert await house.ask("OneOne", "ann"), "what doesn't last is no stream"
        assert await house.ask("OneMany", "bob")
        open_ones[0].cancel()

        async def has_room() -> bool:
            with contextlib.suppress(grpc.aio.AioRpcError):
                return bool(await house.ask("OneMany", "ann"))
            return False

        await wait_until(has_room, "a stream that has ended still counts")
    assert house.refused.count("streams") >= 1


async def test_a_request_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "_MESSAGE_S", 0.05)
    house = House()
    async with opened(house, judge_of(house.callers), monkeypatch, access()):
        call: Any = house.channel.stream_unary(f"/{SERVICE}/OneOne", None, Job.FromString)(None, metadata=bearer("ann"))
        assert await call.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert await call.details() == "the request's message is not here after 50ms"


async def test_a_request_without_a_message_is_refused(house: House) -> None:
    call: Any = house.channel.stream_unary(f"/{SERVICE}/OneOne", None, Job.FromString)(None, metadata=bearer("ann"))
    await call.done_writing()
    assert (await call.code(), await call.details()) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "the request has no message",
    )


async def test_who_is_refused_hears_so_before_sending_anything(house: House) -> None:
    """So strangers have nothing received for them, not even bytes."""
    call: Any = house.channel.stream_unary(f"/{SERVICE}/OneOne", None, Job.FromString)(None, metadata=bearer("gone"))
    assert await call.code() == grpc.StatusCode.UNAUTHENTICATED
