"""Links to the console: what a controller's HTTP may answer, and where a token never goes."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from cronring.cli.console_link import ConsoleLink, login_link
from cronring.cli.failures import Failure


class Server(BaseHTTPRequestHandler):
    """Leads elsewhere, to itself, unless it has been told what to answer."""

    answer: ClassVar[tuple[int, bytes]] = (302, b"")
    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.asked.append(self.path)
        status, body = self.answer
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def console() -> Iterator[str]:
    Server.answer, Server.asked[:] = (302, b""), []
    server = HTTPServer(("127.0.0.1", 0), Server)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    serving.join()
    server.server_close()


def test_no_redirect_leads_a_token_elsewhere(console: str) -> None:
    with pytest.raises(Failure, match="makes no link: HTTP 302"):
        login_link(console, "secret", None)
    assert Server.asked == ["/login/link"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"path": 7}'])
def test_an_answer_without_a_link_is_told(console: str, body: bytes) -> None:
    Server.answer = (200, body)
    with pytest.raises(Failure, match="makes no link: HTTP 200"):
        login_link(console, "secret", None)


def test_who_can_have_no_link_has_the_page(console: str) -> None:
    Server.answer = (403, b"{}")
    assert login_link(console, "secret", None, "/jobs") == ConsoleLink(f"{console}/jobs", once=False)
    assert login_link("http://cron.example", "secret", None) == ConsoleLink("http://cron.example/", once=False)
    assert Server.asked == ["/login/link"]
