"""Calls of verbs through their runners (ctx.jobs), done by the same code as people's calls. docs/decisions/0098"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from google.rpc import code_pb2

from cronring.controller.api.activations import triggered
from cronring.controller.api.job_orders import JobOrders
from cronring.controller.api.job_writes import Put, check_names
from cronring.controller.api.lookup import find_job
from cronring.controller.api.policy import OF_VERBS
from cronring.controller.api.problems import InvalidRequest, status_of
from cronring.controller.api.requests import ACTOR_LENGTH_MAX
from cronring.controller.core.orders.control import NeverRuns
from cronring.controller.errors import CronringError, Denied, Forbidden, StoreUnavailable
from cronring.controller.ports.audit_chain import OnRefusal
from cronring.controller.ports.caller import acting, call_in_hand, caller, calling, known_as, remarking
from cronring.controller.ports.log import FaultLog
from cronring.controller.ports.reads import JobReads
from cronring.controller.ports.store import Control
from cronring.controller.ports.tokens import RunnerGrant, TokenStore
from cronring.controller.ports.verb_calls import CallDone, VerbCall, VerbCalls
from cronring.controller.services.granted import GrantRevoked, grant_of_caller, outside
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.problems import said_in
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.schema.identity import Kind, Permission, Principal, Role, RoleGrant
from cronring.schema.keys import VerbName, namespace_of, qualified

NUMBER_MAX: Final = 10_000  # calls of one execution
_AGAIN: Final = {code_pb2.UNAVAILABLE, code_pb2.RESOURCE_EXHAUSTED, code_pb2.ABORTED}

Do = Callable[[Any, str], Awaitable[object]]


class _Asked(NamedTuple):
    """`of`: the key of the job that runs. `request`: what it asks for; `key`: of the job that this is about."""

    call: VerbCall
    of: str
    method: str
    request: Any
    key: str


class VerbCallsService:
    """Answers calls of the runner whose stream is in hand. `grants`: None where there are none (virtual clusters)."""

    def __init__(
        self,
        store: VerbCalls,
        jobs: JobOrders,
        control: Control,
        reads: JobReads,
        put: Put,
        grants: TokenStore | None,
        refused: OnRefusal,
        log: FaultLog,
    ) -> None:
        self._store = store
        self._reads = reads
        self._grants = grants
        self._refused = refused
        self._log = log

        async def trigger(request: jobs_pb2.TriggerJobRequest, by: str) -> None:
            await triggered(control, reads, request, by, put)

        self._changes: Mapping[str, Do] = {
            "CreateJob": jobs.create, "UpdateJob": jobs.update, "DeleteJob": jobs.delete, "PauseJob": jobs.pause,
            "ResumeJob": jobs.resume, "TriggerJob": trigger,
        }  # fmt: skip
        self._told = jobs.told

    async def answer(self, runner_id: str, call: wire.VerbCall) -> wire.VerbAnswer:
        """Raises nothing."""
        answer = wire.VerbAnswer(execution_id=call.execution_id, number=call.number)
        try:
            done = await self._done(runner_id, call)
        except Exception as error:  # the boundary: whatever it is gets a refusal
            answer.refusal.CopyFrom(self._refusal(error))
            return answer
        if isinstance(done, str):
            answer.key = done
        else:
            answer.job.CopyFrom(done)
        return answer

    async def _done(self, runner_id: str, call: wire.VerbCall) -> str | jobs_pb2.Job:
        """The key of the job that is changed, or the job that was asked for."""
        kept = VerbCall(call.execution_id, call.number, runner_id)
        kind, request = _request_of(call)
        of, done = await self._store.standing(kept)
        asked = _Asked(kept, of, kind, request, _key_of(request, namespace_of(of)))
        if done:
            return asked.key
        with calling(caller(), f"/cronring.v1.Jobs/{kind}", call_in_hand().origin):
            try:
                with known_as(await self._principal(asked)):
                    return await self._judged(asked)
            except Denied as error:
                self._refused("forbidden", why=str(error))
                raise

    async def _judged(self, asked: _Asked) -> str | jobs_pb2.Job:
        if asked.method == "GetJob":
            return self._told(await find_job(self._reads, asked.key, Permission.VIEW))
        by = asked.request.requested_by = f"execution {asked.call.execution_id} of {asked.of}"[:ACTOR_LENGTH_MAX]
        with remarking(by, getattr(asked.request, "note", "")):
            return await self._changed(asked, acting(by))

    async def _changed(self, asked: _Asked, by: str) -> str:
        """Make a change. If an earlier try of the same call has done it already, an error counts as done."""
        try:
            with self._store.keeping(asked.call):
                await self._changes[asked.method](asked.request, by)
        except CallDone:
            return asked.key
        except StoreUnavailable:
            raise
        except (CronringError, InvalidRequest, NeverRuns):
            if (await self._store.standing(asked.call))[1]:
                return asked.key
            raise
        return asked.key

    async def _principal(self, asked: _Asked) -> Principal:
        """The runner, as an operator in the namespace of the job that runs. Raises Forbidden."""
        who, namespace = caller(), namespace_of(asked.of)
        named = _named(asked.key)
        if named.namespace != namespace:
            raise Forbidden(
                f"{asked.of} may change jobs of its own namespace, {namespace!r}, and {asked.key!r} is in"
                f" {named.namespace!r}",
                who,
            )
        if why := outside(await self._grant(who), namespace, named.module):
            raise Forbidden(f"{why}; `cronring runner-grant create` makes a wider one", who)
        return who._replace(grants=(RoleGrant(Role.OPERATOR, namespace),)) if who.kind is Kind.RUNNER else who

    async def _grant(self, who: Principal) -> RunnerGrant | None:
        try:
            return None if self._grants is None else await grant_of_caller(self._grants)
        except GrantRevoked:
            raise Forbidden("the runner's grant has been revoked", who) from None

    def _refusal(self, error: Exception) -> wire.VerbRefusal:
        status, foreseen = status_of(error)
        if not foreseen:
            self._log.exception("verb_call_error", error)
        said = said_in(status.details)
        return wire.VerbRefusal(reason=said.reason if said else "", problem=status.message, again=status.code in _AGAIN)


_METHODS: Final = {
    "create": "CreateJob", "update": "UpdateJob", "delete": "DeleteJob", "pause": "PauseJob", "resume": "ResumeJob",
    "trigger": "TriggerJob", "get": "GetJob",
}  # fmt: skip


def _request_of(call: wire.VerbCall) -> tuple[str, Any]:
    """Its method and its message. Raises InvalidRequest."""
    kind = call.WhichOneof("request")
    if kind is None:
        raise InvalidRequest([("request", "is of no kind that this controller knows: it may be older than the runner")])
    if not 1 <= call.number <= NUMBER_MAX:
        raise InvalidRequest([("number", f"is {call.number}: a run makes {NUMBER_MAX} calls at most")])
    request, most = getattr(call, kind), OF_VERBS[f"/cronring.v1.Jobs/{_METHODS[kind]}"].max_bytes
    if request.ByteSize() > most:
        raise InvalidRequest([("request", f"has {request.ByteSize()} bytes; at most {most} are allowed here")])
    return _METHODS[kind], request


def _key_of(request: Any, namespace: str) -> str:
    """The key of the job in question. A request without a namespace gets the namespace of the running job.

    A malformed name is refused before it is looked up. Raises InvalidRequest.
    """
    if not isinstance(request, jobs_pb2.CreateJobRequest):
        if "/" not in request.key:
            request.key = qualified(namespace, request.key)
        return str(request.key)
    check_names(request)
    request.namespace = request.namespace or namespace
    return f"{VerbName(request.namespace, request.module, request.verb)}:{request.name}"


def _named(key: str) -> VerbName:
    """As far as it can be told of a key."""
    module, _, verb = key.rpartition("/")[2].partition(".")
    return VerbName(namespace_of(key), module, verb)
