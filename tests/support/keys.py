"""Keys of secrets as tests have them, and a program that stands for a KMS."""

import sys
from pathlib import Path
from typing import Final

from cronring.controller.runtime.secret_keys import KeyFileSource
from cronring.controller.services.vault import Vault
from cronring.trust.keyfile import KeyFile, WrappingKey, write_keys

# Wraps by XOR with a pad that it draws from the key's name: it is a KMS in its manners alone. It keeps a journal of
# what it was asked. A file `fault` beside it says how it misbehaves, `current` which key wraps, `gone` which is gone.
PROGRAM: Final = """
import base64, hashlib, json, pathlib, sys, time

here = pathlib.Path(__file__).parent

def told(name):
    return (here / name).read_text() if (here / name).exists() else ""

def padded(key, context, raw):
    pad = hashlib.sha512((key + "|" + context).encode()).digest()
    return bytes(a ^ b for a, b in zip(raw, pad))

fault = told("fault")
if fault == "hangs":
    time.sleep(3600)
if fault == "dies":
    sys.exit(3)
if fault == "floods":
    while True:
        sys.stdout.write("x" * 65536)
if fault == "babbles":
    print("Welcome to the KMS!")
    sys.exit()
question = json.loads(sys.stdin.readline())
with (here / "journal").open("a") as journal:
    journal.write(json.dumps({name: value for name, value in question.items() if name in ("do", "context")}) + "\\n")
assert question["version"] == 1
assert not any("DATABASE_URL" in name for name in __import__("os").environ)
key = question.get("key") or told("current") or "first"
if fault == "lies":
    print(json.dumps({"key": "two words", "wrapped": "", "data_key": "AAAA"}))
elif key == told("gone"):
    print(json.dumps({"error": f"key {key} is disabled"}))
elif question["do"] == "current":
    print(json.dumps({"key": key}))
elif question["do"] == "wrap":
    raw = padded(key, question["context"], base64.b64decode(question["data_key"]))
    print(json.dumps({"key": key, "wrapped": base64.b64encode(raw).decode()}))
else:
    raw = padded(key, question["context"], base64.b64decode(question["wrapped"]))
    print(json.dumps({"data_key": base64.b64encode(raw).decode()}))
"""


class Kms:
    """The program in a folder of its own: `command` is what --secrets-command takes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "kms.py").write_text(PROGRAM)
        self.command = f"{sys.executable} '{folder / 'kms.py'}'"

    def set(self, name: str, value: str) -> None:
        (self._folder / name).write_text(value)

    def asked(self) -> list[str]:
        journal = self._folder / "journal"
        return journal.read_text().splitlines() if journal.exists() else []


def key_file(file: Path, *keys: WrappingKey) -> KeyFile:
    write_keys(file, keys)
    return KeyFile(file)


def file_vault(file: KeyFile) -> Vault:
    return Vault([KeyFileSource(file)], plain_allowed=False)
