import pytest

from cronring.virtual.outages import Outage, OutageError, parse_outage

TWO_HOURS_US = 2 * 3_600_000_000
ONE_O_CLOCK_US = 1_774_746_000_000_000  # 2026-03-29T01:00Z


@pytest.mark.parametrize(
    ("text", "outage"),
    [
        ("database@2026-03-29T01:00+2h", Outage("database", ONE_O_CLOCK_US, TWO_HOURS_US)),
        ("runners@2026-03-29T03:00+02:00+2h", Outage("runners", ONE_O_CLOCK_US, TWO_HOURS_US)),
        ("controllers@2026-03-29 01:00Z+120m", Outage("controllers", ONE_O_CLOCK_US, TWO_HOURS_US)),
    ],
)
def test_texts(text: str, outage: Outage) -> None:
    assert parse_outage(text) == outage
    assert parse_outage(str(outage)) == outage


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("database", "PART@START"),
        ("database@2026-03-29T01:00", "PART@START"),
        ("disk@2026-03-29T01:00+2h", "there are database, controllers, runners"),
        ("database@yesterday+2h", "its start"),
        ("database@2026-03-29T01:00+2x", "its length"),
    ],
)
def test_what_is_none(text: str, reason: str) -> None:
    with pytest.raises(OutageError, match=reason):
        parse_outage(text)
