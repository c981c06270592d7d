"""Generic records (`Page[int]`) with their arguments filled in: which type each base class's variables stand for."""

from __future__ import annotations

import typing
from typing import Any


def bindings(record: type, arguments: tuple[Any, ...]) -> dict[type, dict[Any, Any]]:
    """By class, the record itself first and then its bases: what each of its type variables stands for."""
    found: dict[type, dict[Any, Any]] = {}
    _bind(record, arguments, found)
    return found


def _bind(made: type, arguments: tuple[Any, ...], found: dict[type, dict[Any, Any]]) -> None:
    parameters = getattr(made, "__parameters__", ())
    given = [*arguments, *map(_unset, parameters[len(arguments) :])]
    found[made] = bound = dict(zip(parameters, given))
    for base in vars(made).get("__orig_bases__", made.__bases__):
        origin = typing.get_origin(base) or base
        if isinstance(origin, type) and origin not in found:
            _bind(origin, tuple(filled(each, bound) for each in typing.get_args(base)), found)


def filled(annotation: Any, bound: dict[Any, Any]) -> Any:
    """The annotation with every type variable replaced."""
    if isinstance(annotation, typing.TypeVar):
        return bound[annotation] if annotation in bound else _unset(annotation)
    parameters = getattr(annotation, "__parameters__", ())
    if not parameters or typing.get_origin(annotation) is None:  # a generic class itself, without arguments
        return annotation
    try:
        return annotation[tuple(filled(parameter, bound) for parameter in parameters)]
    except TypeError:  # variables that stand for several types
        return Any


def _unset(variable: Any) -> Any:
    """What a variable without an argument stands for: its default (Python 3.13), its bound, or anything."""
    has_default = getattr(variable, "has_default", None)
    if has_default is not None and has_default():
        return variable.__default__
    return getattr(variable, "__bound__", None) or Any
