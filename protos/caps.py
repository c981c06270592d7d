"""How much a message from outside may hold: one table of all texts, lists and maps, by the names of their fields.

These are bounds of work and memory, checked of every message before anything else looks at it. What a value must look
like is said by those who read it, often with less. A field that the table doesn't name is refused by a test.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

NAME: Final = 400  # characters, here and below
ACTOR: Final = 200
NOTE: Final = 1_000
TOKEN: Final = 2_000
RESUME: Final = 7_000  # ids of some thousand runs; a header of HTTP has room for 8 KiB
CERTIFICATES: Final = 32 * 1024  # PEM; two CAs and a chain
PATTERN: Final = 4_000  # the longest that makes sense has 1,300, and is refused from 2,000 on with better words
POLICY: Final = 1_000
PAYLOAD: Final = 128 * 1024  # refused from 64 KiB on with better words
DOC: Final = 64 * 1024
TRACE: Final = 64 * 1024
OUTPUT: Final = 256 * 1024
SCHEMA: Final = 16 * 1024 * 1024
LABELS: Final = 64
PATHS: Final = 128  # all that can be set of a job, with its labels
COLUMN: Final = 10_000  # entries of one message about many runs
FAULTS_SHOWN: Final = 20


class Cap(NamedTuple):
    """`length`: characters of a text (bytes of bytes), in a list those of each. `items`: of a list or map."""

    length: int = 0
    items: int = 0


_TEXTS: Final = (
    (
        NAME,
        "after key module name namespace queue set_name template webhook value address sender_address "
        "target_address from_key principal method subject request response label workspace type containing_type "
        "file_by_filename file_containing_symbol "
        "all_extension_numbers_of_type list_services host service",
    ),
    (
        ACTOR,
        "accuser_id consumer controller controller_id digest hostname list member_id outcome requested_by role "
        "runner_id sender_id sort state status target_id version",
    ),
    (NOTE, "description note problem reason"),
    (TOKEN, "etag join_token page_token url secret"),
    (RESUME, "resume_token"),
    (CERTIFICATES, "authorities certificate csr"),
    (PATTERN, "schedule error_type"),
    (
        POLICY,
        "anchor backoff catch_up_window cpu_limit dst_gap dst_overlap end_at history jitter late_after memory_limit "
        "on_missed on_retry overlap start_at window completes",
    ),
    (PAYLOAD, "default_json metrics_json payload"),
    (DOC, "doc"),
    (TRACE, "error_message stack"),
    (OUTPUT, "data output"),
)
_TEXTS_OF_ANSWERS: Final = (
    (
        NAME,
        "action actor answered_by applied_by base_type_name by change cluster_id code console_url "
        "cancel_requested_by changed_by check created_by ended event "
        "day level local rule third event_id grpc_address hash http_address id issuer kind lane last_outcome "
        "default_late_after next_tick_local paused_by payload_of timeout_from "
        "peer_address principal refused revoked_by ring_digest runner secrets_key source trace_id valid_host verdict "
        "zone_data",
    ),
    (NOTE, "cancel_note paused_note trace_url_template"),
    (PATTERN, "field new new_schedule old old_schedule"),
    (TOKEN, "next_page_token origin"),
    (
        TRACE,
        "advice certificate_problem disabled_reason error issuer_problem last_error look not_ready remark "
        "schedule_words secrets_problem seen text unreachable happens help message remedy words",
    ),
    (PAYLOAD, "body sent"),
    (SCHEMA, "after_json before_json details schema_text"),
)

_COLUMNS: Final = (
    "execution_id job_id claimed_at_us started_at_us ended_at_us cpu_us memory_peak_bytes memory_shared tick_us "
    "run_at_us deadline_us attempt missed previous_tick_us previous_success_us schedule_kind memory_limit_bytes "
    "cpu_limit_us priority place_epoch"
)
_LISTS: Final = {
    "labels": Cap(items=LABELS),
    "paths": Cap(NAME, PATHS),
    # Of filters, where each is one of a few; and what answers count.
    **dict.fromkeys(("outcomes", "statuses"), Cap(ACTOR, COLUMN)),
    "contains": Cap(NAME, 16),
    "changed_fields": Cap(NAME, 1_000),
    "events": Cap(ACTOR, 16),
    "reasons": Cap(ACTOR, 32),
    "retry_on": Cap(NAME, 50),
    "modules": Cap(NAME, 1_000),
    "addresses": Cap(NAME, 1_000),
    "verbs": Cap(items=10_000),
    "types": Cap(items=1_000),
    "fields": Cap(items=500),
    "error_bases": Cap(PATTERN, 1_000),
    "keys": Cap(NAME, COLUMN),
    "out_of_reach": Cap(ACTOR, 1_000),
    "grants": Cap(items=COLUMN),
    "demands": Cap(items=COLUMN),
    "reports": Cap(items=COLUMN),
    "runs": Cap(items=COLUMN),
    "execution_ids": Cap(items=5 * COLUMN),
    "message_ids": Cap(items=1_000),
    "updates": Cap(items=1_000),
    "standings": Cap(items=1_000),
    "table": Cap(items=5_000),
    # What is one text in a Run is a column in Runs.
    "job": Cap(NAME, COLUMN),
    "deployment": Cap(NAME, COLUMN),
    "verb": Cap(NAME, COLUMN),
    "trigger": Cap(ACTOR, COLUMN),
    "timezone": Cap(POLICY, COLUMN),
    "payload_json": Cap(PAYLOAD, COLUMN),
    "on_disconnect": Cap(ACTOR, COLUMN),
}
_PAGES: Final = (
    "actions activations attempts audit_rows books dead_letters deliveries due entries executions extension_number "
    "findings first_ticks jobs late limits members messages overloads queues results runner_grants sessions sets "
    "settings skipped steps templates tokens waiting webhooks workspaces"
)
_LISTS_OF_ANSWERS: Final = {
    **dict.fromkeys(("backup", "primary", "service"), Cap(NAME, COLUMN)),
    **dict.fromkeys(("deployments", "ring_members", "runners", "members", "sentences"), Cap(TRACE, COLUMN)),
    **dict.fromkeys(
        ("jobs_added", "jobs_back", "jobs_carried_over", "jobs_orphaned", "jobs_removed"), Cap(NAME, 40 * COLUMN)
    ),
    "jobs_misfit": Cap(items=40 * COLUMN),
    "faults": Cap(TRACE, COLUMN),
    "fullest": Cap(items=COLUMN),
    "herd_jobs": Cap(NAME, 10),
    "skip_reasons": Cap(items=COLUMN),
    **dict.fromkeys(("first_gone", "first_new"), Cap(NAME, 100)),
    "terms": Cap(PATTERN, 50),
    **dict.fromkeys(("days", "ticks", "clock_changes", "policies", "remarks"), Cap(items=COLUMN)),
    "file_descriptor_proto": Cap(SCHEMA, 1_000),
}

CAPS: Final[Mapping[str, Cap]] = {
    **{name: Cap(length) for length, names in (*_TEXTS, *_TEXTS_OF_ANSWERS) for name in names.split()},
    **{name: Cap(items=COLUMN) for name in f"{_COLUMNS} {_PAGES}".split()},
    **_LISTS,
    **_LISTS_OF_ANSWERS,
}
# Where a name has another meaning elsewhere: texts of a filter, and messages of a module.
_BY_FULL_NAME: Final[Mapping[str, Cap]] = {
    "cronring.v1.PollEventsResponse.events": Cap(items=COLUMN),
    "cronring.v1.Deployment.verbs": Cap(NAME, COLUMN),
}


Fault = tuple[str, str]


class FieldRule(NamedTuple):
    """Of one field. `inner`: of a message, or of a map's values."""

    name: str
    cap: Cap
    repeats: bool
    is_map: bool
    is_text: bool
    inner: Descriptor | None


def faults(message: Message) -> list[Fault]:
    """What is over its cap, the first few: (path of the field, description)."""
    found: list[Fault] = []
    _look(message, rules_of(message.DESCRIPTOR), found)
    return found[:FAULTS_SHOWN]


def rules_of(descriptor: Any) -> Mapping[int, FieldRule]:
    """Of the fields that can grow, by their numbers. Raises KeyError for a field that has no cap."""
    known = _RULES.get(descriptor)
    if known is None:
        known = _RULES[descriptor] = {field.number: _rule(field) for field in descriptor.fields if can_grow(field)}
    return known


_RULES: Final[dict[Any, dict[int, FieldRule]]] = {}


def cap_of(name: str) -> Cap:
    """Of all fields of that name. Raises KeyError, which says what is to be done."""
    if name not in CAPS:
        raise KeyError(f"protos/caps.py names no {name}: give it a cap there, then run `make protos`")
    return CAPS[name]


def can_grow(field: FieldDescriptor) -> bool:
    return field.is_repeated or field.type in _TEXT_TYPES or field.message_type is not None


_TEXT_TYPES: Final = frozenset({FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES})


def _rule(field: FieldDescriptor) -> FieldRule:
    inner, is_text = field.message_type, field.type in _TEXT_TYPES
    cap = _BY_FULL_NAME.get(field.full_name) or (cap_of(field.name) if field.is_repeated or is_text else Cap())
    if (field.is_repeated and not cap.items) or (is_text and not cap.length):
        raise KeyError(f"protos/caps.py has no cap that fits {field.full_name}")
    is_map = inner is not None and inner.GetOptions().map_entry
    return FieldRule(field.name, cap, field.is_repeated, is_map, is_text, inner)


def _look(message: Message, rules: Mapping[int, FieldRule], found: list[Fault]) -> None:
    """Hot: reports of runs pass here. So a path is only made where there is a fault."""
    for field, value in message.ListFields():
        rule = rules.get(field.number)
        if rule is None:
            continue
        if rule.is_text and not rule.repeats:
            if len(value) > rule.cap.length:
                found.append(_too_long(rule.name, len(value), rule.cap.length))
        else:
            _look_inside(rule, value, found)
            if len(found) >= FAULTS_SHOWN:
                return


def _look_inside(rule: FieldRule, value: Any, found: list[Fault]) -> None:
    if rule.repeats and len(value) > rule.cap.items:
        found.append((rule.name, f"has {len(value)} entries; at most {rule.cap.items} are allowed"))
    elif rule.is_map:
        _look_in_map(rule, value, found)
    elif rule.is_text:
        _look_at_texts(rule.name, value, rule.cap.length, found)
    elif rule.inner is not None:
        inner = rules_of(rule.inner)
        for index, each in enumerate(value) if rule.repeats else ((-1, value),):
            known = len(found)
            _look(each, inner, found)
            if len(found) > known:
                _prefix(found, known, f"{rule.name}[{index}]." if rule.repeats else f"{rule.name}.")
            if len(found) >= FAULTS_SHOWN:
                return


def _look_at_texts(name: str, texts: Any, length: int, found: list[Fault]) -> None:
    longest = max(map(len, texts), default=0)
    if longest > length:
        found.append(_too_long(name, longest, length))


def _look_in_map(rule: FieldRule, entries: Any, found: list[Fault]) -> None:
    assert rule.inner is not None
    key, value = (rules_of(rule.inner).get(number) for number in (1, 2))
    if key is not None:
        _look_at_texts(rule.name, entries, key.cap.length, found)
    if value is not None and value.is_text:
        _look_at_texts(rule.name, entries.values(), value.cap.length, found)
    elif value is not None:
        known, inner = len(found), rules_of(entries.GetEntryClass().DESCRIPTOR.fields_by_number[2].message_type)
        for name in entries:
            _look(entries[name], inner, found)
        _prefix(found, known, f"{rule.name}.")


def _too_long(name: str, length: int, cap: int) -> Fault:
    return name, f"has {length} characters; at most {cap} are allowed"


def _prefix(found: list[Fault], since: int, prefix: str) -> None:
    found[since:] = [(prefix + path, description) for path, description in found[since:]]
