"""A module as its author declared it."""

from dataclasses import dataclass

from schema.keys import DEFAULT_NAMESPACE


@dataclass(frozen=True, slots=True)
class Verb:
    """One callable. A verb with a schedule is a job's declaration."""

    name: str
    request: str = "Unit"
    response: str = "Unit"
    schedule: str = ""  # canonical text of schema.schedule; "" for none
    timeout_ms: int = 0  # 0: the controller's default
    on_disconnect: str = "stop"  # "stop" | "finish"
    is_async: bool = False
    doc: str = ""
    line: int = 0  # 1-based in the source; 0: unknown


@dataclass(frozen=True, slots=True)
class Module:
    """Verbs under one name. Names are unique in it; validate() says what is wrong with one."""

    name: str
    verbs: tuple[Verb, ...] = ()
    namespace: str = DEFAULT_NAMESPACE
    doc: str = ""
