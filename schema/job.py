"""What somebody wants of a job, as one type for all sources. Instants are int microseconds since 1970.

A declaration, a call of the API, a template and a row each become a JobSpec in one place: core/orders/redeploy.py and
controller/api/job_specs.py (as they judge it), protos/jobs.py, controller/store/rows.py. A job's present state (its
next tick, what runs) is not in it, but in the values that hold it.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple


class JobSpec(NamedTuple):
    """Texts are canonical. A value that is empty, 0 or None is not set: a template leaves it to the job.

    `timeout_ms` below 0: nobody has set one. Then the cluster's default counts; if there is none, the number without
    its sign. The sign keeps it known that nobody has set it.
    """

    schedule: str = ""  # see cronring.schema.schedule.parse_schedule
    anchor: int | None = None  # that an interval counts from; None: when it is scheduled so
    timeout_ms: int = 0
    on_disconnect: str = ""  # "stop" | "finish"
    policy: str = ""  # see cronring.schema.policy.parse_policy; of a template it is partial
    labels: Mapping[str, str] = MappingProxyType({})
    payload: str = ""  # JSON for the verb's parameter; "" for none

    @property
    def said_timeout_ms(self) -> int:
        """0: neither the job says it, nor its verb."""
        return max(self.timeout_ms, 0)

    def timeout_by(self, default_ms: int | None) -> int:
        """In force. `default_ms`: of the cluster's defaults."""
        return self.timeout_ms if self.timeout_ms > 0 else default_ms or -self.timeout_ms

    @property
    def timing(self) -> tuple[str, int, str]:
        """What the ticks of a job follow from, once it has an anchor."""
        return self.schedule, self.anchor or 0, self.policy

    def taking(self, other: "JobSpec", names: Iterable[str]) -> "JobSpec":
        """With the fields of that name as the other has them."""
        return self._replace(**{name: getattr(other, name) for name in names})
