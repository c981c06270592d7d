"""What the core refuses, as the errors that its callers get."""

from collections.abc import Mapping

from cronring.controller.core.orders.followers import circles
from cronring.controller.core.orders.orders import OrderRefusal
from cronring.controller.core.orders.states import TARGETS, State
from cronring.controller.errors import CircleOfJobs, Conflict, IllegalTransition, Outdated


def error_of(refusal: OrderRefusal) -> Conflict:
    """An IllegalTransition, if the job's state is the reason; else a Conflict."""
    if refusal.state is None:
        return Conflict(refusal.message)
    return IllegalTransition(
        refusal.message,
        job=refusal.key,
        state=refusal.state.value,
        target=TARGETS[refusal.order].value,
        action=refusal.order.value,
    )


def refused_circles(after: Mapping[str, str], follows: Mapping[str, str]) -> dict[str, CircleOfJobs]:
    """By key, the jobs that can't follow others because they would form a circle. See `circles`."""
    return {key: CircleOfJobs(*circle) for key, circle in circles(after, follows).items()}


def other_job(key: str) -> Conflict:
    """A job is to be made under a key that another job has."""
    return Conflict(f"there is another job {key!r}: update it, or delete it first")


def not_of_api(key: str, done: str) -> Conflict:
    """`done`: what was to be done to it."""
    return Conflict(f"{key!r} is declared in its module: it can't be {done} but by deploying another version of it")


def other_labels(key: str) -> Conflict:
    """The job was found by labels, and has lost them since."""
    return Conflict(f"{key!r} has other labels by now")


def changed_meanwhile(key: str) -> Outdated:
    """The job was changed after the change was judged by it."""
    return Outdated(f"{key!r} has been changed meanwhile; try again")


def other_schema(key: str, digest: str) -> Conflict:
    """A known digest comes with a schema that is not its own."""
    return Conflict(
        f"the digest {digest:.12}… is that of {key} already, with another schema; a digest is made of the schema and "
        f"the source, so one of the two is wrong: compare with `cronring deployments get {key}`, and deploy by its file"
    )


def not_retried(message: str, key: str, state: State) -> IllegalTransition:
    """`state`: of the attempt at the tick that forbids another one; or CANCELLED, if its job is."""
    return IllegalTransition(message, job=key, state=state.value, target=State.RUNNING.value, action="retry_execution")
