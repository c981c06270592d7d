"""Names of jobs, and the hash slot that a name belongs to."""

import hashlib
from typing import Final, NamedTuple

SLOTS: Final = 4096  # docs/decisions/0063: jobs are divided by them, tables are not
DEFAULT_NAMESPACE: Final = "default"


class JobKey(NamedTuple):
    """A job's name: `module.name`, or `namespace/module.name` outside the default namespace."""

    namespace: str
    module: str
    name: str

    def __str__(self) -> str:
        short = f"{self.module}.{self.name}"
        return short if self.namespace == DEFAULT_NAMESPACE else f"{self.namespace}/{short}"


class VerbName(NamedTuple):
    """As people write it: `module.verb`, or `namespace/module.verb` outside the default namespace."""

    namespace: str
    module: str
    verb: str

    def __str__(self) -> str:
        short = f"{self.module}.{self.verb}"
        return short if self.namespace == DEFAULT_NAMESPACE else f"{self.namespace}/{short}"


def namespace_of(key: str) -> str:
    """Of a job, by its key, or of a deployment, by its own: what stands before "/"."""
    namespace, slash, _ = key.rpartition("/")
    return namespace if slash else DEFAULT_NAMESPACE


def slot_of(key: str) -> int:
    """The hash slot (0 to 4095) of a job's key: stable for ever, as it is stored with the job."""
    digest = hashlib.blake2b(key.encode(), digest_size=2).digest()
    return int.from_bytes(digest, "big") % SLOTS
