"""Who is let in by HTTP, how browsers log in, and the interval scheduler's façade: composed here for `main`."""

from collections.abc import Callable, Sequence

from cronring.controller.api.http import Routed
from cronring.controller.api.job_specs import Defaults
from cronring.controller.api.judging import Verdicts
from cronring.controller.api.login import Login, LoginParts
from cronring.controller.api.rest.cors import Cors
from cronring.controller.api.rest.rest import Rest
from cronring.controller.api.services import ApiParts
from cronring.controller.api.throttle import Throttle
from cronring.controller.api.web_identity import TO_DO, KnownWeb, LocalWeb, NobodyYet, WebDoor
from cronring.controller.config import ConfigError, ProcessConfig
from cronring.controller.console.routes import ConsoleRoutes
from cronring.controller.identity.login import Logins
from cronring.controller.identity.reading import read_identity
from cronring.controller.identity.verifier import JwtVerifier
from cronring.controller.interval_jobs.routes import IntervalJobsRoutes
from cronring.controller.interval_jobs.service import IntervalJobsService
from cronring.controller.interval_jobs.settings import IntervalSettings, interval_settings
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.services.web_sessions import WebSessionVerifier


class Web:
    """HTTP is served before there is a database, and after: `door` and `login` know nobody then.

    `cors_origins`: whose pages may ask, by tokens. `interval_jobs` None: there is no façade (--no-interval-jobs).
    """

    def __init__(self, cors_origins: Sequence[str] = (), interval_jobs: IntervalSettings | None = None) -> None:
        self.door = WebDoor()
        self.login = Login()
        self.rest = Rest(self.door)
        self.cors = Cors(cors_origins)
        self._interval_settings = interval_jobs
        self._interval_jobs = None if interval_jobs is None else IntervalJobsRoutes(interval_jobs.namespace)

    @property
    def routes(self) -> Sequence[Routed]:
        """For the HTTP server."""
        every: list[Routed] = [self.login, self.rest, ConsoleRoutes()]
        return every if self._interval_jobs is None else [*every, self._interval_jobs]

    def open_to_all(self) -> None:
        """With --insecure."""
        self.door.judge = LocalWeb()

    def open(self, parts: LoginParts, throttle: Throttle, now_ns: Callable[[], int], *, local: bool = False) -> None:
        """`now_ns`: a monotonic clock. `local`: HTTP is without TLS, and by loopback alone."""
        verdicts = Verdicts([WebSessionVerifier(parts.sessions, now_ns)], throttle, to_do=TO_DO)
        self.door.judge = KnownWeb(parts.tokens, verdicts, local=local)
        self.login.parts = parts

    def serve(self, parts: ApiParts) -> None:
        """What is done for whoever is let in."""
        if self._interval_jobs is not None and self._interval_settings is not None:
            defaults = Defaults(parts.settings.timeout_ms, parts.settings.default_jitter)
            service = IntervalJobsService(parts.stores, self._interval_settings, defaults, parts.put)
            self._interval_jobs.open(service, parts.stores.request_keys)

    def close(self) -> None:
        """The database goes."""
        self.door.judge = NobodyYet()
        self.login.parts = None
        if self._interval_jobs is not None:
            self._interval_jobs.close()


def intervals_of(config: ProcessConfig) -> IntervalSettings | None:
    """For `Web`."""
    return interval_settings(config.interval_jobs_verb) if config.interval_jobs else None


def issuers_of(config: ProcessConfig) -> tuple[JwtVerifier | None, Logins | None]:
    """Those whose tokens are known, and by whose pages people log in. Raises ConfigError."""
    if config.identity_file is None:
        return None, None
    settings, clock = read_identity(config.identity_file), SystemClock()
    jwts = JwtVerifier(settings, clock)
    logins = Logins(settings, jwts, clock)
    if logins.issuers and not config.public_url and not config.insecure:
        raise ConfigError(
            f"public_url is not set, and {config.identity_file} lets people log in by issuer "
            f"{logins.issuers[0].name!r}, which must know where to send them back; set it to https://HOST:PORT, by"
            " which browsers find the controllers"
        )
    return jwts, logins


def key_ages(jwts: JwtVerifier) -> dict[str, float]:
    """Of the issuer whose keys are the oldest; none while no keys were needed."""
    ages = jwts.ages_s().values()
    return {"issuer_keys_age_seconds": max(ages)} if ages else {}
