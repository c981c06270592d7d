"""What a statement is run by: a record of its parameters, which knows its text (docs/decisions/0060)."""

import copy
import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

from cronring.sql.loader import loaded


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Statement:
    """A subclass has a statement's name, and a field for each parameter. All are in `sql/parameters.py`.

    Unpacked it is what asyncpg's methods take, text and arguments: `await connection.fetch(*GetNow())`.
    """

    may_be_old: ClassVar[bool] = False  # for `make parameters` alone, which needs some of them to make them all
    _text: ClassVar[str]
    _names: ClassVar[tuple[str, ...]]
    _known: ClassVar[frozenset[str]]

    def __init_subclass__(cls) -> None:
        """Raises TypeError unless the statement is written with the same names."""
        found = loaded().get(cls.__name__)
        if found is None or set(found.names) != set(cls.__annotations__):
            if cls.may_be_old:
                return
            raise TypeError(f"{cls.__name__} is not written with the parameters of its record: run `make parameters`")
        cls._text, cls._names, cls._known = found.text, found.names, frozenset(found.names)

    if not TYPE_CHECKING:  # checkers know each subclass's own, and must not take this one for what they can't tell

        def __init__(self, **parameters: Any) -> None:
            """Raises TypeError for parameters that are missing or too many."""
            if parameters.keys() != self._known:
                raise TypeError(f"{self.name} takes {self._names}, not {tuple(parameters)}")
            vars(self).update(parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter((self._text, *map(vars(self).__getitem__, self._names)))

    def worded(self, words: Mapping[str, str]) -> Self:
        """The same statement with literals in place of others. Raises ValueError where one does not stand in it."""
        if not words:
            return self
        other = copy.copy(self)
        vars(other)["_text"] = _worded(self._text, tuple(words.items()))
        return other

    @property
    def name(self) -> str:
        return type(self).__name__


@functools.lru_cache(maxsize=64)
def _worded(text: str, words: tuple[tuple[str, str], ...]) -> str:
    for literal, other in words:
        if literal not in text:
            raise ValueError(f"{literal} does not stand in the statement")
        text = text.replace(literal, other)
    return text
