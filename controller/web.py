"""Who is let in by HTTP, and how browsers log in: composed here for `main`."""

from collections.abc import Callable, Sequence

from cronring.controller.api.judging import Judge, Verdicts
from cronring.controller.api.login import Login, LoginParts, Telling
from cronring.controller.api.login_attempts import Attempts
from cronring.controller.api.seal import Seal
from cronring.controller.api.web_identity import TO_DO, KnownWeb, LocalWeb, NobodyYet, WebDoor
from cronring.controller.ports.clock import Clock
from cronring.controller.ports.login import LoginIssuer
from cronring.controller.ports.web_sessions import WebSessionStore
from cronring.controller.services.web_sessions import WebSessionVerifier


class Web:
    """HTTP is served before there is a database, and after: `door` and `login` know nobody then."""

    def __init__(self) -> None:
        self.door = WebDoor()
        self.login = Login()

    def open_to_all(self) -> None:
        """With --insecure."""
        self.door.judge = LocalWeb()

    def open(
        self,
        tokens: Judge,
        sessions: WebSessionStore,
        issuers: Sequence[LoginIssuer],
        seal: Seal,
        public_url: str,
        clock: Clock,
        notes: Telling,
        refused: Callable[[str], None],
    ) -> None:
        verdicts = Verdicts([WebSessionVerifier(sessions, clock.now_ns)], to_do=TO_DO)
        self.door.judge = KnownWeb(tokens, verdicts)
        self.login.parts = LoginParts(
            tokens=tokens,
            sessions=sessions,
            issuers={each.name: each for each in issuers},
            seal=seal,
            public_url=public_url,
            attempts=Attempts(clock.now_ns),
            now_us=clock.wall_us,
            notes=notes,
            refused=refused,
        )

    def close(self) -> None:
        """The database goes."""
        self.door.judge = NobodyYet()
        self.login.parts = None
