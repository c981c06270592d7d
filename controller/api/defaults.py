"""cronring.v1.Defaults: get, update."""

from typing import Final

from cronring.controller.api.etags import check_etag, defaults_etag
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.requests import Context, actor, note
from cronring.controller.api.token_box import TokenBox
from cronring.controller.ports.defaults import DefaultsRow, DefaultsStore
from cronring.protos.cronring.v1 import defaults_pb2, defaults_pb2_grpc
from cronring.protos.instants import timestamp
from cronring.schema.duration import format_duration, parse_duration
from cronring.schema.policy import read_each
from cronring.schema.validate import timeout_fault

_FIELDS: Final = ("timeout_ms", "late_after")


class DefaultsService(defaults_pb2_grpc.DefaultsServicer):
    """Whoever reads a job reads the defaults with it, so nobody is told of them but by PostgreSQL's NOTIFY."""

    def __init__(self, defaults: DefaultsStore, box: TokenBox) -> None:
        self._defaults = defaults
        self._box = box

    async def GetDefaults(
        self, request: defaults_pb2.GetDefaultsRequest, context: Context
    ) -> defaults_pb2.ClusterDefaults:
        return self._told(await self._defaults.get_defaults())

    async def UpdateDefaults(
        self, request: defaults_pb2.UpdateDefaultsRequest, context: Context
    ) -> defaults_pb2.ClusterDefaults:
        by, why = actor(request.requested_by, context), note("note", request.note)
        values = _values(request)

        def decide(row: DefaultsRow) -> DefaultsRow:
            check_etag(request.etag, defaults_etag(self._box, row), "what the cluster's defaults are")
            return row._replace(
                timeout_ms=values.get("timeout_ms", row.timeout_ms),
                late_after_ms=values.get("late_after_ms", row.late_after_ms),
            )

        return self._told(await self._defaults.set_defaults(decide, by, why))

    def _told(self, row: DefaultsRow) -> defaults_pb2.ClusterDefaults:
        return defaults_pb2.ClusterDefaults(
            timeout_ms=row.timeout_ms,
            late_after="" if row.late_after_ms is None else format_duration(row.late_after_ms),
            revision=row.revision,
            changed_at=timestamp(row.changed_at),
            changed_by=row.changed_by,
            note=row.note,
            etag=defaults_etag(self._box, row),
        )


def _values(request: defaults_pb2.UpdateDefaultsRequest) -> dict[str, int | None]:
    """What is given, as columns. Raises InvalidRequest."""
    if not any(request.HasField(field) for field in _FIELDS):
        raise InvalidRequest([("", f"sets nothing; give {' or '.join(_FIELDS)}")])
    values, problems = dict[str, int | None](), Violations()
    if request.HasField("timeout_ms"):
        values["timeout_ms"] = request.timeout_ms or None
        if request.timeout_ms and (fault := timeout_fault(request.timeout_ms, "--timeout")):
            problems.append(("timeout_ms", fault))
    if request.HasField("late_after"):
        # It is judged as the policy of a job is.
        reading = read_each({"late_after": request.late_after} if request.late_after else {})
        problems += [(error.field, error.told(request.late_after)) for error in reading.errors]
        text = reading.policy.late_after
        values["late_after_ms"] = parse_duration(text) if text else None
    if problems:
        raise InvalidRequest(problems)
    return values
