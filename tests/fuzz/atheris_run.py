"""Coverage-guided fuzzing of one target: `python -m tests.fuzz.atheris_run --target pattern --seconds 60`.

It begins with the target's corpus. What it finds interesting stays in --corpus: by default a folder of its own, so that
the seeds stay few. An input that makes the product misbehave is written to --crashes, and the exit code is not 0. Needs
the extra `fuzz`.
"""

import argparse
import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

SEEDS: Final = Path(__file__).parent / "corpus"
_INSTRUMENTED: Final = ("cronring.schema", "cronring.controller", "cronring", "cronring.protos.modules")
_RSS_LIMIT_MB: Final = 2_048
_LENGTH_MAX: Final = 4_096


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, help="what is found interesting is kept here")
    parser.add_argument("--crashes", type=Path, default=Path("fuzz-crashes"))
    parser.add_argument("--seed", type=int, default=0, help="0: another each time")
    options = parser.parse_args(arguments)
    atheris: Any = importlib.import_module("atheris")  # of the extra `fuzz`; instruments what is imported after it

    with atheris.instrument_imports(include=list(_INSTRUMENTED)):
        from tests.fuzz.targets import TARGETS  # noqa: PLC0415
    from tests.fuzz.bounds import held  # noqa: PLC0415

    if options.target not in TARGETS:
        parser.error(f"there is no target {options.target!r}; there are {', '.join(TARGETS)}")
    target = TARGETS[options.target]

    def one(data: bytes) -> None:
        held(target, data, memory=False)  # libFuzzer itself holds it to _RSS_LIMIT_MB

    atheris.Setup(_libfuzzer(options), one)
    atheris.Fuzz()


def _libfuzzer(options: Any) -> list[str]:
    """The words of libFuzzer's own command line."""
    seeds = SEEDS / options.target
    found = options.corpus or Path(tempfile.mkdtemp(prefix=f"cronring-fuzz-{options.target}-"))
    for folder in (found, options.crashes):
        folder.mkdir(parents=True, exist_ok=True)
    return [
        sys.argv[0],
        str(found),
        *([str(seeds)] if seeds.is_dir() else []),
        f"-max_total_time={options.seconds}",
        f"-artifact_prefix={options.crashes}{os.sep}{options.target}-",
        f"-rss_limit_mb={_RSS_LIMIT_MB}",
        f"-max_len={_LENGTH_MAX}",
        "-timeout=20",
        f"-seed={options.seed}",
        "-print_final_stats=1",
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
