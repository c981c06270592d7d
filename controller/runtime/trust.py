"""Who this controller is, and what it shows: its certificates, read anew when they are replaced."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

from cronring.controller.config import ConfigError, ProcessConfig
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.runtime.log import Log
from cronring.schema.spiffe import PeerKind, server_name
from cronring.trust.certificates import Authority, CertificateError, hosts_in
from cronring.trust.channels import Presented, Tls, plaintext
from cronring.trust.holding import RELOAD_S, CertificateFolder
from cronring.trust.web import refresh, server_context


class Trust:
    """`own`: the certificate by which members know it. `shown`: the one that clients see. None with --insecure.

    Raises ConfigError for certificates that can't be used, or are somebody else's.
    """

    def __init__(self, config: ProcessConfig) -> None:
        self.own = _folder("certs", config.certs)
        self.shown = _folder("public_certs", config.public_certs) or self.own
        self.tls: Callable[[], Tls | None] = plaintext
        self.name = config.name
        self.web: ssl.SSLContext | None = None
        self.authority: Authority | None = None
        self._ca_key = config.ca_key
        if self.own is None:
            return
        self.name = _name(self.own, config)
        try:
            self.authority = self._signing(self.own)
        except CertificateError as error:
            raise ConfigError(f"ca_key: {error}") from error
        self.tls = Presented(self.own, server_name(config.cluster))
        if self.shown is not None:
            self.web = server_context(self.shown)

    async def follow(self, log: Log) -> None:
        """For ever: what is replaced on the disk is shown from then on."""
        told: dict[CertificateFolder, str] = {}
        while True:
            await asyncio.sleep(RELOAD_S)
            self._sign_by_what_is_there(log)
            for folder in self._folders():
                if folder.reload():
                    self._replaced(folder, log)
                if folder.problem and told.get(folder) != folder.problem:
                    log.error("certificates_not_taken", folder=str(folder.folder), reason=folder.problem)
                told[folder] = folder.problem

    def gauges(self, clock: SystemClock) -> dict[str, float]:
        """When certificates end, in seconds from now; negative: it is over. None of it with --insecure."""
        now_s = clock.wall_us() / 1e6
        folders = {"own": self.own, "public": self.shown}
        return {
            f"certificate_{name}_expires_seconds": folder.current.expires.timestamp() - now_s
            for name, folder in folders.items()
            if folder is not None
        }

    def left_ms(self, clock: SystemClock) -> int | None:
        """Until the first certificate ends; negative: it has. None with --insecure."""
        ends = [folder.current.expires.timestamp() for folder in self._folders()]
        return int(min(ends) * 1e3) - clock.wall_us() // 1_000 if ends else None

    def problem(self) -> str:
        """Why the present files of a folder could not be used; "": they could."""
        return "; ".join(folder.problem for folder in self._folders() if folder.problem)

    def _signing(self, own: CertificateFolder) -> Authority | None:
        """Raises CertificateError."""
        if self._ca_key is None:
            return None
        try:
            return Authority.read(own.current.authorities, self._ca_key.read_bytes())
        except OSError as error:
            raise CertificateError(f"{self._ca_key}: {error.strerror or error}") from error

    def _sign_by_what_is_there(self, log: Log) -> None:
        """A replaced CA key signs from now on. Until its certificate is in the folder too, the old CA signs."""
        if self.own is None:
            return
        try:
            self.authority = self._signing(self.own)
        except CertificateError as error:
            log.warning("ca_key_not_taken", reason=str(error))

    def _folders(self) -> list[CertificateFolder]:
        return [each for each in dict.fromkeys((self.own, self.shown)) if each is not None]

    def _replaced(self, folder: CertificateFolder, log: Log) -> None:
        log.info("certificates_replaced", folder=str(folder.folder), expires=folder.current.expires.isoformat())
        if self.web is not None and folder is self.shown:
            try:
                refresh(self.web, folder)
            except (OSError, ssl.SSLError) as error:
                # They changed again since they were read. The next look takes them.
                log.warning("certificates_not_shown_by_http", reason=str(error))


def _folder(field: str, path: Path | None) -> CertificateFolder | None:
    if path is None:
        return None
    try:
        return CertificateFolder(path)
    except CertificateError as error:
        raise ConfigError(f"{field}: {error}") from error


def _name(certificates: CertificateFolder, config: ProcessConfig) -> str:
    """What the controller's certificate calls it; `name` may say the same."""
    leaf = certificates.current.leaf
    try:
        name = certificates.current.name
    except CertificateError as error:
        raise ConfigError(f"certs: {certificates.folder}: {error}") from error
    if name.kind is not PeerKind.CONTROLLER or name.cluster != config.cluster:
        raise ConfigError(
            f"certs: {certificates.folder} is for {name.uri}, which is no controller of cluster {config.cluster!r};"
            " issue one by `cronring certs issue controller`, or set cluster"
        )
    if server_name(config.cluster) not in hosts_in(leaf):
        raise ConfigError(
            f"certs: the certificate of {certificates.folder} lacks the DNS name {server_name(config.cluster)},"
            " by which others know a controller"
        )
    if config.name and config.name != name.name:
        raise ConfigError(f"name is {config.name!r}, and the certificate's is {name.name!r}; leave it out")
    return name.name
