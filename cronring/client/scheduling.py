"""Schedules whose target is a queue: `client.schedule("reports", every="5m", payload={...}, workspace="ws_3")`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from cronring.client import model
from cronring.client.errors import Invalid
from cronring.client.jobs import JobCalls

_KINDS: Final = "every=, cron=, at= or manual=True"


class Scheduling:
    """The part of Client that makes jobs of queues."""

    jobs: JobCalls

    async def schedule(
        self,
        queue: str,
        every: str = "",
        payload: Any = None,
        workspace: str = "",
        *,
        cron: str = "",
        at: datetime | None = None,
        manual: bool = False,
        name: str = "",
        namespace: str = "default",
        awaited: bool = False,
        timeout_ms: int | None = None,
        policy: Mapping[str, str | int | list[str]] | None = None,
        labels: Mapping[str, str] | None = None,
        by: str = "",
        note: str = "",
    ) -> model.Job:
        """Each tick puts a message with this payload into the queue. Made again, it is changed.

        There is one schedule for each queue, workspace and name. `updated` and `unchanged` of the answer say what has
        become of one that was there. `awaited`: a tick ends when its consumer ends the message, within `timeout_ms`.
        Else it is completed when the message is in the queue.

        `payload`: a value that JSON has; JSON that is text already is given as JsonText.
        Should the answer be lost, it is safe to call it again. Raises Invalid for a schedule or a policy that is none.
        """
        wanted = dict(policy or {}) | ({"completes": "consumed"} if awaited else {})
        spec = model.JobSpec(
            schedule=_schedule(every, cron, at, manual),
            policy=wanted,
            payload=payload,
            labels=labels or {},
            timeout_ms=timeout_ms,
        )
        target = model.QueueTarget(queue, workspace, name, namespace)
        return await self.jobs.create_for(target, spec, by, note=note)


def _schedule(every: str, cron: str, at: datetime | None, manual: bool) -> str:
    """Raises Invalid for none, or several."""
    found = [
        *([f"every {every}"] if every else []),
        *([cron] if cron else []),
        *([f"at {at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"] if at is not None else []),
        *(["manual"] if manual else []),
    ]
    if len(found) != 1:
        raise Invalid(f'when does it tick? Give one of {_KINDS}, like every="5m"')
    return found[0]
