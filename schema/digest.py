"""The digest that makes two deployments the same one."""

import hashlib


def digest(module_text: str, source: bytes) -> str:
    """Hex SHA-256 over the module's text form and its source. Equal only if both are."""
    text = module_text.encode()
    # The length keeps the end of the text apart from the beginning of the source.
    return hashlib.sha256(b"%d\n%b%b" % (len(text), text, source)).hexdigest()
