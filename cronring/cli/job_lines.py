"""Jobs as lines of NDJSON, whose keys are the options of `cronring jobs create`."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from cronring.cli.failures import Failure, nearest
from cronring.cli.job_options import VerbParam
from cronring.cli.job_specs import given_fields, spec_of
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.policy_model import CONSUMED

if TYPE_CHECKING:
    from cronring.client.many import JobToMake

LINE_MAX: Final = 1024 * 1024  # bytes; the largest payload has 64 KiB
# Of the whole file, by options of its own.
_NOT_OF_LINES: Final = frozenset({"now", "note", "as_name", "output", "controllers", "help"})
_KEYS: Final = {"labels": "label"}  # here all of them in one object
_VERB: Final = VerbParam()


class WrongLine(Exception):
    """The line is none; the problems say why, without its number."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class JobLines:
    """Reads lines, by the options of a command."""

    def __init__(self, command: click.Command) -> None:
        options = [each for each in command.params if isinstance(each, click.Option) and each.name]
        self._options = {str(each.name): each for each in options if each.name not in _NOT_OF_LINES}
        self._unset: dict[str, Any] = {
            name: () if each.multiple else False if each.is_flag else None for name, each in self._options.items()
        }

    def job(self, raw: bytes) -> "JobToMake":
        """Raises WrongLine."""
        return self.made(self._read(raw))

    def made(self, said: Mapping[str, Any]) -> "JobToMake":
        """The job that these keys say. Raises WrongLine with everything that is wrong with them."""
        given = {_KEYS.get(name, name.replace("-", "_")): value for name, value in said.items()}
        problems = list(self._unknown(said))
        if len(given) < len(said):
            problems.append("a key stands twice in it, once with - and once with _")
        problems += _wrong_target(given)
        values: dict[str, Any] = {}
        for name, value in given.items():
            if name not in {*self._options, "verb"}:
                continue
            try:
                values[name] = _VERB.convert(value, None, None) if name == "verb" else self._value(name, value)
            except click.UsageError as error:
                problems.append(error.message)
            except RecursionError:
                problems.append(f"{name}: it is nested too deep")
        if problems:
            raise WrongLine(*problems)
        try:
            return _new_job(values.pop("verb", None), self._unset | values)
        except click.UsageError as error:
            raise WrongLine(error.message) from None
        except Failure as error:
            raise WrongLine(str(error)) from None

    def _unknown(self, said: Mapping[str, Any]) -> Iterator[str]:
        for name in said:
            if _KEYS.get(name, name.replace("-", "_")) not in {*self._options, "verb"}:
                words = f"there is no key {name!r:.120}.{nearest(name, ['verb', 'labels', *self._options])}"
                yield f"{words} Keys are the options of `cronring jobs create`, and verb"

    def _read(self, raw: bytes) -> Mapping[str, Any]:
        if len(raw) > LINE_MAX:
            raise WrongLine(f"it has more than {LINE_MAX} bytes")
        try:
            found = json.loads(raw, object_pairs_hook=_unrepeated)
        except (ValueError, RecursionError) as error:
            raise WrongLine(f"it is no JSON: {error}") from None
        if b"\\u" in raw and not _storable(found):
            raise WrongLine("it holds halves of surrogate pairs, which no text may")
        if not isinstance(found, dict):
            raise WrongLine('it is no JSON object, like {"verb": "billing.close", "name": "x", "cron": "0 6 * * *"}')
        return found

    def _value(self, name: str, value: object) -> Any:
        """As click would make it of the option. Raises UsageError."""
        option = self._options[name]
        if value is None:
            return self._unset[name]
        if option.is_flag:
            return _typed(name, value, bool, "true or false")
        if name == "payload":  # as JSON itself; a text is what --payload takes, but for files
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if name == "label":
            pairs = _typed("labels", value, dict, 'an object, like {"team": "x"}')
            return tuple((key, _typed(f"labels.{key}", each, str, "a text")) for key, each in pairs.items())
        if option.multiple:
            names = [value] if isinstance(value, str) else _typed(name, value, list, "a list of texts")
            return tuple(_typed(name, each, str, "a text") for each in names)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise click.UsageError(f"{name}: {json.dumps(value):.120} must be a text or a number")
        try:
            return option.type.convert(str(value), option, None)
        except click.UsageError as error:
            raise click.UsageError(f"{name}: {error.message}") from None


def _wrong_target(given: Mapping[str, Any]) -> Iterator[str]:
    if not given.get("queue") and not all(isinstance(given.get(key), str) for key in ("verb", "name")):
        yield 'it needs a "verb", like "billing.close", and a "name", both texts; or a "queue"'
    if given.get("queue") and "verb" in given:
        yield 'it has a "verb" and a "queue"; a job has one target'


def _new_job(verb: Any, values: dict[str, Any]) -> "JobToMake":
    from cronring.client.many import JobToMake

    name, template = values.pop("name") or "", values.pop("template") or ""
    queue, workspace = values.pop("queue") or "", values.pop("workspace") or ""
    if values.pop("await"):
        values["completes"] = CONSUMED
    spec = spec_of(values)
    if not template and not spec.schedule:
        raise click.UsageError('when does it tick? Give "cron", "every", "at", "after" or "manual", or a "template"')
    explicit = given_fields(values) if template else ()
    if verb is not None:
        return JobToMake(verb.module, verb.verb, name, spec, verb.namespace, template, explicit)
    namespace, _, plain = queue.rpartition("/")
    namespace = namespace or DEFAULT_NAMESPACE
    return JobToMake("", "", name, spec, namespace, template, explicit, queue=plain, workspace=workspace)


def _typed(name: str, value: object, kind: type, words: str) -> Any:
    if not isinstance(value, kind):
        raise click.UsageError(f"{name}: {json.dumps(value):.120} must be {words}")
    return value


def _storable(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found
