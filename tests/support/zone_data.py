"""Another version of tzdata, as a member of a cluster may have it: the real one with other rules for some zones."""

import shutil
import struct
from importlib import resources
from pathlib import Path

HEADER = struct.Struct(">4sc15x6l")
TYPE = struct.Struct(">lbB")


def zone_file(offset_s: int) -> bytes:
    """A compiled zone (TZif) whose clocks are for ever so many seconds east of UTC."""
    block = TYPE.pack(offset_s, 0, 0) + b"ODD\0"
    header = HEADER.pack(b"TZif", b"2", 0, 0, 0, 0, 1, 4)
    sign, size = ("-", offset_s) if offset_s >= 0 else ("", -offset_s)
    clock = f"{sign}{size // 3600}:{size % 3600 // 60:02}:{size % 60:02}"
    return header + block + header + block + f"\n<ODD>{clock}\n".encode()


def another_version(folder: Path, version: str, offsets_s: dict[str, int]) -> Path:
    """Write it below `folder`; a process with that in its PYTHONPATH goes by it. Returns the folder."""
    copy = folder / "tzdata"
    with resources.as_file(resources.files("tzdata")) as original:
        shutil.copytree(original, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "__init__.py").write_text(f'__version__ = "{version}"\nIANA_VERSION = "odd"\n')
    for zone, offset_s in offsets_s.items():
        copy.joinpath("zoneinfo", *zone.split("/")).write_bytes(zone_file(offset_s))
    return folder
