"""TLS for HTTP, by the same certificates as gRPC."""

import ssl

from cronring.trust.holding import CERTIFICATE_FILE, KEY_FILE, CertificateFolder


def server_context(certificates: CertificateFolder) -> ssl.SSLContext:
    """For a server. `refresh` it when the certificates have been replaced."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    refresh(context, certificates)
    return context


def refresh(context: ssl.SSLContext, certificates: CertificateFolder) -> None:
    """New connections are shown what is in the folder now. Raises OSError."""
    context.load_cert_chain(certificates.folder / CERTIFICATE_FILE, certificates.folder / KEY_FILE)
