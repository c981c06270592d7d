"""Each target for a while with coverage to guide it, in `make soak` and `make fuzz`: what is found stays in a file."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz.targets import SERVED, TARGETS

SECONDS = 60


@pytest.mark.soak
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found_with_coverage_to_guide_it(name: str, tmp_path: Path) -> None:
    if find_spec("atheris") is None:
        pytest.skip("atheris is not installed; `make fuzz` installs it with the extra `fuzz`")
    seconds = SECONDS // 3 if TARGETS[name] in SERVED else SECONDS
    command = [sys.executable, "-m", "tests.fuzz.atheris_run", "--target", name, "--seconds", str(seconds)]
    done = subprocess.run(
        [*command, "--crashes", str(tmp_path)], capture_output=True, text=True, timeout=seconds + 300, check=False
    )
    found = {file.name: file.read_bytes()[:200] for file in tmp_path.iterdir()}
    assert done.returncode == 0, f"{found}\n{done.stderr[-4_000:]}"
