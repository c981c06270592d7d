"""The environment's variables of trust, apart from what loads gRPC."""

from typing import Final

CA: Final = "CRONRING_CA"
SERVER_NAME: Final = "CRONRING_SERVER_NAME"
INSECURE: Final = "CRONRING_INSECURE"
