"""Log in by a browser on this machine (RFC 8252): a code comes back to a port of ours, and is changed for a token.

The code alone is worth nothing: PKCE's verifier (RFC 7636) never leaves this process but to the issuer.
"""

import base64
import contextlib
import hashlib
import hmac
import queue
import secrets
import threading
import webbrowser
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from cronring.cli.failures import Failure
from cronring.cli.json_http import JsonAnswer
from cronring.cli.login.issuer import SHOWN_MAX, Endpoints, Registered, asked, refused_words
from cronring.cli.printing import say
from cronring.schema.duration import measured

PATIENCE_S: Final = 300.0
REQUEST_S: Final = 10.0  # of a connection that says nothing: browsers open some ahead
PATH: Final = "/callback"
_DONE: Final = b"<!doctype html><title>cronring</title><p>You may close this window, and go back to the terminal."


class _Came(NamedTuple):
    code: str
    error: str
    issuer: str


def has_browser() -> bool:
    with contextlib.suppress(webbrowser.Error):
        return bool(webbrowser.get())
    return False


def by_browser(endpoints: Endpoints, registered: Registered, scopes: tuple[str, ...]) -> JsonAnswer:
    """A good answer of the token endpoint. Raises Failure."""
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    with _listening(state) as (port, came):
        redirect = f"http://127.0.0.1:{port}{PATH}"
        asked_for = {
            "response_type": "code", "client_id": registered.client_id, "redirect_uri": redirect,
            "scope": " ".join(scopes), "state": state, "code_challenge": challenge, "code_challenge_method": "S256",
        }  # fmt: skip
        mark = "&" if urlsplit(endpoints.authorization).query else "?"
        url = f"{endpoints.authorization}{mark}{urlencode(asked_for)}"
        say("log in with your browser. If none opens, open this:", err=True)
        say(url, err=True)
        threading.Thread(target=_open, args=(url,), daemon=True).start()
        found = _awaited(came)
    if found.issuer and found.issuer != endpoints.issuer:
        raise Failure(f"another issuer has answered: {found.issuer!r:.200}")
    if not found.code:
        raise Failure(f"the issuer has not logged you in: {found.error[:SHOWN_MAX] or 'it gives no reason'}")
    form = {"grant_type": "authorization_code", "code": found.code, "redirect_uri": redirect, "code_verifier": verifier}
    answer = asked(endpoints.token, form | registered.form())
    if answer.status != 200:
        raise Failure(f"the issuer gives no token: {refused_words(answer)}")
    return answer


def _open(url: str) -> None:
    """Some browsers return at once, those in a terminal when they are left."""
    with contextlib.suppress(webbrowser.Error):
        webbrowser.open(url)


def _awaited(came: "queue.Queue[_Came]") -> _Came:
    try:
        return came.get(timeout=PATIENCE_S)
    except queue.Empty:
        raise Failure(
            f"nobody has logged in within {measured(PATIENCE_S * 1_000)}. Without a browser here give --device"
        ) from None


@contextlib.contextmanager
def _listening(state: str) -> "Iterator[tuple[int, queue.Queue[_Came]]]":
    """A port of this machine alone, and what comes to it with that `state`."""
    server = _Server(state)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server.server_address[1], server.came
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, state: str) -> None:
        super().__init__(("127.0.0.1", 0), _Callback)
        self.came: queue.Queue[_Came] = queue.Queue()
        self._state = state

    def read(self, query: dict[str, list[str]]) -> _Came | None:
        """None: it belongs to no login that waits. Any page can send a browser here, with somebody else's code."""
        told = {name: values[0] for name, values in query.items()}
        if not hmac.compare_digest(told.get("state", "").encode(), self._state.encode()):
            return None
        return _Came(told.get("code", ""), told.get("error", ""), told.get("iss", ""))

    def handle_error(self, *_: Any) -> None:
        """Connections that break off are browsers' own business."""


class _Callback(BaseHTTPRequestHandler):
    timeout = REQUEST_S
    server: _Server

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path != PATH:
            self._answer(404, b"")
        elif (came := self.server.read(parse_qs(parts.query))) is None:
            self._answer(400, b"This belongs to no login that waits here.")
        else:
            try:
                self._answer(200, _DONE)
                self.wfile.flush()
            finally:  # only then, as this process may end at once, and the browser would show a broken connection
                self.server.came.put(came)

    def log_message(self, *_: Any) -> None:
        """It would print the code."""

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)
