"""Commands of the root by their names, each imported when it is asked for: a controller needs none of the forty."""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module

import click


class Commands(MutableMapping[str, click.Command]):
    """By name, as a `click.Group` holds them. `modules`: where each stands, as "module" or "module:name".

    Modules are those of `cronring.cli.commands`. The name is the module's own, where none is given. To import all took
    0.2 s of each start (docs/decisions/0087).
    """

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = dict(modules)
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module, _, variable = self._modules[name].partition(":")
            self._loaded[name] = getattr(import_module(f"cronring.cli.commands.{module}"), variable or module)
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._modules[name] = ""
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._modules[name]
        self._loaded.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __contains__(self, name: object) -> bool:
        return name in self._modules
