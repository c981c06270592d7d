"""A pause or a cancellation stays with the (module, verb): a declared job that comes back is paused or cancelled again.

A job that its module no longer declares is removed; one that is declared again is a new row, with books of its own. The
pause or cancellation of the row removed last is then ordered anew for the new row, at the instant of the return. So the
new row's books are as after any such order, and begin at that instant.
"""

from typing import Final, NamedTuple

from cronring.controller.core.orders.orders import Cancel, Ordered, OrderTarget, Pause, carry_out
from cronring.schema.instant import format_instant

KEPT: Final = {"keep_paused": "pause", "keep_cancelled": "cancel"}
"""The actions that are recorded, and the orders that they carry on."""


class Left(NamedTuple):
    """The pause or cancellation of the removed job that `job_id` replaces: since when, by whom and why. `until`: the
    end of a pause. A pause that was over is left out.
    """

    job_id: int
    cancelled: bool
    since: int
    by: str
    note: str
    until: int | None


class TakenOver(NamedTuple):
    """`action`: one of KEPT, with `ordered.details`."""

    action: str
    ordered: Ordered


def plan_taking_over(standing: OrderTarget, left: Left, now: int) -> TakenOver:
    """What to write of a new job, which nobody has given an order yet."""
    order = Cancel(left.note) if left.cancelled else Pause(left.note, left.until)
    plan = carry_out(standing, order, left.by, now)
    assert isinstance(plan, Ordered), f"a new job takes any order: {plan}"
    assert plan.row is not None, "it is neither paused nor cancelled yet"
    row = plan.row._replace(cancelled_at=left.since) if left.cancelled else plan.row._replace(paused_at=left.since)
    details = {"since": format_instant(left.since), "by": left.by, "note": left.note, **plan.details}
    return TakenOver(
        "keep_cancelled" if left.cancelled else "keep_paused", plan._replace(row=row, details=details)
    )  # fmt: skip
