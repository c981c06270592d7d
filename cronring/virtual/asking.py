"""How a verb that runs in this very process asks about jobs: it is answered at once."""

from collections.abc import Callable
from typing import Any, TypeVar

from cronring.child.asking import Numbers
from cronring.jobs import ToldAnswer
from cronring.runner.core.model import CallAnswer
from cronring.runner.lines import Asked

Result = TypeVar("Result")
AnswerVerb = Callable[[Asked], CallAnswer]


class AskerHere:
    """cronring.jobs.JobsAsker, for sync verbs. Of one run."""

    def __init__(self, execution_id: int, answer: AnswerVerb) -> None:
        self._execution_id = execution_id
        self._answer = answer
        self._numbers = Numbers()

    def ask(
        self, execution_id: int, method: str, request: dict[str, Any], within_ms: int, convert: Callable[[Any], Result]
    ) -> Result:
        """Raises cronring.jobs.JobsError."""
        assert execution_id == self._execution_id, "of one run"
        asked = Asked(execution_id, self._numbers.next(execution_id), method, request, within_ms)
        value, reason, problem, _ = self._answer(asked)
        return convert(ToldAnswer(value, reason, problem).result())


class AwaitedAsker:
    """The same for async verbs."""

    def __init__(self, asker: AskerHere) -> None:
        self._asker = asker

    async def ask(self, *asked: Any) -> Any:
        """Raises cronring.jobs.JobsError."""
        return self._asker.ask(*asked)
