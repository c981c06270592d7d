"""What the .proto files say in comments, which descriptors at run time don't have: protoc is asked for them."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from cronring.protos.generate import ROOT, includes

_MESSAGES, _SERVICES = 4, 6  # numbers of the fields of FileDescriptorProto, of which paths are made
_FIELDS, _METHODS, _NESTED = 2, 2, 3


class Comments:
    """By full names."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts: Final = texts

    def of(self, descriptor: Any) -> str:
        """In one line; "": there is none."""
        return self._texts.get(descriptor.full_name, "")


def read_comments() -> Comments:
    """Of protos/cronring/v1. Raises CalledProcessError when protoc refuses."""
    sources = sorted((ROOT / "protos" / "cronring" / "v1").glob("*.proto"))
    names = [str("cronring/protos" / path.relative_to(ROOT / "protos")) for path in sources]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "set"
        command = [sys.executable, "-m", "grpc_tools.protoc", *includes(), "--include_source_info"]
        subprocess.run([*command, f"--descriptor_set_out={out}", *names], cwd=ROOT, check=True)
        found = FileDescriptorSet.FromString(out.read_bytes())
    return Comments({name: text for file in found.file for name, text in _of_file(file).items()})


def _of_file(file: Any) -> dict[str, str]:
    names = _names(file)
    found = {}
    for location in file.source_code_info.location:
        name = names.get(tuple(location.path))
        text = " ".join(f"{location.leading_comments} {location.trailing_comments}".split())
        if name and text:
            found[name] = text
    return found


def _names(file: Any) -> dict[tuple[int, ...], str]:
    """Full names by their paths in the file."""
    names: dict[tuple[int, ...], str] = {}

    def messages(path: tuple[int, ...], prefix: str, found: Any) -> None:
        for number, message in enumerate(found):
            at, name = (*path, number), f"{prefix}.{message.name}"
            names[at] = name
            names.update({(*at, _FIELDS, index): f"{name}.{field.name}" for index, field in enumerate(message.field)})
            messages((*at, _NESTED), name, message.nested_type)

    messages((_MESSAGES,), file.package, file.message_type)
    for number, service in enumerate(file.service):
        at, name = (_SERVICES, number), f"{file.package}.{service.name}"
        names[at] = name
        names.update({(*at, _METHODS, index): f"{name}.{each.name}" for index, each in enumerate(service.method)})
    return names
