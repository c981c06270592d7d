"""What may have been meant by a name that is no time zone's."""

import re
from collections.abc import Sequence
from typing import Final

# Abbreviations that IANA has no zone for. Several stand for more than one country: the zone of most people is named.
_ABBREVIATIONS: Final = {
    "ACDT": "Australia/Adelaide",
    "ACST": "Australia/Adelaide",
    "ADT": "America/Halifax",
    "AEDT": "Australia/Sydney",
    "AEST": "Australia/Sydney",
    "AKDT": "America/Anchorage",
    "AKST": "America/Anchorage",
    "AST": "America/Halifax",
    "AWST": "Australia/Perth",
    "BRT": "America/Sao_Paulo",
    "BST": "Europe/London",
    "CAT": "Africa/Maputo",
    "CDT": "America/Chicago",
    "CEST": "Europe/Berlin",
    "CST": "America/Chicago",
    "CT": "America/Chicago",
    "EAT": "Africa/Nairobi",
    "EDT": "America/New_York",
    "EEST": "Europe/Helsinki",
    "ET": "America/New_York",
    "GST": "Asia/Dubai",
    "HDT": "America/Adak",
    "HKT": "Asia/Hong_Kong",
    "ICT": "Asia/Bangkok",
    "IDT": "Asia/Jerusalem",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    "MDT": "America/Denver",
    "MESZ": "Europe/Berlin",
    "MEZ": "Europe/Berlin",
    "MSK": "Europe/Moscow",
    "MT": "America/Denver",
    "NDT": "America/St_Johns",
    "NST": "America/St_Johns",
    "NZDT": "Pacific/Auckland",
    "NZST": "Pacific/Auckland",
    "PDT": "America/Los_Angeles",
    "PHT": "Asia/Manila",
    "PKT": "Asia/Karachi",
    "PST": "America/Los_Angeles",
    "PT": "America/Los_Angeles",
    "SAST": "Africa/Johannesburg",
    "SGT": "Asia/Singapore",
    "TRT": "Europe/Istanbul",
    "WAT": "Africa/Lagos",
    "WEST": "Europe/Lisbon",
    "WIB": "Asia/Jakarta",
}
# Offsets that are no whole hours, and a zone whose clocks have shown them all year for long.
_PLACES: Final = {
    "-09:30": "Pacific/Marquesas",
    "+03:30": "Asia/Tehran",
    "+04:30": "Asia/Kabul",
    "+05:30": "Asia/Kolkata",
    "+05:45": "Asia/Kathmandu",
    "+06:30": "Asia/Yangon",
    "+08:45": "Australia/Eucla",
    "+09:30": "Australia/Darwin",
}
_OFFSET: Final = re.compile(r"(?:utc|gmt|z)?[ ]?([+\-\u2212])([0-9]{1,2})(?::?([0-9]{2}))?", re.ASCII | re.IGNORECASE)
_NAME_LIMIT: Final = 64  # the longest of IANA's has 30 characters
_LETTERS_A_SLIP: Final = 4  # so many letters of a place's name for each that may be wrong
_DIGITS: Final = re.compile(r"[0-9]+")
_LIST: Final = "all are listed at https://en.wikipedia.org/wiki/List_of_tz_database_time_zones"


def explain_unknown(name: str, known: Sequence[str]) -> tuple[str, str | None]:
    """What is wrong with a name that isn't among the known ones, and the one to write instead (or None)."""
    if not name.strip():
        return "a time zone is a name of IANA's list, like Europe/Berlin; this one is empty", None
    if len(name) > _NAME_LIMIT:
        return f"a time zone's name of {len(name)} characters; IANA has none so long", None
    offset = _OFFSET.fullmatch(name.strip())
    if offset is not None:
        return _of_offset(offset)
    folded = {_folded(one): one for one in known}
    same = folded.get(_folded(name))
    if same is not None:
        return f"{name!r} is not how IANA spells the time zone", same
    if name.strip().upper() in {"Z", "ZULU TIME"}:
        return f"{name!r} is not a time zone's name", "UTC"
    place = _ABBREVIATIONS.get(name.strip().rpartition("/")[2].upper())
    if place is not None:
        message = "is an abbreviation, which says neither the place nor when its clocks change; name a place"
        return f"{name!r} {message}", place
    nearest = _nearest(name, folded)
    message = f"there is no time zone {name!r} in IANA's list"
    return (message if nearest else f"{message} (its names are Region/City; {_LIST})"), nearest


def _folded(name: str) -> str:
    return re.sub(r"[ _-]+", "_", name.strip()).lower() if "/" in name else name.strip().lower()


def _of_offset(match: re.Match[str]) -> tuple[str, str | None]:
    """An offset is no zone, but IANA has one for each whole hour, with the sign the other way round."""
    sign = "+" if match[1] == "+" else "-"
    hours, minutes = int(match[2]), int(match[3] or 0)
    if hours == 0 and minutes == 0:
        return "an offset is not a time zone's name", "UTC"
    if minutes:
        place = _PLACES.get(f"{sign}{hours:02}:{minutes:02}")
        return "an offset is not a time zone's name, and IANA has none for it but those of places", place
    if hours > (14 if sign == "+" else 12):
        return f"no place is {hours} hours away from UTC in that direction", None
    turned = f"Etc/GMT{'-' if sign == '+' else '+'}{hours}"
    return (
        f"an offset is not a time zone's name; IANA's {turned} is {sign}{hours:02}:00 all year (its sign is that "
        "of POSIX, where west is +), and a place has the right offset in summer and winter"
    ), turned


def _nearest(name: str, folded: dict[str, str]) -> str | None:
    """By a place alone (`Berlin`), by one of another region (`Asia/Berlin`), or by a slip of the pen (`Europe/Belrin`).

    Of places that are equally near, one of the region that was named comes first. None where nothing is near: a guess
    at random would be worse than none.
    """
    region, _, place = _folded(name).replace(" ", "_").rpartition("/")
    limit = len(place) // _LETTERS_A_SLIP
    best: tuple[int, bool, str] | None = None
    for key, known in folded.items():
        its_region, _, its_place = key.rpartition("/")
        digits, its_digits = _DIGITS.findall(place), _DIGITS.findall(its_place)
        if digits and its_digits and digits != its_digits:  # another number is another zone, not a slip
            continue
        found = _distance(place, its_place, limit), its_region != region, known
        if found[0] <= limit and (best is None or found < best):
            best = found
    return None if best is None else best[2]


def _distance(one: str, other: str, limit: int) -> int:
    """How many letters to add, drop, change, or swap with the next one; over the limit where it is more than that."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        two_before, before, row = before, row, [i]
        for j, its in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != its))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == its:
                cost = min(cost, two_before[j - 2] + 1)
            row.append(cost)
    return row[-1]
