"""cronring.v1.Defaults: get, update."""

from typing import Any, Final

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

_FIELDS: Final = ("timeout_ms", "late_after", "retries")


class DefaultsService(defaults_pb2_grpc.DefaultsServicer):
    """The defaults are read together with each job. So a change needs no other message than PostgreSQL's NOTIFY."""

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
            return row._replace(**values)

        return self._told(await self._defaults.set_defaults(decide, by, why))

    def _told(self, row: DefaultsRow) -> defaults_pb2.ClusterDefaults:
        return defaults_pb2.ClusterDefaults(
            timeout_ms=row.timeout_ms,
            late_after="" if row.late_after_ms is None else format_duration(row.late_after_ms),
            retries=row.retries,
            revision=row.revision,
            changed_at=timestamp(row.changed_at),
            changed_by=row.changed_by,
            note=row.note,
            etag=defaults_etag(self._box, row),
        )


def _values(request: defaults_pb2.UpdateDefaultsRequest) -> dict[str, Any]:
    """What is given, as columns. Raises InvalidRequest."""
    if not any(request.HasField(field) for field in _FIELDS):
        raise InvalidRequest([("", f"sets nothing; give {', '.join(_FIELDS)}")])
    values, problems = dict[str, Any](), Violations()
    if request.HasField("timeout_ms"):
        values["timeout_ms"] = request.timeout_ms or None
        if request.timeout_ms and (fault := timeout_fault(request.timeout_ms, "--timeout")):
            problems.append(("timeout_ms", fault))
    # The others are judged as those of a job's policy are.
    said = {name: getattr(request, name) for name in _FIELDS[1:] if request.HasField(name)}
    reading = read_each(said)
    problems += [(error.field, error.told(said[error.field])) for error in reading.errors]
    if "late_after" in said:
        text = reading.policy.late_after
        values["late_after_ms"] = parse_duration(text) if text else None
    if "retries" in said:
        values["retries"] = reading.policy.retries_by(0)
    if problems:
        raise InvalidRequest(problems)
    return values
