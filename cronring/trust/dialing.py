"""How a client knows that it speaks to a controller: by flags, else by the environment, else as browsers do."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cronring.schema.address import is_loopback
from cronring.schema.spiffe import DEFAULT_CLUSTER, server_name
from cronring.trust.certificates import CertificateError
from cronring.trust.channels import Tls
from cronring.trust.holding import read_authorities
from cronring.trust.names import CA, INSECURE, SERVER_NAME

_NO: Final = frozenset({"", "0", "false", "no", "off"})


def client_tls(
    addresses: Sequence[str], ca: Path | None = None, name: str = "", *, insecure: bool | None = None
) -> Tls | None:
    """What channels to these addresses are opened with; None: plaintext, which only loopback addresses may have.

    `ca`: a file with the cluster's CA; without one the operating system's CAs count, and the host must be the
    certificate's. `name`: what the certificate must be for instead. Raises ValueError, saying what to give.
    """
    ca = ca if ca is not None else Path(os.environ[CA]) if os.environ.get(CA) else None
    if insecure is None:
        insecure = ca is None and os.environ.get(INSECURE, "").lower() not in _NO
    if insecure:
        far = next((each for each in addresses if not is_loopback(each.rpartition(":")[0])), None)
        if far is not None:
            raise ValueError(
                f"{far} is another machine, where plaintext is for everybody to read; give --ca FILE ({CA}) instead"
                f" of --insecure ({INSECURE})"
            )
        return None
    name = name or os.environ.get(SERVER_NAME, "")
    if ca is None:
        return Tls(None, None, name)
    try:
        return Tls(read_authorities(ca), None, name or server_name(DEFAULT_CLUSTER))
    except CertificateError as error:
        raise ValueError(f"--ca {error}") from error
