"""Who is let in by HTTP, and how browsers log in: composed here for `main`."""

from collections.abc import Callable

from cronring.controller.api.judging import Verdicts
from cronring.controller.api.login import Login, LoginParts
from cronring.controller.api.throttle import Throttle
from cronring.controller.api.web_identity import TO_DO, KnownWeb, LocalWeb, NobodyYet, WebDoor
from cronring.controller.services.web_sessions import WebSessionVerifier


class Web:
    """HTTP is served before there is a database, and after: `door` and `login` know nobody then."""

    def __init__(self) -> None:
        self.door = WebDoor()
        self.login = Login()

    def open_to_all(self) -> None:
        """With --insecure."""
        self.door.judge = LocalWeb()

    def open(self, parts: LoginParts, throttle: Throttle, now_ns: Callable[[], int]) -> None:
        """`now_ns`: a monotonic clock."""
        verdicts = Verdicts([WebSessionVerifier(parts.sessions, now_ns)], throttle, to_do=TO_DO)
        self.door.judge = KnownWeb(parts.tokens, verdicts)
        self.login.parts = parts

    def close(self) -> None:
        """The database goes."""
        self.door.judge = NobodyYet()
        self.login.parts = None
