"""The environment's variables of trust, apart from what loads gRPC."""

import os
from typing import Final

CA: Final = "CRONRING_CA"
SERVER_NAME: Final = "CRONRING_SERVER_NAME"
INSECURE: Final = "CRONRING_INSECURE"
# In the environment of the controllers of a `cronring dev`: dev's own process id.
DEV_PARENT: Final = "CRONRING_DEV_PARENT"
# What commands may be told by their environment, and no process is that runs an author's code.
SECRETS: Final = frozenset({
    "CRONRING_DATABASE_URL",
    "CRONRING_DEV_DATABASE_URL",
    "CRONRING_LOGIN_CLIENT_SECRET",
    "CRONRING_TOKEN",
    "CRONRING_WEBHOOK_SECRET",
})  # fmt: skip


def without_secrets() -> dict[str, str]:
    """This process's environment, for one that an author's code is in, or may look into."""
    return {name: value for name, value in os.environ.items() if name not in SECRETS}
