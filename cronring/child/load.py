"""Import an author's file: from bytes that the runner read once, so that every child runs what was registered."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import marshal
import os
import sys
from types import CodeType, ModuleType


class _BytesLoader(importlib.abc.InspectLoader):
    """A source loader over bytes, as the file on disk may have changed meanwhile."""

    def __init__(self, path: str, source: bytes, code: bytes) -> None:
        self._path = path
        self._source = source
        self._code = code

    def get_source(self, fullname: str) -> str:  # noqa: ARG002  # importlib's signature, as below
        return importlib.util.decode_source(self._source)

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        if self._code.startswith(importlib.util.MAGIC_NUMBER):
            return _unmarshalled(self._code)
        return _compiled(self._path, self._source)

    def is_package(self, fullname: str) -> bool:  # noqa: ARG002
        return False


def compile_file(path: str, source: bytes) -> bytes:
    """The file's code, for `load_file`. Raises SyntaxError and ValueError."""
    # docs/decisions/0067: it begins as a .pyc, so that no interpreter runs the code of another version
    return importlib.util.MAGIC_NUMBER + marshal.dumps(_compiled(path, source))


def _compiled(path: str, source: bytes) -> CodeType:
    return compile(source, path, "exec", dont_inherit=True)


def _unmarshalled(code: bytes) -> CodeType:
    made: CodeType = marshal.loads(memoryview(code)[len(importlib.util.MAGIC_NUMBER) :])  # noqa: S302 - ours # nosec B302
    return made


def load_file(path: str, source: bytes, code: bytes = b"") -> ModuleType:
    """Execute `source` as the module that lives at `path` (absolute), and return it.

    `code`: what `compile_file` made of it; without it, or by another version of Python, it is compiled here.

    Its directory goes first on sys.path, so that it can import its siblings. For a file inside a package, that is the
    parent directory of the package, and relative imports work. Raises ImportError for a name that is taken, and
    anything that the file raises.
    """
    directory, package = _package_of(os.path.dirname(path))
    sys.path.insert(0, directory)
    stem = os.path.splitext(os.path.basename(path))[0]
    name = f"{package}.{stem}" if package else stem
    taken = sys.modules.get(name)
    if taken is not None or name in sys.builtin_module_names:
        raise ImportError(f"a module named {name!r} is loaded already: rename {os.path.basename(path)}")
    if package:
        importlib.import_module(package)
    loader = _BytesLoader(path, source, code)
    spec = importlib.machinery.ModuleSpec(name, loader, origin=path)
    spec.has_location = True
    module = importlib.util.module_from_spec(spec)
    # An entry without a time is never checked against the disk: tracebacks show the lines that ran.
    text = loader.get_source(name)
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def _package_of(directory: str) -> tuple[str, str]:
    """(what goes on sys.path, dotted package or "") for a file in `directory`."""
    parts: list[str] = []
    while os.path.isfile(os.path.join(directory, "__init__.py")) and os.path.basename(directory).isidentifier():
        directory, tail = os.path.split(directory)
        parts.insert(0, tail)
    return directory, ".".join(parts)
