"""Why there is no TLS with an address: gRPC tells it in words that change, so a handshake is made beside it."""

import asyncio
import contextlib
import ssl
from typing import Final

from cronring.trust.channels import Tls

HANDSHAKE_S: Final = 2.0
_EXPIRED: Final = 10  # OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED
_OTHER_NAME: Final = frozenset({62, 64})  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH


async def why_no_tls(address: str, tls: Tls | None) -> str:
    """For people, with what to do; "": nothing is wrong with it, or nobody can tell. `tls`: what was tried there."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    name = tls.server_name or host if tls is not None else host
    try:
        async with asyncio.timeout(HANDSHAKE_S):
            reader, writer = await asyncio.open_connection(host, int(port), ssl=_context(tls), server_hostname=name)
            trouble = await _after(reader, tls)
    except ssl.SSLCertVerificationError as error:
        return _refused(error, name, tls)
    except ssl.SSLError:
        return "" if tls is None else "it does not speak TLS; --insecure asks without, on this machine alone"
    except (OSError, ValueError):  # TimeoutError is one of them
        return ""
    writer.transport.abort()  # to end TLS in good order, who has hung up would be waited for
    return trouble


async def _after(reader: asyncio.StreamReader, tls: Tls | None) -> str:
    if tls is None:
        return "it speaks TLS, and was asked in plaintext (--insecure); give --ca FILE instead"
    if tls.pair is not None:
        return ""  # it was not shown here, so nobody can tell how it would be taken
    # TLS 1.3 refuses whoever shows no certificate only now, and gRPC hangs up without an alert. Else HTTP/2 begins.
    with contextlib.suppress(ssl.SSLError):
        if await reader.read(1):
            return ""
    return "it hung up on who shows no certificate, as --peer ports do; give a --grpc address"


def _context(tls: Tls | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])
    if tls is None:
        # Only whether it speaks TLS is asked, and nothing is sent.
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif tls.roots is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=tls.roots.decode("ascii", "ignore"))
    return context


def _refused(error: ssl.SSLCertVerificationError, name: str, tls: Tls | None) -> str:
    if error.verify_code in _OTHER_NAME:
        return f"its certificate is not for {name}; --server-name says what it must be for"
    if error.verify_code == _EXPIRED:
        return "its certificate has expired; it needs a new one (`cronring certs renew`)"
    known = "the CA that was given" if tls is not None and tls.roots is not None else "any CA of this system"
    return f"its certificate is not of {known} ({error.verify_message}); give the cluster's by --ca FILE"
