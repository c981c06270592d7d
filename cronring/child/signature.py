"""A function's parameters, without evaluating their annotations."""

from __future__ import annotations

import inspect
import sys
from types import FunctionType
from typing import Any, Callable


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """From Python 3.14 on, annotations are evaluated when asked for: a name under TYPE_CHECKING may not exist."""
    if _takes_nothing(function):
        return []
    if sys.version_info >= (3, 14):
        import annotationlib  # noqa: PLC0415

        signature = inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
    else:
        signature = inspect.signature(function)
    return list(signature.parameters.values())


def _takes_nothing(function: Callable[..., Any]) -> bool:
    """Judged by the code object: in a burst of verbs' first runs, `inspect` takes a quarter of the child's CPU."""
    if type(function) is not FunctionType or "__wrapped__" in vars(function) or "__signature__" in vars(function):
        return False
    code = function.__code__
    variadic = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    return not (code.co_argcount or code.co_kwonlyargcount or variadic)
