"""A module as its author declared it."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.policy_model import Policy

DEFAULT_POLICY: Final = Policy()


@dataclass(frozen=True, slots=True)
class Verb:
    """One callable. A verb with a schedule is a job's declaration."""

    name: str
    request: str = "Unit"  # type of its parameter beside the Context
    response: str = "Unit"
    schedule: str = ""  # canonical text of cronring.schema.schedule; "" for none
    timeout_ms: int | None = None  # None: the controller's default
    on_disconnect: str = "stop"  # "stop" | "finish"
    is_async: bool = False
    doc: str = ""
    line: int = 0  # 1-based in the source; 0: unknown
    policy: Policy = DEFAULT_POLICY
    anchor: str = ""  # canonical instant that an interval counts from; "": its deployment
    request_optional: bool = False  # its parameter has a default
    payload: str = ""  # canonical JSON for its parameter when the schedule runs it; "": none


class DataField(NamedTuple):
    """`optional`: it may be left out; `default` is then its canonical JSON, or "" if only the author's code knows."""

    name: str
    type: str
    optional: bool = False
    default: str = ""


@dataclass(frozen=True, slots=True)
class DataType:
    """A record that requests are made of: a dataclass or a TypedDict of the author's. Names are unique in it."""

    name: str
    fields: tuple[DataField, ...] = ()
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Module:
    """Verbs under one name. Names are unique in it; validate() says what is wrong with one."""

    name: str
    verbs: tuple[Verb, ...] = ()
    namespace: str = DEFAULT_NAMESPACE
    doc: str = ""
    types: tuple[DataType, ...] = ()
