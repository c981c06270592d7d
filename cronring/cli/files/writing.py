"""Jobs as the files that `cronring apply` reads, with the keys of `cronring jobs create`."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from cronring.cli.files import toml_form, yaml_form
from cronring.cli.output import instant_text
from cronring.schema.duration import format_duration

if TYPE_CHECKING:
    from cronring.client.many import JobToMake
    from cronring.client.model import JobSpec

FORMATS: Final = ("yaml", "toml")
_KINDS: Final = {"every": "every", "at": "at"}  # first words of schedules; a pattern begins with none of them


def yaml_lines(head: Mapping[str, str], jobs: Iterator["JobToMake"]) -> Iterator[str]:
    """A file, in parts: one for each job."""
    yield yaml_form.dump(dict(head))
    first = True
    for job in jobs:
        yield ("jobs:\n" if first else "") + yaml_form.dump([said(job, lambda payload: payload)])
        first = False
    if first:
        yield "jobs: []\n"


def toml_lines(head: Mapping[str, str], jobs: Iterator["JobToMake"]) -> Iterator[str]:
    """A file, in one part."""
    yield toml_form.dump({**head, "jobs": [said(job, _in_toml) for job in jobs]})


def said(job: "JobToMake", payload_as: Callable[[Any], Any]) -> dict[str, Any]:
    """By key. `payload_as`: the payload as the format has it; None: it can't say that but as JSON in a text."""
    spec = job.spec
    target = {"queue": job.queue, "workspace": job.workspace} if job.queue else {"verb": f"{job.module}.{job.verb}"}
    values: dict[str, Any] = {key: name for key, name in target.items() if name}
    values |= {"name": job.name, **_schedule(spec)}
    if spec.anchor is not None:
        values["anchor"] = instant_text(spec.anchor)
    if spec.payload:
        values["payload"] = _payload(str(spec.payload), payload_as)
    if spec.labels:
        values["labels"] = dict(sorted(spec.labels.items()))
    if spec.timeout_ms:
        values["timeout"] = format_duration(spec.timeout_ms)
    if spec.on_disconnect:
        values["on_disconnect"] = spec.on_disconnect
    policy = {name: list(value) if isinstance(value, list | tuple) else value for name, value in spec.policy.items()}
    # What has values in it comes last.
    return dict(sorted((values | policy).items(), key=lambda pair: isinstance(pair[1], dict)))


def _schedule(spec: "JobSpec") -> dict[str, Any]:
    word, _, rest = spec.schedule.partition(" ")
    if word == "manual":
        return {} if spec.policy.get("after") else {"manual": True}
    return {_KINDS[word]: rest} if word in _KINDS else {"cron": spec.schedule}


def _payload(text: str, payload_as: Callable[[Any], Any]) -> Any:
    """As values where those come to the same JSON. Else as JSON in a text: a text, or a null, would be read as such."""
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except ValueError:
        return text
    if isinstance(value, dict | list):
        shown = payload_as(value)
        return text if shown is None else shown
    return text


def _in_toml(value: Any) -> Any:
    """None where TOML would make something else of it: it has no null, and puts tables last."""
    if _has_null(value) or json.dumps(toml_form.parse(toml_form.dump({"v": value})).values["v"]) != json.dumps(value):
        return None
    return value


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if isinstance(value, list) else value is None
