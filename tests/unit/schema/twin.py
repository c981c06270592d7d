"""A deliberately dumb twin of CronPattern, for valid patterns: python sets, `datetime` fields, one step at a time.

It shares nothing with `schema`: no masks, no months table, no parser.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

RANGES = [(0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6), (1970, 2099)]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


class Twin:
    def __init__(self, text: str) -> None:
        self.fields = seven_fields(text)
        self.values = [values(field, *bounds) for field, bounds in zip(self.fields, RANGES, strict=True)]
        if 7 in self.values[5]:
            self.values[5].add(0)

    def is_day(self, moment: datetime) -> bool:
        if moment.year not in self.values[6] or moment.month not in self.values[4]:
            return False
        in_month = moment.day in self.values[3]
        in_week = moment.isoweekday() % 7 in self.values[5]
        if self.fields[3] != "*" and self.fields[5] != "*":
            return in_month or in_week
        return in_month and in_week

    def matches(self, moment: datetime) -> bool:
        return (
            moment.second in self.values[0]
            and moment.minute in self.values[1]
            and moment.hour in self.values[2]
            and self.is_day(moment)
        )

    def ticks(self, after: datetime, until: datetime, step: timedelta) -> Iterator[datetime]:
        """Every match in (after, until]. `step` must not be longer than the finest distance of the pattern."""
        moment = after.replace(microsecond=0)
        if step >= timedelta(minutes=1):
            moment = moment.replace(second=0)
        if step >= timedelta(days=1):
            moment = moment.replace(hour=0, minute=0)
        while moment <= until:
            if moment > after and self.matches(moment):
                yield moment
            moment += step


def seven_fields(text: str) -> list[str]:
    fields = text.split()
    if len(fields) == 1:
        word = fields[0].lower()
        if word[:3] in DAYS:
            return ["0", "0", "0", "*", "*", str(DAYS.index(word[:3])), "*"]
        number = int(word[:-1])
        return {
            "s": [f"*/{number}", "*", "*", "*", "*", "*", "*"],
            "m": ["0", f"*/{number}", "*", "*", "*", "*", "*"],
            "h": ["0", "0", f"*/{number}", "*", "*", "*", "*"],
        }[word[-1]]
    if len(fields) == 5:
        return ["0", *fields, "*"]
    if len(fields) == 6:
        parts = fields[5].replace(",", " ").replace("-", " ").replace("*", " ").split()
        if any(len(part.split("/")[0]) > 3 for part in parts):
            return ["0", *fields]
        return [*fields, "*"]
    return fields


def values(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for item in field.split(","):
        body, _, step_text = item.partition("/")
        step = int(step_text or 1)
        if body == "*":
            found |= {value for value in range(low, high + 1) if (value - low) % step == 0}
        elif "-" in body:
            first, last = map(int, body.split("-"))
            found |= {value for value in range(first, last + 1) if (value - first) % step == 0}
        elif step_text:
            first = int(body)
            found |= {first} | {value for value in range(first, high + 1) if (value - first) % step == 0}
        else:
            found.add(int(body))
    return found


def instant(seconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
