"""`cronring certs`: a CA for small installations, and what it signs. Others bring certificates of their own PKI."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from cronring.cli.failures import Failure
from cronring.cli.options import count, option, output_option
from cronring.cli.output import print_json
from cronring.cli.printing import say, say_lines
from cronring.schema.spiffe import DEFAULT_CLUSTER

if TYPE_CHECKING:
    from cronring.schema.spiffe import SpiffeName
    from cronring.trust.certificates import Authority, Pair

Made = TypeVar("Made")

PUBLIC: Final = 0o644
PRIVATE: Final = 0o600
_FOLDER: Final = click.Path(file_okay=False, path_type=Path)
_THERE: Final = click.Path(exists=True, file_okay=False, path_type=Path)
_cluster_option = option(
    "--cluster", default=DEFAULT_CLUSTER, show_default=True, metavar="NAME", help="The cluster's name in certificates."
)
_ca_option = click.option(
    "--ca", "ca", type=_THERE, required=True, metavar="DIR", help="The CA's folder, with ca.crt and ca.key."
)
_out_option = click.option(
    "--out", "out", type=_FOLDER, required=True, metavar="DIR", help="The new folder; its name is up to you."
)


@click.group()
def certs() -> None:
    """Certificates of controllers and runners: for who has no PKI. docs/security.md leads through it.

    \b
    Examples:
      cronring certs init ca
      cronring certs issue controller c1 --ca ca --out certs/c1 --host 10.0.0.1
      cronring certs show certs/c1
      cronring certs renew certs/c1 --ca ca
    """


@certs.command("init")
@click.argument("folder", type=_FOLDER)
@_cluster_option
@click.option("--days", type=count(), default=3_650, show_default=True, help="How long the CA is valid.")
def init(folder: Path, cluster: str, days: int) -> None:
    """Make a CA in FOLDER: ca.crt, which everybody may read, and ca.key, which signs.

    Keep ca.key where no service runs, but for the controllers that enroll runners (--ca-key).
    """
    from cronring.trust.certificates import new_authority
    from cronring.trust.holding import CA_FILE, CA_KEY_FILE

    _refuse_existing(folder / CA_FILE, folder / CA_KEY_FILE)
    pair = _named(lambda: new_authority(cluster, days))
    _make(folder)
    _write(folder / CA_KEY_FILE, pair.key, PRIVATE)
    _write(folder / CA_FILE, pair.certificate, PUBLIC)
    say(f"{folder / CA_FILE}: the CA of cluster {cluster!r}, valid for {days} days")
    say(f"{folder / CA_KEY_FILE}: its key. Who has it can be anybody: keep it safe, and keep a copy")


@certs.group("issue")
def issue() -> None:
    """Sign a certificate: of a controller, or of a runner that doesn't enroll."""


@issue.command("controller")
@click.argument("name")
@_ca_option
@_out_option
@_cluster_option
@option("--host", multiple=True, metavar="NAME|IP",
              help="What clients dial it by, where they go by the host's name. May be repeated.")  # fmt: skip
@click.option("--days", type=count(), default=90, show_default=True, help="How long it is valid.")
def issue_controller(name: str, ca: Path, out: Path, cluster: str, host: tuple[str, ...], days: int) -> None:
    """Of controller NAME, into the folder that `cronring controller --certs` reads. Replicas may share one."""
    from cronring.schema.spiffe import controller_name

    _issue(_named(lambda: controller_name(cluster, name)), ca, out, host, days)


@issue.command("runner")
@click.argument("grant")
@_ca_option
@_out_option
@_cluster_option
@option("--namespace", default="default", show_default=True, help="Whose modules it may host.")
@click.option("--days", type=count(), default=90, show_default=True, help="How long it is valid.")
def issue_runner(grant: str, ca: Path, out: Path, cluster: str, namespace: str, days: int) -> None:
    """Of a runner, for GRANT: what it may host, `cronring runner-grant create` says."""
    from cronring.schema.spiffe import runner_name

    _issue(_named(lambda: runner_name(cluster, namespace, grant)), ca, out, (), days)


@certs.command("renew")
@click.argument("folder", type=_THERE)
@_ca_option
@click.option("--days", type=count(), help="How long the new one is valid.  [default: as long as the old one was]")
def renew(folder: Path, ca: Path, days: int | None) -> None:
    """Replace the certificate and key of FOLDER by new ones, for the same names. Who uses them reads them again.

    The CA's certificates are copied as well, so a CA that is being replaced arrives with them.
    """
    from cronring.trust.certificates import hosts_in, name_in
    from cronring.trust.holding import CertificateFolder

    held = _checked(lambda: CertificateFolder(folder)).current
    name = _checked(lambda: name_in(held.leaf))
    lifetime = held.leaf.not_valid_after_utc - held.leaf.not_valid_before_utc
    _issue(name, ca, folder, hosts_in(held.leaf), days or max(1, round(lifetime.total_seconds() / 86_400)), again=True)


@certs.command("rotate")
@click.argument("folder", type=_THERE)
@_cluster_option
@click.option("--days", type=count(), default=3_650, show_default=True, help="How long the new CA is valid.")
def rotate(folder: Path, cluster: str, days: int) -> None:
    """Replace a CA, step one: FOLDER signs by a new key, and ca.crt holds the new CA and the old one.

    \b
    1. cronring certs rotate ca
    2. copy ca/ca.crt into every folder of certificates, and wait for 10 s
    3. cronring certs renew FOLDER --ca ca, for each of them
    4. cronring certs retire ca, and copy ca.crt again: the old CA is over
    """
    from cronring.trust.certificates import new_authority
    from cronring.trust.holding import CA_FILE, CA_KEY_FILE

    authority = _authority(folder)
    pair = _named(lambda: new_authority(cluster, days))
    # The key last: until it is there, the old one signs, and both CAs are trusted.
    _write(folder / CA_FILE, pair.certificate + authority.pem, PUBLIC)
    _write(folder / CA_KEY_FILE, pair.key, PRIVATE)
    say(f"{folder / CA_FILE} holds two CAs now. Copy it to everybody before anything is renewed: see --help.")


@certs.command("retire")
@click.argument("folder", type=_THERE)
def retire(folder: Path) -> None:
    """Replace a CA, last step: ca.crt of FOLDER holds the CA that signs, and no other."""
    from cronring.trust.holding import CA_FILE

    authority = _authority(folder)
    _write(folder / CA_FILE, authority.pem, PUBLIC)
    say(f"{folder / CA_FILE} holds one CA now. Copy it to everybody: certificates of the old one are refused then.")


@certs.command("show")
@click.argument("folder", type=_THERE)
@output_option
def show(folder: Path, output: str) -> None:
    """Who a folder's certificate is for, and until when."""
    shown = _shown(folder)
    if output == "json":
        print_json(shown)
    else:
        width = max(map(len, shown))
        say_lines(f"{name:{width}}  {', '.join(value) if isinstance(value, list) else value}"
                  for name, value in shown.items())  # fmt: skip


def _shown(folder: Path) -> dict[str, Any]:
    from cronring.trust.certificates import certificates_of, hosts_in, name_in
    from cronring.trust.holding import CA_FILE, CERTIFICATE_FILE, CertificateFolder

    if not (folder / CERTIFICATE_FILE).exists():
        found = _checked(lambda: certificates_of((folder / CA_FILE).read_bytes()))
        return {"authorities": [f"{each.subject.rfc4514_string()} until {_day(each)}" for each in found]}
    held = _checked(lambda: CertificateFolder(folder)).current
    return {
        "name": _checked(lambda: name_in(held.leaf)).uri,
        "hosts": hosts_in(held.leaf),
        "valid_from": held.leaf.not_valid_before_utc.isoformat(),
        "valid_until": held.leaf.not_valid_after_utc.isoformat(),
        "issuer": held.leaf.issuer.rfc4514_string(),
        "authorities": [
            f"{each.subject.rfc4514_string()} until {_day(each)}" for each in certificates_of(held.authorities)
        ],
    }


def _day(certificate: Any) -> str:
    return f"{certificate.not_valid_after_utc:%Y-%m-%d}"


def _issue(
    name: "SpiffeName", ca: Path, out: Path, hosts: "tuple[str, ...] | list[str]", days: int, *, again: bool = False
) -> None:
    from cronring.schema.spiffe import server_name
    from cronring.trust.certificates import issue as sign
    from cronring.trust.holding import CA_FILE, CERTIFICATE_FILE, KEY_FILE

    if not again:
        _refuse_existing(out / CERTIFICATE_FILE, out / KEY_FILE)
    own = [host for host in hosts if host != server_name(name.cluster)]
    authority = _authority(ca)
    pair: Pair = _checked(lambda: sign(authority, name, dt.timedelta(days=days), own))
    _make(out)
    _write(out / CA_FILE, _checked((ca / CA_FILE).read_bytes), PUBLIC)
    _write(out / KEY_FILE, pair.key, PRIVATE)
    _write(out / CERTIFICATE_FILE, pair.certificate, PUBLIC)
    say(f"{out}: {name.uri}, valid for {days} days")


def _authority(folder: Path) -> "Authority":
    from cronring.trust.certificates import Authority
    from cronring.trust.holding import CA_FILE, CA_KEY_FILE

    return _checked(lambda: Authority.read((folder / CA_FILE).read_bytes(), (folder / CA_KEY_FILE).read_bytes()))


def _named(make: Callable[[], Made]) -> Made:
    """Raises click.UsageError for a name that can't be."""
    from cronring.schema.spiffe import SpiffeError

    try:
        return make()
    except SpiffeError as error:
        raise click.UsageError(str(error)) from error


def _checked(make: Callable[[], Made]) -> Made:
    """Raises Failure for what can't be read or used."""
    from cronring.trust.certificates import CertificateError

    try:
        return make()
    except CertificateError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from error


def _refuse_existing(*files: Path) -> None:
    for file in files:
        if file.exists():
            raise Failure(f"{file} is there already, and is not overwritten; name another folder, or remove it")


def _make(folder: Path) -> None:
    _checked(lambda: folder.mkdir(mode=0o700, parents=True, exist_ok=True))


def _write(file: Path, content: bytes, mode: int) -> None:
    from cronring.trust.files import write_file

    _checked(lambda: write_file(file, content, mode))
