"""A crontab, read: its entries with the environment that each of them gets, and what can't be translated.

The syntax is vixie-cron's and cronie's: crontab(5), and load_env(), load_entry() and child_process() where that is
silent. An entry has the environment lines above it; comments directly above it document it.
"""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from cronring.schema.crontab_times import Times, TimesFault, translate_nickname, translate_times
from cronring.schema.duration import format_duration
from cronring.schema.fields import shown
from cronring.schema.zone import ZoneError, load_zone

# NAME = VALUE; either may be in quotes. The name ends at the first space or `=`, so no entry looks like one.
_ENVIRONMENT: Final = re.compile(
    r"""(?:"([^"=]*)"|'([^'=]*)'|([^\s=]+))\s*=\s*(?:"([^"]*)"\s*|'([^']*)'\s*|([^"'\s].*)?)""",
)
_TIME_WORD: Final = re.compile(r"[0-9*]\S*|~\S*")
_ZONES: Final = frozenset({"CRON_TZ", "TZ"})
_MINUTE_MS: Final = 60_000


class Remark(NamedTuple):
    """`lost`: it is not translated, so it won't run or happen. Else it is translated, in another form."""

    line: int
    lost: bool
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        remedy = f" ({self.remedy})" if self.remedy else ""
        return f"line {self.line}: {self.message}{remedy}"


@dataclass(frozen=True, slots=True)
class CrontabEntry:
    """One line with a command, translated. `times` is what the line said."""

    line: int
    times: str
    pattern: str
    window: str
    timezone: str  # "": UTC
    jitter: str
    user: str  # "": whoever runs the file
    command: str
    stdin: str
    environment: tuple[tuple[str, str], ...]  # the crontab's own, the last setting of each name
    comment: str

    def policy(self) -> dict[str, str]:
        """What a verb's policy has to say, but for defaults."""
        said = {"timezone": self.timezone, "window": self.window, "jitter": self.jitter}
        return {name: value for name, value in said.items() if value}


class Aside(NamedTuple):
    """A comment that belongs to no entry, or a line that was not translated, to be kept as a comment."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Crontab:
    """In the order of the file's lines."""

    doc: str  # the comment at the file's head, if a blank line follows it
    parts: tuple[CrontabEntry | Aside, ...]
    remarks: tuple[Remark, ...]

    @property
    def entries(self) -> list[CrontabEntry]:
        return [part for part in self.parts if isinstance(part, CrontabEntry)]


def read_crontab(text: str, *, system: bool = False, timezone: str = "") -> Crontab:
    """What a crontab says. Never raises: what is wrong with a line is a remark.

    `system`: a user's name stands before each command, as in /etc/crontab. `timezone`: of the machine that the file is
    from; "": not known. Entries below a CRON_TZ have that zone instead.
    """
    return _Reader(system, timezone).read(text)


class _Reader:
    def __init__(self, system: bool, timezone: str) -> None:
        self._system = system
        self._machine_zone = timezone
        self._environment: dict[str, str] = {}
        self._comment: list[Aside] = []  # the comment lines directly above, so far
        self._doc = ""
        self._parts: list[CrontabEntry | Aside] = []
        self._remarks: list[Remark] = []
        self._unzoned = 0  # the first entry's line of which nothing says the zone

    def read(self, text: str) -> Crontab:
        lines = text.replace("\r\n", "\n").split("\n")
        for number, line in enumerate(lines, 1):
            self._line(number, line.strip(" \t"))
        if lines[-1].strip():
            message = "the last line has no newline, so cron would leave it out; it is taken here"
            self._remark(len(lines), message)
        self._drop_comment()
        if self._unzoned:
            message = "no CRON_TZ: cron goes by its machine's clock, this job and others go by UTC"
            self._remark(self._unzoned, message, "say which zone that is, if it isn't UTC: --timezone Europe/Berlin")
        self._remarks.sort(key=lambda remark: remark.line)
        return Crontab(self._doc, tuple(self._parts), tuple(self._remarks))

    def _line(self, number: int, line: str) -> None:
        if not line:
            self._drop_comment()
        elif line.startswith("#"):
            self._comment_line(number, line)
        elif (setting := _ENVIRONMENT.fullmatch(line)) is not None:
            self._drop_comment()
            self._set(number, setting)
        else:
            self._entry_line(number, line)

    def _comment_line(self, number: int, line: str) -> None:
        text = line.lstrip("#").removeprefix(" ").rstrip()
        if _looks_like_entry(text):  # switched off: it documents nothing
            self._drop_comment()
            self._parts.append(Aside(number, text))
        else:
            self._comment.append(Aside(number, text))

    def _drop_comment(self) -> None:
        """The comment so far stands above no entry."""
        comment, self._comment = self._comment, []
        if comment and not self._parts and not self._environment and not self._doc:
            self._doc = _joined(comment)
        else:
            self._parts += [aside for aside in comment if aside.text.strip("-=* \t")]

    def _set(self, number: int, setting: re.Match[str]) -> None:
        name = next(group for group in setting.groups()[:3] if group is not None)
        *quoted, bare = setting.groups()[3:]
        value = next((group for group in quoted if group is not None), (bare or "").rstrip())
        self._environment[name] = value
        if name in _ZONES:
            self._zone_line(number, name, value)
        elif name == "MAILTO" and value:
            message = f"MAILTO={value}: nothing here sends mail; each execution keeps its output"
            self._remark(number, message, "cronring executions get ID shows it")
        elif name == "RANDOM_DELAY":
            message = "RANDOM_DELAY became jitter=, which differs from tick to tick and from job to job"
            self._remark(number, message)
        elif name == "LOGNAME":
            self._remark(number, "LOGNAME can't be set in a crontab: cron sets it to the user's name, and so do we")

    def _zone_line(self, number: int, name: str, value: str) -> None:
        try:
            load_zone(_zone_name(value) or "UTC")
        except ZoneError as error:
            del self._environment[name]
            remedy = f"write {error.suggestion}" if error.suggestion else ""
            self._remark(number, f"{name}: {error.message}", remedy, lost=True)
            return
        if name == "TZ" and "CRON_TZ" not in self._environment and not self._machine_zone:
            message = f"TZ is taken as the zone of the times below: timezone={_zone_name(value)}"
            remedy = "Debian's cron and cronie only hand TZ to commands: if yours does, say --timezone ZONE_OF_MACHINE"
            self._remark(number, message, remedy)

    def _entry_line(self, number: int, line: str) -> None:
        try:
            entry = self._entry(number, line)
        except TimesFault as fault:
            self._drop_comment()
            self._parts.append(Aside(number, f"NOT TRANSLATED, line {number}: {line}"))
            self._remark(number, fault.message, fault.remedy, lost=True)
        else:
            self._comment = []
            self._parts.append(entry)

    def _entry(self, number: int, line: str) -> CrontabEntry:
        """Raises TimesFault."""
        line = line.removeprefix("-")  # cronie: don't log it
        count = 1 if line.startswith("@") else 5
        words = line.split(None, count)
        if len(words) <= count:
            raise TimesFault("a line has five fields (or a name like @daily) and a command; this has no command")
        times, rest = words[:count], words[count]
        user, command, stdin = self._command(rest)
        zone = self._zone()
        translated = self._times(times, line, zoned=bool(zone))
        if not zone and not self._says_zone():
            self._unzoned = self._unzoned or number
        for message in translated.remarks:
            self._remark(number, message)
        return CrontabEntry(
            line=number,
            times=" ".join(times),
            pattern=translated.pattern,
            window=translated.window,
            timezone=zone,
            jitter=self._jitter(number),
            user=user,
            command=command,
            stdin=stdin,
            environment=tuple(self._environment.items()),
            comment=_joined(self._comment),
        )

    def _times(self, words: list[str], seed: str, *, zoned: bool) -> Times:
        return translate_nickname(words[0]) if len(words) == 1 else translate_times(words, seed, zoned=zoned)

    def _command(self, rest: str) -> tuple[str, str, str]:
        """User, command and standard input of what follows the times. Raises TimesFault."""
        user = ""
        if self._system:
            user, *words = rest.split(None, 1)
            rest = words[0] if words else ""
        option = re.match(r"-n[ \t]+", rest)  # cronie: mail only when it fails
        rest = rest[option.end() :] if option else rest
        if not rest or (self._system and rest.startswith("*")):
            raise TimesFault("a command is missing", "--system is for files with a user's name before each command")
        command, stdin = split_command(rest)
        return user, command, stdin

    def _says_zone(self) -> bool:
        return bool(self._machine_zone or self._environment.get("CRON_TZ") or self._environment.get("TZ"))

    def _zone(self) -> str:
        """Of the next entry; "" for UTC, which it is if nothing says any."""
        zone = self._environment.get("CRON_TZ") or self._machine_zone or self._environment.get("TZ", "")
        name = _zone_name(zone)
        return "" if name == "UTC" else name

    def _jitter(self, number: int) -> str:
        """Of RANDOM_DELAY, which is in minutes."""
        delay = self._environment.get("RANDOM_DELAY", "")
        if not delay or delay == "0":
            return ""
        if not delay.isdecimal() or len(delay) > 4:
            self._remark(number, f"RANDOM_DELAY is no number of minutes: {shown(delay)}", lost=True)
            return ""
        return format_duration(int(delay) * _MINUTE_MS)

    def _remark(self, line: int, message: str, remedy: str = "", *, lost: bool = False) -> None:
        self._remarks.append(Remark(line, lost, message, remedy))


def split_command(text: str) -> tuple[str, str]:
    """The command and its standard input: what follows the first `%`, where every other `%` ends a line.

    `\\%` is a `%`. As cron's child_process() does it.
    """
    parts: list[str] = [""]
    escaped = False
    for character in text:
        if character == "%" and escaped:
            parts[-1] = parts[-1][:-1] + "%"
        elif character == "%":
            parts.append("")
        else:
            parts[-1] += character
        escaped = character == "\\" and not escaped
    command, *lines = parts
    stdin = "\n".join(lines)
    return command.rstrip(), stdin if not stdin or stdin.endswith("\n") else f"{stdin}\n"


def _looks_like_entry(text: str) -> bool:
    """Whether a comment is an entry that was switched off."""
    words = text.split()
    if words and words[0].startswith("@"):
        return len(words) > 1
    return len(words) > 5 and all(_TIME_WORD.fullmatch(word) for word in words[:3])


def _zone_name(value: str) -> str:
    """POSIX allows a colon before a zone's name."""
    return value.strip().removeprefix(":")


def _joined(comment: list[Aside]) -> str:
    return "\n".join(aside.text for aside in comment).strip("\n")
