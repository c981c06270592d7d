"""No piece of a database URL that may be one of its password is shown, by whomever it is refused."""

import pytest

from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.store.connect import connect
from cronring.controller.store.doctor import examine
from cronring.controller.store.migrate import migrate
from cronring.controller.store.pool import Database
from cronring.controller.store.url import has_password, url_fault

# Of a password "squeamish0ssifrage9" with something in its middle, wherever that moves the borders to.
MIDDLES = [
    "#",
    "/",
    "?",
    "@",
    "%",
    "%zz",
    ":",
    "#/",
    "/?@",
    "?@/",
    ":1#",
    " ",
    "&",
    "=",
    "[",
    "]",
    "%00",
    "\\",
    "//",
    ",",
]
PASSWORDS = [f"squeamish{middle}0ssifrage9" for middle in MIDDLES] + [f"9{middle}0ssifrage9" for middle in MIDDLES]


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("rest", ["127.0.0.1:1/x", "127.0.0.1:1,[::1]:1/x?connect_timeout=1", "127.0.0.1:abc/x"])
async def test_no_piece_of_a_password_is_in_an_error(password: str, rest: str) -> None:
    url = f"postgresql://ann:{password}@{rest}"
    said = []
    for attempt in (connect(url, "test"), Database.open(url, "test", connections=1), migrate(url)):
        with pytest.raises((StoreError, StoreUnavailable)) as refused:
            await attempt
        said.append(str(refused.value))
    said += [f"{each.seen} {each.advice}" for each in (await examine(url, ClusterSettings())).findings]
    for text in said:
        assert "squeamish" not in text
        assert "ssifrage" not in text


@pytest.mark.parametrize("middle", ["#", "/", "?", "%"])
def test_what_to_write_instead_is_said(middle: str) -> None:
    fault = url_fault(f"postgresql://ann:ab{middle}xy@db/x")
    assert "%23 for #, %2F for /" in fault
    assert "PGPASSFILE" in fault


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:ab%23%2F%3F%40%25cd@db:5432/x", "postgresql://db/x", "postgres://ann@db1,db2:5433/x?sslmode=require",
        "postgresql:///x?host=/tmp/sockets", "postgresql://ann@/x?host=/tmp", "postgresql://[::1]:5432/x",
        "postgresql://db/x?options=-c%20a%3D1",
    ],
)  # fmt: skip
def test_urls_whose_parts_can_be_told_apart_are_taken(url: str) -> None:
    assert not url_fault(url)


def test_which_urls_hold_a_password() -> None:
    for url in ("postgresql://ann:x@db/x", "postgresql://db/x?password=x", "postgresql://ann:a#b@db/x", "secret"):
        assert has_password(url), url
    for url in (
        "postgresql://ann@db/x",
        "postgresql://db:5432/x",
        "postgresql:///x?host=/tmp",
        "postgresql://ann:@db/x",
    ):
        assert not has_password(url), url
