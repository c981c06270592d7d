"""The records that a type is made of: somebody who writes a payload has to know them."""

from collections.abc import Iterable, Iterator

from cronring.schema.module import DataType
from cronring.schema.payload import Type, parse_type


def records_of(type_text: str, types: Iterable[DataType]) -> list[DataType]:
    """Those of `types` that are in a type, and in their fields' types, each once; the type's own first."""
    known = {data.name: data for data in types}
    found: dict[str, DataType] = {}
    waiting = [type_text]
    while waiting:
        for part in _parts(parse_type(waiting.pop(0))):
            data = known.get(str(part))
            if data is not None and data.name not in found:
                found[data.name] = data
                waiting += [field.type for field in data.fields]
    return list(found.values())


def _parts(type_: Type) -> Iterator[Type]:
    yield type_
    for argument in type_.arguments:
        yield from _parts(argument)
