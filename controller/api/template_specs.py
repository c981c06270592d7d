"""What a template gives to the jobs that start from it, and what a caller wants a template to be."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from cronring.controller.api.job_specs import (
    LABEL,
    POLICY_PATHS,
    SPEC_PATHS,
    changed_labels,
    check_known,
    check_running,
    contradictions,
    read_anchor,
    read_mask,
    read_policy,
    read_schedule,
)
from cronring.controller.api.lookup import suggestion
from cronring.controller.api.payloads import canonical_payload
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.errors import NotFound
from cronring.controller.ports.caller import caller
from cronring.controller.ports.templates import TemplateRow, Templates, TemplateValues
from cronring.protos.cronring.v1 import jobs_pb2, templates_pb2
from cronring.protos.jobs import decode_spec, encode_spec
from cronring.protos.modules import raw_policy
from cronring.schema.identity import Permission
from cronring.schema.payload import PAYLOAD_LIMIT, NoPayload
from cronring.schema.policy import Policy, newer, parse_policy, unread_fields
from cronring.schema.schedule import is_interval

Made = TypeVar("Made")

DESCRIPTION: Final = "description"
DESCRIPTION_LENGTH_MAX: Final = 1_000
_LOOKED_THROUGH: Final = 1_000  # names, for the nearest one
_WHOLE: Final = (DESCRIPTION, *SPEC_PATHS)
_FILLED_OTHERWISE: Final = {"anchor", "policy", "labels"}  # field by field, or by what goes with it


async def find_template(templates: Templates, namespace: str, name: str) -> TemplateRow:
    """Raises NotFound with the nearest name of the same namespace."""
    rows: list[TemplateRow] = []
    if caller().may(Permission.VIEW, namespace):
        with contextlib.suppress(NotFound):
            return await templates.get_template(namespace, name)
        rows = await templates.list_templates(namespace, ("", ""), _LOOKED_THROUGH)
    known = suggestion(name, (row.name for row in rows))
    raise NotFound(
        f"there is no template {name!r} in namespace {namespace!r}{known}; `cronring template list` shows them"
    )


def started_from(
    template: TemplateRow | None,
    request: jobs_pb2.CreateJobRequest,
    make: Callable[[jobs_pb2.CreateJobRequest], Made],
) -> Made:
    """What `make` makes of the request, with the template's values where it sets none itself.

    Raises InvalidRequest: a value that came from the template says so.
    """
    problems: Violations = []
    explicit = read_mask("explicit", request.explicit.paths, problems)
    if problems:
        raise InvalidRequest(problems)
    if template is None:
        return make(request)
    if unread_fields(template.values.spec.policy):
        raise InvalidRequest([("template", newer(template.values.spec.policy))])
    filled = jobs_pb2.CreateJobRequest()
    filled.CopyFrom(request)
    taken = _fill(filled.spec, template, frozenset(explicit))
    try:
        return make(filled)
    except InvalidRequest as error:
        whose = f" (from the template {template.name!r})"
        raise InvalidRequest(
            [(field, f"{text}{whose}" if field in taken else text) for field, text in error.violations]
        ) from None


def _fill(spec: jobs_pb2.JobSpec, template: TemplateRow, explicit: frozenset[str]) -> frozenset[str]:
    """Put the template's values where the spec sets none. Returns the fields that it has filled."""
    given, taken = encode_spec(template.values.spec), set[str]()
    asked_schedule = bool(spec.schedule) or "schedule" in explicit
    for field in (name for name in SPEC_PATHS if name not in _FILLED_OTHERWISE):
        asked_for = spec.HasField("timeout_ms") if field == "timeout_ms" else getattr(spec, field)
        if getattr(given, field) and not asked_for and field not in explicit:
            setattr(spec, field, getattr(given, field))
            taken.add(f"spec.{field}")
    # An anchor belongs to its schedule: a request with its own schedule doesn't take the template's anchor.
    if given.HasField("anchor") and not (asked_schedule or spec.HasField("anchor") or "anchor" in explicit):
        spec.anchor.CopyFrom(given.anchor)
        taken.add("spec.anchor")
    asked = raw_policy(spec.policy)
    for name, value in raw_policy(given.policy).items():
        if name not in asked and not explicit & {"policy", f"policy.{name}"}:
            spec.policy.MergeFrom(type(spec.policy)(**{name: value}))  # type: ignore[arg-type]  # each of its own kind
            taken.add(f"spec.policy.{name}")
    for key, label in given.labels.items():
        if key not in spec.labels and not explicit & {"labels", f"{LABEL}{key}"}:
            spec.labels[key] = label
            taken.add(f"spec.labels.{key}")
    return frozenset(taken)


def template_values(request: templates_pb2.SetTemplateRequest, there: TemplateValues) -> TemplateValues:
    """What the mask names of the request, beside what stays of `there`. Raises InvalidRequest with all faults."""
    spec, problems = request.spec, Violations()
    paths = read_mask("update_mask", request.update_mask.paths, problems, (DESCRIPTION,)) or _WHOLE
    fields = {path.partition(".")[0] for path in paths}
    if unread_fields(there.spec.policy) and "policy" not in paths:
        problems.append(("update_mask", f"names less than the template's policy: {newer(there.spec.policy)}"))
    policy = _policy(spec, parse_policy(there.spec.policy), paths, problems)
    schedule, anchor = there.spec.schedule, there.spec.anchor
    if "schedule" in fields:
        schedule = read_schedule(spec.schedule, policy.timezone, problems) if spec.schedule else ""
        anchor = anchor if is_interval(schedule) else None
    if "anchor" in fields:
        anchor = read_anchor(spec, schedule, problems)
        if anchor is not None and not spec.schedule and not schedule:
            problems.append(("spec.anchor", "is where an interval counts from; give the template one, like `every 6h`"))
    values = TemplateValues(
        description=_description(request.description, problems) if DESCRIPTION in fields else there.description,
        spec=there.spec.taking(decode_spec(spec), fields - {DESCRIPTION})._replace(
            schedule=schedule,
            anchor=anchor,
            policy=policy.text,
            payload=_payload(spec.payload, problems) if "payload" in fields else there.spec.payload,
            labels=changed_labels(spec, there.spec.labels, paths, problems),
        ),
    )
    check_running(spec, problems)
    check_known(spec, problems)
    if problems:
        raise InvalidRequest(problems)
    return values


def _policy(spec: jobs_pb2.JobSpec, there: Policy, paths: Sequence[str], problems: Violations) -> Policy:
    """Checked against the template's schedule, if it has one. Other contradictions show when a job is made from it."""
    asked = raw_policy(spec.policy)
    if "policy" not in paths:
        names = [path.partition(".")[2] for path in paths if path in POLICY_PATHS]
        kept = {name: value for name, value in there.raw().items() if name not in names}
        asked = kept | {name: asked[name] for name in names if name in asked}
    reading = read_policy(asked, problems)
    if spec.schedule and not reading.errors:
        problems += contradictions(reading, read_schedule(spec.schedule, reading.policy.timezone, Violations()))
    return reading.policy


def _description(text: str, problems: Violations) -> str:
    if len(text) > DESCRIPTION_LENGTH_MAX or "\x00" in text:
        problems.append((DESCRIPTION, f"must have {DESCRIPTION_LENGTH_MAX} characters at most, and no NUL"))
    return text


def _payload(text: str, problems: Violations) -> str:
    """A canonical payload. Whether a verb takes it shows when a job of that verb is made from the template."""
    try:
        canonical = canonical_payload(text)
    except NoPayload as error:
        problems.append(("spec.payload", str(error)))
        return ""
    if len(canonical.encode()) > PAYLOAD_LIMIT:
        problems.append(("spec.payload", f"has more than {PAYLOAD_LIMIT} bytes; pass a reference instead"))
    return canonical
