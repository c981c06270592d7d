"""Names of verbs, as people write them: `module.verb`, or `namespace/module.verb` outside the default namespace."""

from cronring.schema.keys import DEFAULT_NAMESPACE, VerbName
from cronring.schema.validate import name_fault, namespace_fault

_WRITE = "write MODULE.VERB, or NAMESPACE/MODULE.VERB"


def read_verb(text: str, namespace: str = DEFAULT_NAMESPACE) -> VerbName:
    """`namespace`: of a text that names none. Raises ValueError, with what is wrong."""
    before, slash, name = text.rpartition("/")
    module, dot, verb = name.partition(".")
    if not dot:
        raise ValueError(f"{text!r:.200} is no verb; {_WRITE}")
    found = VerbName(before if slash else namespace, module, verb)
    fault = namespace_fault(found.namespace) or name_fault(found.module) or name_fault(found.verb)
    if fault is not None:
        raise ValueError(f"{text!r:.200} is no verb: a part of it {fault}; {_WRITE}")
    return found
