"""What verbs of a virtual cluster ask of jobs (ctx.jobs): answered at once, by what answers them on a real one.

Virtual time doesn't pass while a verb waits. So where a part is away it is told so at once, and not at its deadline.
"""

from collections.abc import Callable
from typing import Final

from cronring.controller.api.job_orders import JobOrders
from cronring.controller.api.job_specs import Defaults
from cronring.controller.api.token_box import TokenBox
from cronring.controller.api.verb_calls import VerbCallsService
from cronring.controller.core.node.events import Event
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.ports.caller import calling
from cronring.controller.store.memory.reads import MemoryJobReads
from cronring.controller.store.memory.store import MemoryStore
from cronring.runner.calling import UnfitCallError, answer_of, unfit_answer, verb_call
from cronring.runner.core.calls import UNAVAILABLE
from cronring.runner.core.model import CallAnswer
from cronring.runner.lines import Asked
from cronring.schema.identity import LOCAL
from cronring.virtual.performing import run_now

_KEY: Final = bytes(32)  # of ETags, which nobody sees here


class VirtualVerbs:
    """`away`: which part is, "" for none; `tell` takes what the controller's own node has to hear."""

    def __init__(
        self, store: MemoryStore, settings: ClusterSettings, tell: Callable[[Event], None], away: Callable[[], str]
    ) -> None:
        self._store = store
        self._away = away
        reads, box = MemoryJobReads(store), TokenBox(_KEY)
        defaults = Defaults(settings.timeout_ms, settings.default_jitter)
        jobs = JobOrders(store, reads, store, defaults, tell, box)
        self._service = VerbCallsService(store, jobs, store, reads, tell, None, lambda *_, **__: None, _Raising())

    def answer(self, asked: Asked) -> CallAnswer:
        """What became of the call."""
        if part := self._away():
            return CallAnswer(
                reason=UNAVAILABLE, problem=f"the {part} of this virtual cluster are away; it was not done"
            )
        row = self._store.executions.get(asked.execution_id)
        try:
            call = verb_call(asked)
        except UnfitCallError as error:
            return unfit_answer(error)
        with calling(LOCAL, origin="virtual"):
            return answer_of(run_now(self._service.answer("" if row is None else row.runner_id, call)))


class _Raising:
    """What a controller's log would have, the author's test shall have."""

    def exception(self, _event: str, error: BaseException) -> None:
        raise error
