"""The environment's variables of trust, apart from what loads gRPC."""

from typing import Final

CA: Final = "CRONRING_CA"
SERVER_NAME: Final = "CRONRING_SERVER_NAME"
INSECURE: Final = "CRONRING_INSECURE"
# What commands may be told by their environment, and the verbs that a runner runs must not be.
SECRETS: Final = frozenset({"CRONRING_TOKEN", "CRONRING_DATABASE_URL", "CRONRING_WEBHOOK_SECRET"})
