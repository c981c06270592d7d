"""Crontabs against what cron itself does with them: `cron_oracle`."""

import random
from datetime import date

import pytest

from cronring.schema.crontab import CrontabEntry, read_crontab, split_command
from cronring.schema.crontab_times import TimesFault, translate_nickname, translate_times
from cronring.schema.pattern import CronPattern
from cronring.schema.window import parse_window
from cronring.schema.zone import load_zone
from cronring.schema.zoned import ZonedPattern
from tests.unit.schema.cron_oracle import CronLine, Refused, random_fields

YEAR = date(2027, 12, 31), 366  # to the end of a leap year
DAY = 86_400


def start(day: date) -> int:
    return (day - date(1970, 1, 1)).days * DAY


def ticks(pattern: str, window: str, first: date, days: int) -> list[int]:
    parsed, tick = CronPattern.parse(pattern), start(first) - 1
    inside = parse_window(window) if window else None
    found = []
    while (after := parsed.next_second(tick)) is not None and after < start(first) + days * DAY:
        tick = after
        if inside is None or inside.contains(tick * 1_000_000):
            found.append(tick)
    return found


def agree(text: str, chance: random.Random) -> str:
    """Whether a line ticks as in cron, over a year: by days, and minute by minute on some of them."""
    try:
        line = CronLine(text)
    except Refused:
        with pytest.raises(TimesFault):
            translate_times(text.split(), "", zoned=False)
        return "refused"
    try:
        times = translate_times(text.split(), "", zoned=False)
    except TimesFault as fault:
        told = fault.message
    else:
        told = ""
    if told:
        backwards = "runs backwards" in told  # a part of a list that cron takes for empty
        assert backwards or ("never" in told and not any(line.ticks(date(2027, 1, 1), 8 * 366))), (text, told)
        return "never"
    per_day = len(line.minutes_of_day())
    if per_day <= 8:
        assert ticks(times.pattern, times.window, *YEAR) == list(line.ticks(*YEAR)), text
        return "same"
    pattern = CronPattern.parse(times.pattern)
    inside = parse_window(times.window) if times.window else None
    matching = []
    for number in range(YEAR[1]):
        day = date.fromordinal(YEAR[0].toordinal() + number)
        here = start(day)
        open_here = inside is None or inside.contains(here * 1_000_000)
        counted = pattern.count_seconds(here - 1, here + DAY - 1) if open_here else 0
        assert counted == (per_day if line.on(day) else 0), (text, day)
        if counted:
            matching.append(day)
    for day in chance.sample(matching, min(2, len(matching))):
        assert ticks(times.pattern, times.window, day, 1) == list(line.ticks(day, 1)), (text, day)
    return "same"


def test_random_lines_tick_as_in_cron():
    chance = random.Random(17)
    # Of each kind there are enough; two hundred thousand others are soaked.
    seen = [agree(random_fields(chance), chance) for _ in range(1_000)]
    assert seen.count("same") > 500
    assert seen.count("refused") > 150
    assert seen.count("never") > 6


@pytest.mark.soak
def test_many_random_lines_tick_as_in_cron():
    chance = random.Random()
    for _ in range(200_000):
        agree(random_fields(chance), chance)


@pytest.mark.parametrize("seed", range(200))
def test_changed_clocks_do_to_a_job_what_they_do_in_cron(seed: int):
    """A job that follows the hours here is one that does in cron, and the longer text ticks the same."""
    chance = random.Random(seed)
    text = random_fields(chance)
    try:
        line = CronLine(text)
        zoned = translate_times(text.split(), "", zoned=True)
    except (Refused, TimesFault):
        return
    pattern = CronPattern.parse(zoned.pattern)
    assert ZonedPattern(pattern, load_zone("Europe/Berlin")).fixed_time != line.follows_hours, (text, zoned.pattern)
    assert pattern.sets == CronPattern.parse(translate_times(text.split(), "", zoned=False).pattern).sets


TIMES = [
    ("0 0 * * mon-fri", "0 0 * * 1-5", ""),
    ("0 0 * JAN,jul 7", "0 0 * 1,7 7", ""),
    ("0 0 * * sat-sun", "0 0 * * 6-7", ""),
    ("*/100 * * * *", "0 * * * *", ""),
    ("10-20/60 * * * *", "10 * * * *", ""),
    ("0 0 1,15 * 5", "0 0 1,15 * 5", ""),
    ("0 0 */1 * 5", "0 0 * * 5", ""),
    ("0 0 13 * */1", "0 0 13 * *", ""),
    ("0 0 1-7 * */7", "0 0 1-7 * *", "Sun 00:00-24:00"),
    ("0 0 */2 * 1-5", "0 0 */2 * *", "Mon-Fri 00:00-24:00"),
    ("0 0 */100,1-7 * mon", "0 0 1,1-7 * *", "Mon 00:00-24:00"),  # the first Monday, as it is done in cron
    ("0 0 *,5 * *", "0 0 *,5 * *", ""),
    ("08 09 * * *", "8 9 * * *", ""),
]


@pytest.mark.parametrize(("written", "pattern", "window"), TIMES)
def test_times(written: str, pattern: str, window: str):
    assert translate_times(written.split(), "", zoned=False)[:2] == (pattern, window)


FAULTS = [
    ("5/10 * * * *", "no step without a range", "5-59/10"),
    ("0 0 * * fri-mon", "runs backwards", "5-6,0-1"),
    ("0 0 * * monday", "neither a number nor a name", "mon"),
    ("0 24 * * *", "24 is outside 0 to 23", ""),
    ("0 0 30 2 *", "February never reaches day 30: cron would never run it either", ""),
    ("1-5/0 * * * *", "a step of 0", ""),
    ("*-5 * * * *", "not what cron takes", ""),
    ("0 0 ? * *", "not what cron takes", ""),
    ("0 0 L * *", "neither a number nor a name", ""),
    ("1,,2 * * * *", "not what cron takes", ""),
    ("20~10 * * * *", "runs backwards", ""),
]


@pytest.mark.parametrize(("written", "message", "remedy"), FAULTS)
def test_faults(written: str, message: str, remedy: str):
    with pytest.raises(TimesFault) as caught:
        translate_times(written.split(), "", zoned=False)
    assert message in caught.value.message
    assert remedy in caught.value.remedy


def test_names_of_times():
    assert [translate_nickname(f"@{name}").pattern for name in ("yearly", "weekly", "hourly")] == [
        "0 0 1 1 *",
        "0 0 * * 0",
        "0 * * * *",
    ]
    for name in ("@reboot", "@Daily", "@every"):
        with pytest.raises(TimesFault):
            translate_nickname(name)


def test_a_random_value_stays_the_same_and_is_inside():
    picked = [translate_times(["10~20", "~", "*", "*", "*"], seed, zoned=False) for seed in ("a", "b", "c", "a")]
    assert picked[0] == picked[3] != picked[1]
    for times in picked:
        minute, hour, *_ = times.pattern.split()
        assert 10 <= int(minute) <= 20
        assert 0 <= int(hour) <= 23
        assert len(times.remarks) == 2


COMMANDS = [
    ("echo hello", "echo hello", ""),
    (r"date +\%s", "date +%s", ""),
    ("mail joe%Hi,%%Bye%", "mail joe", "Hi,\n\nBye\n"),
    (r"cat%50\% off%done", "cat", "50% off\ndone\n"),
    (r"echo a\\b", r"echo a\\b", ""),
    ("cat%", "cat", ""),
]


@pytest.mark.parametrize(("written", "command", "stdin"), COMMANDS)
def test_percent_signs(written: str, command: str, stdin: str):
    assert split_command(written) == (command, stdin)


def entries(text: str, **options: bool | str) -> list[CrontabEntry]:
    return read_crontab(text, **options).entries  # type: ignore[arg-type]  # the options of read_crontab


def test_environment_holds_for_the_entries_below_it():
    first, second = entries('* * * * * one\nA=1\n B = \'x y \' \n"C"=""\nA=2\n* * * * * two\n')
    assert first.environment == ()
    assert dict(second.environment) == {"A": "2", "B": "x y ", "C": ""}


def test_what_looks_like_a_setting_but_is_a_command():
    (entry,) = entries("* * * * * A=1 run\n")
    assert (entry.command, entry.environment) == ("A=1 run", ())


def test_zones():
    text = (
        "0 9 * * * a\nTZ=America/New_York\n0 9 * * * b\nCRON_TZ=:Europe/Berlin\n0 9 * * * c\nCRON_TZ=UTC\n0 9 * * * d\n"
    )
    assert [entry.timezone for entry in entries(text)] == ["", "America/New_York", "Europe/Berlin", ""]
    assert [entry.timezone for entry in entries(text, timezone="Asia/Tokyo")] == [
        "Asia/Tokyo",
        "Asia/Tokyo",  # where the machine's zone is known, TZ is for commands, as in cron
        "Europe/Berlin",
        "",
    ]
    told = [(remark.line, remark.lost) for remark in read_crontab(text).remarks]
    assert told == [(1, False), (2, False)]
    wrong = read_crontab("CRON_TZ=Europe/Berln\n0 9 * * * a\n")
    assert wrong.remarks[0].lost
    assert "Europe/Berlin" in wrong.remarks[0].remedy


def test_system_crontabs_name_a_user():
    (entry,) = entries("17 *\t* * *\troot\tcd / && run-parts /etc/cron.hourly\n", system=True)
    assert (entry.user, entry.command, entry.pattern) == ("root", "cd / && run-parts /etc/cron.hourly", "17 * * * *")
    missing = read_crontab("* * * * * root\n", system=True)
    assert [remark.lost for remark in missing.remarks] == [True]


def test_options_of_cronie():
    (entry,) = entries("-*/5 * * * * -n quiet\n")
    assert (entry.pattern, entry.command) == ("*/5 * * * *", "quiet")
    assert entries("RANDOM_DELAY=45\n0 1 * * * a\n")[0].jitter == "45m"


def test_comments():
    crontab = read_crontab(
        "# The file.\n\n# About a.\n# More.\n0 1 * * * a\n# On its own.\n\n#0 2 * * * off\n0 3 * * * b\n",
        timezone="UTC",
    )
    assert crontab.doc == "The file."
    assert [entry.comment for entry in crontab.entries] == ["About a.\nMore.", ""]
    assert [part.text for part in crontab.parts if not isinstance(part, CrontabEntry)] == [
        "On its own.",
        "0 2 * * * off",
    ]
    assert crontab.remarks == ()


def test_what_is_lost_has_its_line():
    crontab = read_crontab("@reboot start\n0 1 * * * a\n* * * *\n0 61 * * * b\n0 2 * * * c", timezone="UTC")
    assert [(remark.line, remark.lost) for remark in crontab.remarks] == [
        (1, True),
        (3, True),
        (4, True),
        (5, False),  # no newline at the end
    ]
    assert [entry.line for entry in crontab.entries] == [2, 5]


def test_nothing_that_a_file_holds_raises():
    chance = random.Random(5)
    alphabet = "*/0159-~,@% \t\n#='\"\\abcMONTZ=\u20ac\x00\x1b"
    for _ in range(3_000):
        text = "".join(chance.choice(alphabet) for _ in range(chance.randint(0, 80)))
        read_crontab(text, system=chance.random() < 0.3)
