"""Generate the Python code of every .proto here: `make protos`. tests/unit/test_protos_fresh.py holds it fresh."""

import subprocess
import sys
from pathlib import Path

from google.api import annotations_pb2

ROOT = Path(__file__).resolve().parent.parent


def includes() -> list[str]:
    """Where protoc finds what is imported: ours, and google/api/annotations.proto, which says the routes of HTTP."""
    return ["-I", ".", "-I", str(Path(annotations_pb2.__file__).parents[2])]


def generate(out: Path) -> None:
    """Write *_pb2.py, *_pb2_grpc.py and their .pyi below `out`. Raises CalledProcessError when protoc refuses."""
    found = (path.relative_to(ROOT / "protos") for path in (ROOT / "protos").rglob("*.proto"))
    sources = sorted(str("cronring/protos" / path) for path in found)  # what they are imported as, by the link
    plugins = Path(sys.executable).parent
    command = [
        sys.executable, "-m", "grpc_tools.protoc", *includes(),
        f"--plugin=protoc-gen-mypy={plugins / 'protoc-gen-mypy'}",
        f"--plugin=protoc-gen-mypy_grpc={plugins / 'protoc-gen-mypy_grpc'}",
        f"--python_out={out}", f"--grpc_python_out={out}", f"--mypy_out=quiet:{out}", f"--mypy_grpc_out=quiet:{out}",
        *sources,
    ]  # fmt: skip
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    generate(ROOT)
