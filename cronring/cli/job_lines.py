"""Jobs as lines of NDJSON, whose keys are the options of `cronring jobs create`."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from cronring.cli.failures import Failure, suggestion
from cronring.cli.job_options import VerbParam, job_options, queue_options
from cronring.cli.job_specs import given_fields, spec_of
from cronring.cli.policies import policy_options
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.policy_model import CONSUMED

if TYPE_CHECKING:
    from cronring.client.many import JobToMake

LINE_MAX: Final = 1024 * 1024  # bytes; the largest payload has 64 KiB
_KEYS: Final = {"labels": "label"}  # here all of them in one object
_TEXTS: Final = frozenset({"verb", "name"})  # which no number stands for
_VERB: Final = VerbParam()


class WrongLine(Exception):
    """The line is none; the problems say why, without its number."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class JobLines:
    """Reads lines, by the options of a command that makes jobs."""

    def __init__(self, command: click.Command) -> None:
        options = [each for each in command.params if isinstance(each, click.Option)]
        # Named one by one, and the rest by who adds them: an option that the command gets is no key by itself.
        bare = policy_options(job_options(queue_options(click.Command(None))))
        of_jobs = {"name", "template", "now", *(each.name for each in bare.params)}
        self._options = {str(each.name): each for each in options if each.name in of_jobs}
        self._of_command = {_key(flag.lstrip("-")) for each in options for flag in each.opts} | {"help"}
        self._unset: dict[str, Any] = {
            name: () if each.multiple else False if each.is_flag else None for name, each in self._options.items()
        }

    def job(self, raw: bytes) -> "JobToMake":
        """Raises WrongLine."""
        return self.made(_read(raw))

    def made(self, said: Mapping[str, Any]) -> "JobToMake":
        """The job that these keys say. Raises WrongLine with everything that is wrong with them."""
        given = {_key(name): value for name, value in said.items()}
        problems = list(self._unknown(said))
        if len(given) < len(said):
            problems.append("a key stands twice in it, once with - and once with _")
        values, wrong = self._values(given)
        problems += wrong or _wrong_target(values)
        if problems:
            raise WrongLine(*problems)
        try:
            return _new_job(values.pop("verb", None), self._unset | values)
        except click.UsageError as error:
            raise WrongLine(error.message) from None
        except Failure as error:
            raise WrongLine(str(error)) from None

    def _values(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """What they are as options, and what is wrong with the others. null is as if it were left out."""
        values, wrong = dict[str, Any](), list[str]()
        for name, value in given.items():
            if value is None or name not in {*self._options, "verb"}:
                continue
            try:
                values[name] = self._value(name, value)
            except click.UsageError as error:
                wrong.append(error.message)
            except RecursionError:
                wrong.append(f"{name}: it is nested too deep")
            except ValueError as error:  # of numbers that no text holds: too many digits, or infinite
                wrong.append(f"{name}: {error}")
        return values, wrong

    def _unknown(self, said: Mapping[str, Any]) -> Iterator[str]:
        for name in said:
            key = _key(name)
            if key in {*self._options, "verb"}:
                continue
            if key in self._of_command:
                yield f"{name}: it is an option of a command, and no key of a job; give it on the command line"
                continue
            words = f"there is no key {name!r:.120}.{suggestion(name, ['verb', 'labels', *self._options])}"
            yield f"{words} Keys are the options of `cronring jobs create`, and verb"

    def _value(self, name: str, value: object) -> Any:
        """As click would make it of the option. Raises UsageError, ValueError, RecursionError."""
        if name in _TEXTS:
            text = _typed(name, value, str, "a text")
            return text if name == "name" else _converted(name, _VERB, text, None)
        option = self._options[name]
        if option.is_flag:
            return _typed(name, value, bool, "true or false")
        if name == "payload":  # as JSON itself; a text is what --payload takes, but for files
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)
        if name == "label":
            pairs = _typed("labels", value, dict, 'an object, like {"team": "x"}')
            return tuple((key, _typed(f"labels.{key}", each, str, "a text")) for key, each in pairs.items())
        if option.multiple:
            names = [value] if isinstance(value, str) else _typed(name, value, list, "a list of texts")
            return tuple(_typed(name, each, str, "a text") for each in names)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise click.UsageError(f"{name}: {json.dumps(value):.120} must be a text or a whole number")
        return _converted(name, option.type, str(value), option)


def _key(name: str) -> str:
    """By which an option is known."""
    return _KEYS.get(name, name.replace("-", "_"))


def _read(raw: bytes) -> Mapping[str, Any]:
    """Raises WrongLine."""
    if len(raw) > LINE_MAX:
        raise WrongLine(f"it has more than {LINE_MAX} bytes")
    try:
        # Decoded here, as json lets halves of surrogate pairs pass in bytes.
        found = json.loads(raw.decode(), object_pairs_hook=_unrepeated)
    except (ValueError, RecursionError) as error:
        raise WrongLine(f"it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise WrongLine('it is no JSON object, like {"verb": "billing.close", "name": "x", "cron": "0 6 * * *"}')
    if b"\\u" in raw:
        halves = [name for name, value in found.items() if not _storable([name, value])]
        if halves:
            raise WrongLine(
                *(f"{name!r:.120}: it holds half of a surrogate pair, which no text may" for name in halves)
            )
    return found


def _wrong_target(values: Mapping[str, Any]) -> Iterator[str]:
    verb, queue = "verb" in values, values.get("queue")
    if not queue and not (verb and values.get("name")):
        yield 'it needs a "verb", like "billing.close", and a "name", both texts; or a "queue"'
    if verb and queue:
        yield 'it has a "verb" and a "queue"; a job has one target'
    if verb and values.get("workspace"):
        yield 'it has a "verb" and a "workspace", which is a queue\'s; give "labels": {"workspace": ...}'


def _converted(name: str, kind: click.ParamType[Any], text: str, option: click.Option | None) -> Any:
    """Raises UsageError that names the key."""
    try:
        return kind.convert(text, option, None)
    except click.UsageError as error:
        raise click.UsageError(f"{name}: {error.message}") from None


def _new_job(verb: Any, values: dict[str, Any]) -> "JobToMake":
    from cronring.client.many import JobToMake

    name, template = values.pop("name") or "", values.pop("template") or ""
    queue, workspace = values.pop("queue") or "", values.pop("workspace") or ""
    run_now = values.pop("now")
    if values.pop("await"):
        values["completes"] = CONSUMED
    spec = spec_of(values)
    if run_now and not template and not spec.schedule:
        spec = spec_of(values | {"manual": True})
    if not template and not spec.schedule:
        raise click.UsageError(
            'when does it tick? Give "cron", "every", "at", "after", "manual" or "now", or a "template"'
        )
    explicit = given_fields(values) if template else ()
    if verb is not None:
        return JobToMake(verb.module, verb.verb, name, spec, verb.namespace, template, explicit, run_now=run_now)
    namespace, _, plain = queue.rpartition("/")
    namespace = namespace or DEFAULT_NAMESPACE
    return JobToMake("", "", name, spec, namespace, template, explicit, plain, workspace, run_now)


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
