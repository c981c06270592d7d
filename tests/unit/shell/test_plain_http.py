"""HTTP without TLS: where it may be, and where browsers then find the console."""

from pathlib import Path

import pytest

from cronring.controller.config import ConfigError, ProcessConfig

CERTS = Path("certs")
URL = "postgresql://localhost/cronring"


def test_it_is_for_loopback_alone() -> None:
    for host in ("10.0.0.1", "0.0.0.0", "cronring.example"):  # refused
        with pytest.raises(ConfigError, match="others would read passwords on the way"):
            ProcessConfig(URL, certs=CERTS, http_address=f"{host}:7480", plain_http=True)
    with pytest.raises(ConfigError, match="leave one of them out"):
        ProcessConfig(URL, insecure=True, plain_http=True)


@pytest.mark.parametrize(
    ("changes", "url"),
    [
        ({"certs": CERTS}, "https://127.0.0.1:1"),
        ({"certs": CERTS, "plain_http": True}, "http://127.0.0.1:1"),
        ({"insecure": True}, "http://127.0.0.1:1"),
        ({"certs": CERTS, "public_url": "https://cron.example"}, "https://cron.example"),
    ],
)
def test_where_browsers_find_the_console(changes: dict[str, object], url: str) -> None:
    assert ProcessConfig(URL, **changes).console_url("127.0.0.1:1") == url  # type: ignore[arg-type]  # of a table
