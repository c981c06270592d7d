"""Jobs whose target is a queue: how they are named.

Such a job stands in the books under the module `@reports` and the verb `ws_3`, its workspace. So its key is
`@reports.ws_3:nightly`, which no verb's job can have. Without a workspace the verb is `-`.
"""

import re
from functools import lru_cache
from typing import Final

from cronring.schema.keys import qualified
from cronring.schema.module import Verb
from cronring.schema.validate import name_fault

NAME_LIMIT: Final = 100
WORKSPACE: Final = "workspace"
"""The label that says the workspace of a job."""
DEFAULT_NAME: Final = "default"
# docs/decisions/0089: no module can have such a name
_MARK: Final = "@"
_NO_WORKSPACE: Final = "-"
_QUEUE: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?")
_WORKSPACE_NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")


def module_of_queue(queue: str) -> str:
    """Where the jobs of a queue stand, among modules."""
    return f"{_MARK}{queue}"


def queue_of(module: str) -> str:
    """The queue whose jobs stand there; "" for a module of verbs."""
    return module[1:] if module.startswith(_MARK) else ""


def verb_of_workspace(workspace: str) -> str:
    """Where the jobs of a workspace stand, among verbs. "" is a workspace, too."""
    return workspace or _NO_WORKSPACE


def workspace_of(verb: str) -> str:
    """The other way round."""
    return "" if verb == _NO_WORKSPACE else verb


@lru_cache(maxsize=4_096)
def puts_messages(deployment: str) -> bool:
    """Whether jobs of this deployment, by its key, have a queue as their target."""
    return deployment.rpartition("/")[2].startswith(_MARK)


def queue_deployment(namespace: str, queue: str) -> str:
    """The key of what stands for a queue among deployments: a queue has no versions."""
    return qualified(namespace, module_of_queue(queue))


def queue_verb(name: str) -> Verb:
    """As which a queue's job is judged: any payload will do, and none as well."""
    return Verb(name=name, request="Any", request_optional=True)


def queue_fault(queue: str) -> str | None:
    """What is wrong with a queue's name; None if nothing."""
    if not queue:
        return "is empty; name the queue, like reports"
    return _fault(queue, _QUEUE, "queue", "letters a to z, digits, _ and - are allowed, and no - at its ends")


def module_fault(module: str) -> str | None:
    """What is wrong with the name of a module of verbs, or of what stands for a queue."""
    return queue_fault(module[1:]) if module.startswith(_MARK) else name_fault(module)


def workspace_fault(workspace: str) -> str | None:
    """What is wrong with a workspace's name; None if nothing. It may be empty."""
    if not workspace:
        return None
    rule = "letters a to z, digits, _ - and . are allowed, and no - or . at its ends"
    return _fault(workspace, _WORKSPACE_NAME, "workspace", rule)


def _fault(name: str, pattern: re.Pattern[str], what: str, rule: str) -> str | None:
    if len(name) > NAME_LIMIT:
        return f"has {len(name)} characters; at most {NAME_LIMIT} are allowed"
    return None if pattern.fullmatch(name) else f"{name!r} is no {what}: {rule}"
