"""The certificates that a process has: read from a folder, and read anew when they are replaced.

The files are named as Kubernetes and cert-manager name them: `ca.crt`, `tls.crt`, `tls.key`.
"""

import datetime as dt
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509

from cronring.schema.spiffe import SpiffeName
from cronring.trust.certificates import CertificateError, Pair, certificates_of, check_pair, name_in

CA_FILE: Final = "ca.crt"
CA_KEY_FILE: Final = "ca.key"
CERTIFICATE_FILE: Final = "tls.crt"
KEY_FILE: Final = "tls.key"
FILE_BYTES_MAX: Final = 256 * 1024
RELOAD_S: Final = 10.0  # how soon a replaced file counts


class CertificateSet(NamedTuple):
    """What belongs together. `authorities`: the CA's certificates, as PEM; two while one replaces the other."""

    authorities: bytes
    pair: Pair
    leaf: x509.Certificate

    @property
    def expires(self) -> dt.datetime:
        return self.leaf.not_valid_after_utc

    @property
    def name(self) -> SpiffeName:
        """Raises CertificateError for a certificate that names nobody of the cluster."""
        return name_in(self.leaf)


class Certificates:
    """What is shown from now on. Read by several threads, replaced by one."""

    def __init__(self, held: CertificateSet) -> None:
        self._set = held
        self._generation = 0
        self.problem = ""  # why what is there now could not be taken

    @property
    def current(self) -> CertificateSet:
        return self._set

    @property
    def generation(self) -> int:
        """Another number after each change. Ask for it before `current`: then nothing is missed."""
        return self._generation

    def replace(self, held: CertificateSet) -> None:
        self._set = held
        self._generation += 1


class CertificateFolder(Certificates):
    """Those of a folder. Raises CertificateError, naming the file and what is wrong with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._raw = _read_all(folder)
        super().__init__(_set(self._raw, folder))

    def reload(self) -> bool:
        """Whether others are held now. What is wrong stands in `problem`; then the old ones stay."""
        try:
            raw = _read_all(self.folder)
            if raw == self._raw:
                self.problem = ""
                return False
            held = _set(raw, self.folder)
        except CertificateError as error:
            self.problem = str(error)
            return False
        self._raw, self.problem = raw, ""
        self.replace(held)
        return True


def read_authorities(file: Path) -> bytes:
    """A CA's certificates, as PEM. Raises CertificateError, naming the file."""
    pem = _read(file)
    try:
        certificates_of(pem)
    except CertificateError as error:
        raise CertificateError(f"{file}: {error}") from error
    return pem


def _read_all(folder: Path) -> tuple[bytes, bytes, bytes]:
    return _read(folder / CA_FILE), _read(folder / CERTIFICATE_FILE), _read(folder / KEY_FILE)


def _set(raw: tuple[bytes, bytes, bytes], folder: Path) -> CertificateSet:
    authorities, certificate, key = raw
    pair = Pair(certificate, key)
    try:
        certificates_of(authorities)
        return CertificateSet(authorities, pair, check_pair(pair))
    except CertificateError as error:
        raise CertificateError(f"{folder}: {error}") from error


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise CertificateError(f"{file}: {error.strerror or error}") from error
    if len(content) > FILE_BYTES_MAX:
        raise CertificateError(f"{file} has more than {FILE_BYTES_MAX} bytes")
    return content
