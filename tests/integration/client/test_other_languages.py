"""clients/typescript and clients/go: fresh, compiled as strictly as may be, and run at a real controller."""

import json
import os
import runpy
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.cluster import Cluster
from tests.support.spent_keys import keys_spent

CLIENTS: Final = Path(__file__).parents[3] / "clients"
TYPESCRIPT: Final = "typescript@5.6.3"
COMPILE_S: Final = 300


def test_the_types_are_fresh() -> None:
    made = runpy.run_path(str(CLIENTS / "typescript" / "generate.py"))["text"]()
    assert (CLIENTS / "typescript" / "cronring.ts").read_text() == made, "run `make protos`"


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=COMPILE_S,
        check=False,
    )  # fmt: skip


def test_typescript_is_compiled_and_run(cluster: Cluster, tmp_path: Path) -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("there is no node and npm here")
    tools, folder = tmp_path / "tools", tmp_path / "typescript"
    tools.mkdir()
    got = run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tools), TYPESCRIPT], tools)
    if got.returncode != 0:
        pytest.skip(f"npm's registry gives no {TYPESCRIPT}: {got.stderr[:200]}")
    shutil.copytree(CLIENTS / "typescript", folder)
    compiled = run([str(tools / "node_modules" / ".bin" / "tsc"), "-p", "."], folder)
    assert compiled.returncode == 0, compiled.stdout
    wrong = folder / "wrong.ts"
    wrong.write_text((folder / "example.ts").read_text().replace('schedule: "every 2h"', "schedule: 2"))
    refused = run([str(tools / "node_modules" / ".bin" / "tsc"), "--noEmit", "-p", _only(folder, wrong)], folder)
    assert "is not assignable to type 'string'" in refused.stdout, "the types hold"
    says = "billing.close_day:typed: could be paused\nbilling.close_day:typed: completed\n"
    for _ in with_keys_and_without(cluster):
        done = run(["node", "out/example.js", f"http://{cluster.controllers[0].http}"], folder)
        assert (done.returncode, done.stdout) == (0, says), done.stderr


def test_go_is_compiled_and_run(cluster: Cluster, tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("there is no Go here (Debian: golang-go)")
    unformatted = run(["gofmt", "-l", "."], CLIENTS / "go")
    assert (unformatted.returncode, unformatted.stdout) == (0, "")
    places = {
        "GOCACHE": str(tmp_path / "cache"),
        "GOPATH": str(tmp_path / "path"),
        "GOPROXY": "off",
        "GOFLAGS": "-buildvcs=false",
    }
    assert (vetted := run(["go", "vet", "."], CLIENTS / "go", **places)).returncode == 0, vetted.stderr
    built = run(["go", "build", "-o", str(tmp_path / "example"), "."], CLIENTS / "go", **places)
    assert built.returncode == 0, built.stderr
    for _ in with_keys_and_without(cluster):
        done = run([str(tmp_path / "example"), f"http://{cluster.controllers[0].http}"], tmp_path)
        assert (done.returncode, done.stdout) == (0, "billing.close_day:by-go: completed\n"), done.stderr


def test_what_a_lease_says_takes_no_key() -> None:
    written = (CLIENTS / "typescript" / "cronring.ts").read_text()
    keyed = written[written.index("export const KEYED") :]
    assert '"PutMessage"' in keyed
    assert not [name for name in ("TakeMessages", "ExtendLease", "FinishMessages", "AddWebhook") if name in keyed]


def with_keys_and_without(cluster: Cluster) -> Iterator[None]:
    """Twice: whoever asked the first time has no key left then."""
    yield
    with keys_spent(cluster.database_url):
        yield


def _only(folder: Path, file: Path) -> str:
    settings = json.loads((folder / "tsconfig.json").read_text()) | {"files": [file.name]}
    (folder / "tsconfig.wrong.json").write_text(json.dumps(settings))
    return "tsconfig.wrong.json"
