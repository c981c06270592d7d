"""The generated code that is committed is what protoc makes of the .proto files today."""

from pathlib import Path

from cronring.protos.generate import ROOT, generate


def generated(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted((folder / "cronring" / "protos").rglob("*_pb2*.py*"))
        if path.suffix in {".py", ".pyi"}
    }


def test_generated_code_is_fresh(tmp_path: Path) -> None:
    generate(tmp_path)
    fresh = generated(tmp_path)
    committed = generated(ROOT)
    assert fresh, "protoc made nothing"
    stale = sorted(name for name in fresh.keys() | committed.keys() if fresh.get(name) != committed.get(name))
    assert not stale, f"run `make protos` and commit: {stale}"
