"""A receiver of webhooks: what it was sent, and what it answers."""

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


@dataclass
class Receiver:
    """`answers`: the status, from now on. `heard`: bodies, in order."""

    answers: int
    says: bytes
    url: str = ""
    heard: list[dict[str, Any]] = field(default_factory=list)


@contextlib.contextmanager
def receiving(answers: int, says: bytes = b"") -> Iterator[Receiver]:
    """One on loopback, until the block is left. `says`: the body of its answers."""
    receiver = Receiver(answers, says)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(receiver.answers)
            self.end_headers()
            self.wfile.write(receiver.says)

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        yield receiver
        server.shutdown()
