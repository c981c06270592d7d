"""A crontab as a module: a Python file whose verbs run the commands as cron would, or the schema alone.

Or as what a single verb is given for each entry.
"""

import json
import keyword
import re
from collections.abc import Iterator
from typing import Final

from cronring.schema.crontab import Aside, Crontab, CrontabEntry
from cronring.schema.module import Module, Verb
from cronring.schema.policy import read_policy
from cronring.schema.validate import NAME_LIMIT, clean_doc

# cron sets no limit, and five minutes, the default here, would end many a backup.
TIMEOUT: Final = "1d"
TIMEOUT_MS: Final = 86_400_000

_WORD: Final = re.compile(r"[^\s;|&<>()\"'`]+")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PLAIN: Final = re.compile(r"[^a-z0-9]+")
# What stands before the command that is meant.
_WRAPPERS: Final = frozenset({
    "ash", "bash", "chronic", "command", "dash", "env", "exec", "flock", "ionice", "java", "ksh", "nice", "nohup",
    "run-parts", "runuser", "setsid", "sh", "stdbuf", "su", "sudo", "systemd-cat", "test", "time", "timeout", "uv",
    "zsh", "[", "!", "{", ":", "if", "then", "true",
})  # fmt: skip
_TAKES_FOLDER: Final = frozenset({"cd", "pushd"})
_INTERPRETER: Final = re.compile(r"(?:python|perl|php|ruby|node)[0-9.]*")
_TAKEN: Final = frozenset({"cron", "os", "pwd", "subprocess", "run", "environment"})
_EXTENSION: Final = re.compile(r"\.(?:bash|bat|cgi|exe|jar|js|phar|php|pl|py|pyz|rb|sh)$")
_DOC_LIMIT: Final = 4_000

_HEAD: Final = '''
import os
import pwd
import subprocess

from cronring import {decorator}


def run(command: str, stdin: str = "", user: str = "", environment: "dict[str, str] | None" = None) -> None:
    """Run a command as cron does: by a shell, in the user's home, with few variables. Raises what makes a run fail.

    For another user than the runner's, that one has to be root.
    """
    account = pwd.getpwnam(user) if user else pwd.getpwuid(os.getuid())
    variables = {name: value for name, value in os.environ.items() if name.startswith(("LANG", "LC_"))}
    variables.update(SHELL="/bin/sh", PATH="/usr/bin:/bin", HOME=account.pw_dir)
    variables.update(environment or {})
    variables.update(LOGNAME=account.pw_name, USER=account.pw_name)
    other = {}
    if account.pw_uid != os.getuid():
        groups = os.getgrouplist(account.pw_name, account.pw_gid)
        other = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": groups}
    subprocess.run(
        [variables["SHELL"], "-c", command],
        input=stdin, text=True, check=True, cwd=variables["HOME"], env=variables, **other,
    )
'''

_COMMAND_VERB: Final = '''

class Command(TypedDict):
    command: str
    stdin: str
    user: str
    environment: Dict[str, str]


@verb
def execute(request: Command) -> None:
    """Run the command of a crontab's entry."""
    run(request["command"], request["stdin"], request["user"], request["environment"])
'''


def command_source() -> str:
    """A Python file with one verb, `execute`, which runs whatever command it is given as cron would."""
    doc = "Commands, run as cron runs them: for the jobs that `cronring import crontab --as jobs` makes."
    head = _HEAD.replace("{decorator}", "verb").replace(
        "import subprocess\n", "import subprocess\nfrom typing import Dict, TypedDict\n"
    )
    return f'"""{doc}"""\n{head}{_COMMAND_VERB}'


def command_payload(entry: CrontabEntry) -> str:
    """What `execute` is given for an entry, as JSON."""
    request = {
        "command": entry.command,
        "stdin": entry.stdin,
        "user": entry.user,
        "environment": dict(entry.environment),
    }
    return json.dumps(request, ensure_ascii=False)


def crontab_source(crontab: Crontab, source: str) -> str:
    """A Python file with a verb for each entry. `source` is the crontab's name, for its documentation."""
    names = verb_names(crontab.entries)
    environments = _environments(crontab.entries)
    lines = [_docstring(_module_doc(crontab, source), ""), _HEAD.replace("{decorator}", "cron").rstrip("\n")]
    for environment, constant in environments.items():
        settings = [f"    {_quoted(name)}: {_quoted(value)}," for name, value in environment]
        lines += ["", "", f"{constant} = {{", *settings, "}"]
    before: CrontabEntry | Aside | None = None
    for part in crontab.parts:
        if not isinstance(part, Aside) or not isinstance(before, Aside):
            lines += ["", ""]
        match part:
            case Aside():
                lines.append(f"# {_flat(part.text)}")
            case CrontabEntry():
                lines += _verb_lines(part, names[part.line], environments)
        before = part
    return "\n".join(lines) + "\n"


def crontab_schema(crontab: Crontab, name: str, source: str, namespace: str) -> Module:
    """The verbs and their schedules, without the commands, which only stand in their documentation."""
    names = verb_names(crontab.entries)
    verbs = tuple(
        Verb(
            name=names[entry.line],
            schedule=entry.pattern,
            timeout_ms=TIMEOUT_MS,
            doc=clean_doc(_verb_doc(entry)),
            policy=read_policy(entry.policy()),
        )
        for entry in crontab.entries
    )
    return Module(name, verbs, namespace, clean_doc(_module_doc(crontab, source)))


def verb_names(entries: list[CrontabEntry]) -> dict[int, str]:
    """A name for each entry, by its line: of what its command runs, numbered where several run the same."""
    names: dict[int, str] = {}
    taken = set(_TAKEN)
    for entry in entries:
        base = name = _name(entry.command)
        number = 1
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name)
        names[entry.line] = name
    return names


def _name(command: str) -> str:
    """Of the first word that looks like the program that is meant: `backup` of `cd /srv && nice ./backup.sh -q`."""
    skip_next = False
    for word in _WORD.findall(command):
        program = word.rpartition("/")[2]
        if skip_next:
            skip_next = False
        elif program in _TAKES_FOLDER:
            skip_next = True
        elif not (_ASSIGNMENT.match(word) or word.startswith(("-", "$")) or program in _WRAPPERS):
            if _INTERPRETER.fullmatch(program):
                continue
            name = _PLAIN.sub("_", _EXTENSION.sub("", program).lower()).strip("_")
            if not name or name[0].isdigit():
                continue
            name = name[: NAME_LIMIT - 20]
            return f"{name}_job" if keyword.iskeyword(name) else name
    return "job"


def _environments(entries: list[CrontabEntry]) -> dict[tuple[tuple[str, str], ...], str]:
    """A constant's name for each environment that isn't empty, in the order of the file."""
    distinct = list(dict.fromkeys(entry.environment for entry in entries if entry.environment))
    if len(distinct) == 1:
        return {distinct[0]: "ENVIRONMENT"}
    return {environment: f"ENVIRONMENT_{number}" for number, environment in enumerate(distinct, 1)}


def _verb_lines(entry: CrontabEntry, name: str, environments: dict[tuple[tuple[str, str], ...], str]) -> Iterator[str]:
    said = {**entry.policy(), "timeout": TIMEOUT}
    options = "".join(f", {option}={_quoted(value)}" for option, value in said.items())
    yield f"@cron({_quoted(entry.pattern)}{options})"
    yield f"def {name}() -> None:"
    yield _docstring(_verb_doc(entry), "    ")
    arguments = [_quoted(entry.command)]
    if entry.stdin:
        arguments.append(f"stdin={_quoted(entry.stdin)}")
    if entry.user:
        arguments.append(f"user={_quoted(entry.user)}")
    if entry.environment:
        arguments.append(f"environment={environments[entry.environment]}")
    yield f"    run({', '.join(arguments)})"


def _module_doc(crontab: Crontab, source: str) -> str:
    lines = [
        f"The jobs of the crontab {source}, by `cronring import crontab`.",
        "",
        "Not as with cron: a tick that comes while the run before goes on is skipped (overlap=), a run is stopped",
        f"after {TIMEOUT} (timeout=), and after an outage the latest missed tick is made up for (on_missed=).",
    ]
    lost = [str(remark) for remark in crontab.remarks if remark.lost]
    if lost:
        lines += ["", "Not translated:", *lost]
    if crontab.doc:
        lines += ["", crontab.doc]
    return "\n".join(lines)


def _verb_doc(entry: CrontabEntry) -> str:
    """The comment above the entry, and the entry."""
    user = f"{entry.user} " if entry.user else ""
    line = f"Line {entry.line}: {entry.times} {user}{entry.command}"[:_DOC_LIMIT]
    return f"{entry.comment[:_DOC_LIMIT]}\n\n{line}" if entry.comment else line


def _docstring(text: str, indent: str) -> str:
    """A docstring that says exactly this, whatever it is."""
    escaped = clean_doc(text).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if escaped.endswith('"'):
        escaped = f'{escaped[:-1]}\\"'
    lines = [f"{indent}{line}".rstrip() for line in escaped.split("\n")]
    closing = [f'{indent}"""'] if len(lines) > 1 else []
    lines[0] = f'{indent}"""{lines[0].removeprefix(indent)}'
    return "\n".join(lines + closing) if closing else f'{lines[0]}"""'


def _quoted(text: str) -> str:
    """As a literal: what JSON writes, Python reads as the same text."""
    return json.dumps(text, ensure_ascii=False)


def _flat(text: str) -> str:
    return clean_doc(text).replace("\n", " ")
