"""A function's parameters, without evaluating what stands in their annotations."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """From Python 3.14 on, annotations are evaluated when asked for: a name under TYPE_CHECKING may not exist."""
    if sys.version_info >= (3, 14):
        import annotationlib  # noqa: PLC0415

        signature = inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
    else:
        signature = inspect.signature(function)
    return list(signature.parameters.values())
