"""Sets of jobs in files and folders. All of it is read, and everything that is wrong is told at once."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cronring.cli.failures import Failure, suggestion
from cronring.cli.files import toml_form, yaml_form
from cronring.cli.files.parsed import FileFault, ParsedFile, UnreadableFile
from cronring.cli.job_lines import JobLines, WrongLine
from cronring.schema.keys import JobKey, qualified
from cronring.schema.queues import DEFAULT_NAME, module_of_queue, verb_of_workspace

if TYPE_CHECKING:
    from cronring.client.many import JobToMake

FORMS: Final[Mapping[str, Callable[[str], ParsedFile]]] = {
    ".yaml": yaml_form.parse, ".yml": yaml_form.parse, ".toml": toml_form.parse
}  # fmt: skip
FILE_MAX: Final = 32 * 1024 * 1024  # bytes
_KEYS: Final = ("set", "namespace", "jobs")
# In a file that is applied again and again these would be others each time.
_INSTANTS: Final = ("at", "anchor", "start_at", "end_at")
_MOVING: Final = re.compile(r"now|[-+].*|[0-9]{1,2}:[0-9:]*")


class FileJob(NamedTuple):
    """`where`: file and line."""

    job: "JobToMake"
    where: str


class FileSet(NamedTuple):
    """Of one file, or of several. `jobs`: by their keys."""

    namespace: str
    name: str
    jobs: dict[str, FileJob]


class Files:
    """Reads files one after the other; `sets` and `faults` are what they come to."""

    def __init__(self, lines: JobLines) -> None:
        self._lines = lines
        self.sets: dict[tuple[str, str], FileSet] = {}
        self.faults: list[FileFault] = []

    def read(self, path: Path) -> None:
        """Raises Failure for a file that can't be opened."""
        try:
            parsed = FORMS[path.suffix.lower()](_text(path))
        except UnreadableFile as error:
            self.faults += [FileFault(str(path), line, problem) for line, problem in error.faults]
            return
        self.take(path, parsed)

    def take(self, path: Path, parsed: ParsedFile) -> None:
        """What a file of that name says."""
        found = self._set(path, parsed.values)
        jobs = parsed.values.get("jobs")
        if jobs is None:  # a file that was cut short must not read as one that removes everything
            empty = "jobs = []" if path.suffix.lower() == ".toml" else "jobs: []"
            self._fault(path, 0, f"it has no jobs: write `{empty}` if its set is to have none of it")
            return
        if not isinstance(jobs, list):
            self._fault(path, 0, "jobs must be a list, an item for each job")
            return
        lines = parsed.lines.get("jobs") or [0] * len(jobs)
        for number, (given, line) in enumerate(zip(jobs, lines, strict=True), 1):
            self._job(path, line, number, given, found)

    def _set(self, path: Path, values: Mapping[str, Any]) -> FileSet:
        for key in values:
            if key not in _KEYS:
                known = f"there is no key {key!r:.120} at the top of a file.{suggestion(key, _KEYS)}"
                self._fault(path, 0, f"{known} There are {', '.join(_KEYS)}")
        name, namespace = values.get("set"), values.get("namespace", "default")
        if not isinstance(name, str) or not name:
            self._fault(path, 0, "it names no set: give it one at the top, like `set: billing-prod`")
        if not isinstance(namespace, str) or not namespace:
            self._fault(path, 0, "namespace must be a text, like `namespace: prod`; leave it out for default")
        of = _if_text(namespace), _if_text(name)
        return self.sets.setdefault(of, FileSet(*of, {}))

    def _job(self, path: Path, line: int, number: int, given: object, found: FileSet) -> None:
        who = _called(given) or f"job {number}"
        if not isinstance(given, dict):
            self._fault(path, line, f"{who}: it is no mapping of keys and values, like verb: billing.close")
            return
        problems = [*_moving(given), *_at_once(given)]
        try:
            job = self._lines.made(_in_namespace(given, found.namespace))
        except WrongLine as error:
            problems += error.problems
        if problems:
            self.faults += [FileFault(str(path), line, f"{who}: {problem}") for problem in problems]
            return
        where = f"{path}:{line}" if line else str(path)
        key = key_of(job)
        if key in found.jobs:
            self._fault(path, line, f"{key}: it stands in {found.jobs[key].where} already; give it another name")
        else:
            found.jobs[key] = FileJob(job, where)

    def _fault(self, path: Path, line: int, problem: str) -> None:
        self.faults.append(FileFault(str(path), line, problem))


def found_in(paths: tuple[str, ...]) -> list[Path]:
    """Files of these names, and those in folders of these names and below. Raises Failure."""
    found: list[Path] = []
    for each in map(Path, paths):
        if each.is_dir():
            inside = sorted(_below(each))
            if not inside:
                raise Failure(f"{each}: there is no file in it that ends in {', '.join(FORMS)}")
            found += inside
        elif each.suffix.lower() not in FORMS:
            raise Failure(f"{each}: it must end in {', '.join(FORMS)}, which says how it is read")
        else:
            found.append(each)
    return list(dict.fromkeys(found))


def _below(folder: Path) -> Iterator[Path]:
    """Hidden ones are nobody's. A folder that can't be read must not look empty: its jobs would be removed."""

    def fail(error: OSError) -> None:
        raise Failure(f"{error.filename}: {error.strerror}")

    for place, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and Path(name).suffix.lower() in FORMS:
                yield Path(place) / name


def key_of(job: "JobToMake") -> str:
    """The key that it has in the cluster."""
    module, verb, name = job.module, job.verb, job.name
    if job.queue:
        module, verb, name = module_of_queue(job.queue), verb_of_workspace(job.workspace), job.name or DEFAULT_NAME
    return str(JobKey(job.namespace, module, f"{verb}:{name}"))


def _if_text(value: object) -> str:
    """ "": it is none, which is told as a fault. A number may be too long to be made a text."""
    return value if isinstance(value, str) else ""


def _text(path: Path) -> str:
    """Raises Failure, UnreadableFile."""
    try:
        with path.open("rb") as opened:
            raw = opened.read(FILE_MAX + 1)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    if len(raw) > FILE_MAX:
        raise UnreadableFile((0, f"it has more than {FILE_MAX:,} bytes; divide it"))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFile((raw[: error.start].count(b"\n") + 1, "it is no UTF-8 text")) from None


def _called(given: object) -> str:
    if not isinstance(given, dict):
        return ""
    target, name = given.get("verb") or given.get("queue"), given.get("name")
    return f"{target}:{name}" if isinstance(target, str) and isinstance(name, str) else ""


def _in_namespace(given: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """With the set's namespace at its verb or queue, where that names none."""
    found = dict(given)
    for key in ("verb", "queue"):
        target = given.get(key)
        if isinstance(target, str) and target and "/" not in target:
            found[key] = qualified(namespace, target)
    return found


def _moving(given: Mapping[Any, Any]) -> Iterator[str]:
    for name in _INSTANTS:
        value = given.get(name, given.get(name.replace("_", "-")))
        if isinstance(value, str) and _MOVING.fullmatch(value.strip()):
            yield f"{name}: {value!r:.60} is another instant each time; write a date, like 2027-03-29T09:00"


def _at_once(given: Mapping[Any, Any]) -> Iterator[str]:
    if "now" in given:
        yield "now: a file says which jobs there are, again and again; run one by `cronring jobs trigger`"
